"""Parameters of the blocks in ``rtl/arith``."""
