"""Tests of the test library."""
