"""Benches of the PIM side."""
