"""Golden models of the blocks in ``rtl/tile/engine``."""
