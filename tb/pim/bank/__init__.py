"""Benches of the blocks in ``rtl/pim/bank``."""
