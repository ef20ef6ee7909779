"""Readers of model files.

``gguf`` reads GGUF.
"""
