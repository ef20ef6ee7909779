"""Benches of the blocks in ``rtl/manager/softmax``."""
