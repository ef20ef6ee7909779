"""Tests of ``sim_models/transformer``."""
