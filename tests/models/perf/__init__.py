"""Tests of ``sim_models/perf``."""
