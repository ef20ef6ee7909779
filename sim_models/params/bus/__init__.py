"""Parameters of the blocks in ``rtl/bus``."""
