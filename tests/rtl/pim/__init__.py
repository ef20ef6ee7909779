"""Tests of the blocks in ``rtl/pim``."""
