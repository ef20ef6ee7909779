"""Tests of the blocks in ``rtl/tile``."""
