"""Probabilities as the Manager holds them: UQ1.15 in 16 bits, 0x8000 is 1.0 exactly."""

__all__ = ["FRACTION", "ONE", "multiply", "quantise"]

FRACTION = 15
ONE = 1 << FRACTION


def quantise(probability: float) -> int:
    """A probability in UQ1.15, rounded to nearest even.

    Raises
    ------
    ValueError
        It is not from 0 to 1 (a rounding error of 1e-6 above 1 is taken as 1).
    """
    if not 0 <= probability <= 1 + 1e-6:
        raise ValueError(f"a probability must be from 0 to 1, not {probability}")
    return min(round(float(probability) * ONE), ONE)


def multiply(a: int, b: int) -> int:
    """Product of two UQ1.15 numbers up to 1.0, rounded to nearest even; never above either of them."""
    product = a * b
    quotient, rest = product >> FRACTION, product & (ONE - 1)
    half = ONE >> 1
    return quotient + (rest > half or (rest == half and quotient & 1))
