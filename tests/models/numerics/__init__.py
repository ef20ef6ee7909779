"""Tests of ``sim_models/numerics``."""
