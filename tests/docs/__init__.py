"""Tests that keep the documentation true."""
