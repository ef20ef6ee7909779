"""Golden models of the blocks in ``rtl/manager/softmax``."""
