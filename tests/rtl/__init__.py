"""Tests of blocks: ``<folder>/test_<block>_<kind>``, with golden, native, formal, mutation, four_state or area
as kind.
"""
