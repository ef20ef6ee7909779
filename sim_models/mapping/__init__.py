"""Compilers: from matrices and attention to the commands of the hardware.

``gemm`` splits a product for the engine; ``pim`` lays matrices and heads into banks.
"""
