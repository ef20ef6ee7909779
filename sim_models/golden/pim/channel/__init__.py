"""Golden models of the blocks in ``rtl/pim/channel``."""
