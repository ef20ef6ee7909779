"""A stack of pseudo-channels.

Commands go through ``stack_decoder`` and ``stack_dispatcher``, sums come back through ``sum_collector`` and
``row_rounder``, and ``sfu_port`` leads to the special function unit.
"""
