"""Golden models: one of each block, bit-exact and independent of the hardware, in the folders of ``rtl``.

``tile``, ``manager``, ``pim``, ``sfu``, ``arith``, ``bus``, ``memory``
"""
