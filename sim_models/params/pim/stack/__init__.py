"""Parameters of the blocks in ``rtl/pim/stack``."""
