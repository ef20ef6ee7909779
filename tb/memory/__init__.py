"""Benches of the blocks in ``rtl/memory``."""
