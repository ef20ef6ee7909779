"""Tests of the blocks in ``rtl/arith``."""
