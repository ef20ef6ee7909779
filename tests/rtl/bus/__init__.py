"""Tests of the blocks in ``rtl/bus``."""
