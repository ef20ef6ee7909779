"""Pieces of hardware that many blocks use and that are no modules of their own.

``float`` takes numbers apart and rounds them, ``pipeline`` lays registers, ``pick`` selects among many values,
``logic`` and ``memory`` are small logic and small memories, ``streams`` joins streams.
"""
