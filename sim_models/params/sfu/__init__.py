"""Parameters of the blocks in ``rtl/sfu``."""
