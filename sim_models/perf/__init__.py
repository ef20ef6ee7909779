"""Timing models that need no simulation.

``pim_timing`` follows a program through a PIM stack.
"""
