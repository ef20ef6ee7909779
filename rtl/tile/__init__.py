"""SPECTRA's tile.

``engine``: the array with its feeders and local memories.
"""
