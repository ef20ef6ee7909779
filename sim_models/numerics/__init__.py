"""The arithmetic of the machine, bit for bit, on arrays of codes.

``float32`` adds, multiplies and compares; ``convert`` changes formats; ``functions`` and ``tables`` give exp2 and
reciprocals, ``elements`` sums and products of arrays; ``rows`` has sums and products of rows in a stated order,
``exact_sums`` those without rounding; ``noise`` samples tokens.
"""
