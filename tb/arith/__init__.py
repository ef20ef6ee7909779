"""Benches of the pipelines in ``rtl/arith``."""
