"""Benchmarks: cycles measured in the RTL.

``engine`` with ``baselines``, ``manager`` and ``pim`` measure a kind of design each (the registry says which).
"""
