"""Float32 as the hardware computes it: round to nearest even, subnormals are zero, one NaN.

Subnormal operands count as zeros of their sign. A result is rounded to 24 bits as if its exponent had no lower
bound; if it is then below 2^-126 it becomes a zero of its sign. Every NaN that comes out is 0x7fc00000.

Arrays are numpy float32 and broadcast; what comes out holds neither subnormals nor other NaNs.
"""

from typing import Any

import numpy as np

__all__ = ["NAN", "SMALLEST", "add", "argmax", "bits", "equal", "flush", "from_bits", "less", "multiply", "order_key",
           "subtract", "unordered"]

#: code of the one NaN
NAN = 0x7FC00000
_SIGN, _INFINITY = np.uint32(0x80000000), np.uint32(0x7F800000)
#: the smallest normal number
SMALLEST = np.float32(2.0**-126)
#: the smallest product that rounds to 2^-126 (half a unit of the binade below, ties to even)
_ROUNDS_TO_SMALLEST = 2.0**-126 - 2.0**-151


def bits(x: Any) -> np.ndarray:
    """Codes of float32 numbers, uint32 of the same shape."""
    return np.ascontiguousarray(np.asarray(x, np.float32)).view(np.uint32).reshape(np.shape(x))


def from_bits(codes: Any) -> np.ndarray:
    """Float32 numbers with these codes, of the same shape."""
    return np.ascontiguousarray(np.asarray(codes).astype(np.uint32)).view(np.float32).reshape(np.shape(codes))


def flush(x: Any) -> np.ndarray:
    """Subnormals become zeros of their sign, every NaN the one NaN; ``x`` itself where it has neither."""
    x = np.asarray(x, np.float32)
    size = np.abs(x)
    # not the other way round, so that a NaN counts as unusual
    if np.minimum.reduce(size, axis=None, initial=np.inf) >= SMALLEST or ((size >= SMALLEST) | (size == 0)).all():
        return x
    x = np.where(np.abs(x) < SMALLEST, np.copysign(np.float32(0), x), x)
    return np.where(np.isnan(x), np.float32(np.nan), x)


def add(a: Any, b: Any) -> np.ndarray:
    """``a + b``, rounded once. A sum of zero is +0 unless both are -0; inf - inf is NaN."""
    with np.errstate(all="ignore"):
        return flush(flush(a) + flush(b))


def subtract(a: Any, b: Any) -> np.ndarray:
    """``a + (-b)``."""
    return add(a, -np.asarray(b, np.float32))


def multiply(a: Any, b: Any) -> np.ndarray:
    """``a * b``, rounded once. 0 * inf is NaN; what is too large becomes infinity."""
    with np.errstate(all="ignore"):
        # 24 x 24 bits fit in float64, so that the conversion is the only rounding
        exact = flush(a).astype(np.float64) * flush(b).astype(np.float64)
        tiny = np.abs(exact) < _ROUNDS_TO_SMALLEST
        return flush(np.where(tiny, np.copysign(0.0, exact), exact).astype(np.float32))


def order_key(x: Any) -> np.ndarray:
    """Unsigned codes, uint32, in the order of the numbers: NaN (code 1) is below -inf, -0 equals +0."""
    code = bits(flush(x))
    key = np.where(code & _SIGN, ~code, code | _SIGN)
    key = np.where(code & ~_SIGN, key, _SIGN)
    return np.where((code & ~_SIGN) > _INFINITY, np.uint32(1), key)


def less(a: Any, b: Any) -> np.ndarray:
    """``a < b``; false if either is NaN."""
    return flush(a) < flush(b)


def equal(a: Any, b: Any) -> np.ndarray:
    """``a == b``; false if either is NaN."""
    return flush(a) == flush(b)


def unordered(a: Any, b: Any) -> np.ndarray:
    """Whether either is NaN."""
    return np.isnan(np.asarray(a, np.float32)) | np.isnan(np.asarray(b, np.float32))


def argmax(x: Any, present: Any = True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Largest number of the last axis.

    Parameters
    ----------
    x: float32 (..., n)
    present: bool (..., n)
        Which elements count.

    Returns
    -------
    tuple
        Whether anything is present, bool (...); the largest number, float32 (...), +0 where it is a zero; its
        index, int64 (...), the lowest among equals. A NaN is taken only where nothing else is present. Where
        nothing is present at all the number is NaN and the index 0.
    """
    x = np.asarray(x, np.float32)
    there = np.broadcast_to(present, x.shape)
    key = np.where(there, order_key(x), np.uint32(0))
    index = key.argmax(axis=-1)
    best = np.take_along_axis(flush(x), index[..., None], axis=-1)[..., 0]
    any_there = np.asarray(there.any(axis=-1))
    best = np.where(best == 0, np.float32(0), best)
    return any_there, np.where(any_there, best, np.float32(np.nan)), index
