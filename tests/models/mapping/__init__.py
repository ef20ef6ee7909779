"""Tests of ``sim_models/mapping``."""
