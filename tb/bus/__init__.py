"""Benches of the blocks in ``rtl/bus``."""
