"""Frozen, validated parameters: one object builds the hardware and its golden model."""
