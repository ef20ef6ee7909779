"""Parameters of the blocks in ``rtl/manager/softmax``."""
