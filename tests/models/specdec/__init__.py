"""Tests of ``sim_models/specdec``."""
