"""Golden models of the blocks in ``rtl/manager/pools``."""
