"""Benches of the blocks in ``rtl/sfu``."""
