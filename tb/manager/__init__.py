"""Benches of the blocks in ``rtl/manager``."""
