"""Golden models of the blocks in ``rtl/bus``."""
