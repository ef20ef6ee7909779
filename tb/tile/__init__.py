"""Benches of the blocks in ``rtl/tile``."""
