"""Tests, in the tree of what they test.

``rtl`` by block, ``models``, ``gen``, ``tb``, ``app`` (the command), ``docs``, ``scripts``; ``designs`` are small
units that the test library is tested with.
"""
