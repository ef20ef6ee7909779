"""Designs from TOML files, presets and block names.

``config`` reads and checks them, ``locate`` finds the place of a mistake, ``schema`` and ``template`` say what there
is. ``document`` keeps the tables of the documentation current.
"""
