"""Tables of the functions, made with integers alone: the same on every machine, for hardware and models.

Each table is piecewise linear over equal segments. The breakpoints lie on a curve that is moved by half of the
largest distance between the function and its chord, so that the error is as large above as below; neighbouring
segments meet, so that what is read is monotone like the function.
"""

import dataclasses
import functools
import itertools
import math

__all__ = ["EXP2", "LOG2", "LOG2_SLOPE", "RECIPROCAL", "RSQRT", "LinearTable", "TableShape", "exp2_table",
           "log2_slope_table", "log2_table", "reciprocal_table", "rsqrt_table"]


@dataclasses.dataclass(frozen=True)
class TableShape:
    """Sizes of a table and of what is read from it."""

    #: bits of the segment's number
    index_bits: int
    #: bits of the position in the segment
    position_bits: int
    #: fraction bits of the breakpoints
    base_bits: int
    #: bits of a segment's rise or fall, in units of the breakpoints
    slope_bits: int

    @property
    def operand_bits(self) -> int:
        """Fraction bits of the operand: segment and position."""
        return self.index_bits + self.position_bits


@dataclasses.dataclass(frozen=True)
class LinearTable:
    """``base[i] + slope[i] * position / 2^position_bits``, or minus it for a function that falls."""

    shape: TableShape
    base: tuple[int, ...]
    slope: tuple[int, ...]


EXP2 = TableShape(index_bits=7, position_bits=13, base_bits=20, slope_bits=14)
RECIPROCAL = TableShape(index_bits=7, position_bits=12, base_bits=19, slope_bits=12)
#: the upper half of the segments is for numbers from 2 to 4
RSQRT = TableShape(index_bits=7, position_bits=12, base_bits=19, slope_bits=12)
LOG2 = TableShape(index_bits=7, position_bits=13, base_bits=20, slope_bits=14)
#: of -log2(1 - t) / t, t from 0 to 1/2
LOG2_SLOPE = TableShape(index_bits=7, position_bits=13, base_bits=20, slope_bits=14)
#: binary digits of the exact values before rounding
_DIGITS = 64


def _rounded(value: int, digits: int) -> int:
    """``value`` in units of 2^-_DIGITS, rounded to ``digits`` fraction bits."""
    drop = _DIGITS - digits
    return (value + (1 << (drop - 1))) >> drop


def _table(shape: TableShape, points: list[tuple[int, int]]) -> LinearTable:
    """Segments between consecutive pairs of (left, right) breakpoints."""
    slope = tuple(abs(right - left) for left, right in points)
    if max(slope) >> shape.slope_bits:
        raise ValueError(f"a slope of {shape.slope_bits} bits was wanted, {max(slope)} came")
    return LinearTable(shape, tuple(left for left, _ in points), slope)


@functools.cache
def exp2_table() -> LinearTable:
    """2^x for x from 0 to 1. The ends are exact, so that powers of two are, and octaves meet."""
    n = 1 << EXP2.index_bits
    one = 1 << EXP2.base_bits
    values = [one]
    for i in range(1, n):
        exact = 1 << (i + _DIGITS * n)                  # the n-th root of this is 2^(i / n)
        for _ in range(EXP2.index_bits):
            exact = math.isqrt(exact)
        # half of the chord's distance is 2^x ln(2)^2 / 16 / n^2
        values.append(_rounded(exact - exact * 480453 // (16_000_000 * n * n), EXP2.base_bits))
    values.append(2 * one)
    return _table(EXP2, list(itertools.pairwise(values)))


@functools.cache
def reciprocal_table() -> LinearTable:
    """1/x for x from 1 to 2."""
    n = 1 << RECIPROCAL.index_bits
    # half of the chord's distance is 1 / x^3 / 8 / n^2; above 1 there is no room at the left end
    values = [_rounded((n << _DIGITS) // (n + i) - (n << _DIGITS) // (8 * (n + i) ** 3), RECIPROCAL.base_bits)
              for i in range(n + 1)]
    return _table(RECIPROCAL, list(itertools.pairwise(values)))


@functools.cache
def rsqrt_table() -> LinearTable:
    """1/sqrt(x) for x from 1 to 2, then from 2 to 4."""
    n = 1 << (RSQRT.index_bits - 1)

    def value(i: int, octave: int) -> int:
        exact = math.isqrt((n << (2 * _DIGITS)) // ((n + i) << octave))
        # half of the chord's distance is 3 / 64 / x^2.5 times the segment squared
        return _rounded(exact - 3 * exact // (64 * (n + i) ** 2), RSQRT.base_bits)

    return _table(RSQRT, [(value(i, octave), value(i + 1, octave)) for octave in (0, 1) for i in range(n)])


def _log2(numerator: int, denominator: int) -> int:
    """log2 of a number from 1 to below 2, in units of 2^-_DIGITS, by squaring."""
    guard = 32
    x, result = (numerator << (_DIGITS + guard)) // denominator, 0
    for _ in range(_DIGITS):
        x = x * x >> (_DIGITS + guard)
        result <<= 1
        if x >> (_DIGITS + guard + 1):
            x, result = x >> 1, result | 1
    return result


@functools.cache
def log2_table() -> LinearTable:
    """log2(x) for x from 1 to 2. The ends are exact, so that powers of two are, and octaves meet."""
    n = 1 << LOG2.index_bits
    values = [0]
    for i in range(1, n):
        # half of the chord's distance is 1 / x^2 / ln(2) / 16 / n^2
        lift = (1442695 << _DIGITS) // (1_000_000 * 16 * (n + i) ** 2)
        values.append(_rounded(_log2(n + i, n) + lift, LOG2.base_bits))
    values.append(1 << LOG2.base_bits)
    return _table(LOG2, list(itertools.pairwise(values)))


@functools.cache
def log2_slope_table() -> LinearTable:
    """-log2(1 - t) / t for t from 0 to 1/2: from log2(e) to 2."""
    n = 1 << LOG2_SLOPE.index_bits
    # at t = i / (2 n): log2 of 2 n / (2 n - i), divided by t
    values = [_rounded(26613026195688644984, LOG2_SLOPE.base_bits)]
    values += [_rounded(_log2(2 * n, 2 * n - i) * 2 * n // i, LOG2_SLOPE.base_bits) for i in range(1, n)]
    values.append(2 << LOG2_SLOPE.base_bits)
    return _table(LOG2_SLOPE, list(itertools.pairwise(values)))
