"""Tests of the blocks in ``rtl/sfu``."""
