"""A DRAM bank and what computes beside it.

``dram_bank`` and ``bank_pe`` make a ``bank_group``; ``sum_rounder`` rounds the exact sums once.
"""
