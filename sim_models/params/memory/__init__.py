"""Parameters of the blocks in ``rtl/memory``."""
