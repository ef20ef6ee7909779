"""Parameters of the blocks in ``rtl/tile/engine``."""
