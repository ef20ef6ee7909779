"""Float32 operations whose result is decided to the last bit, on every machine and for every number of rows.

Every operation works on the last axis alone. Each is made of IEEE additions, multiplications, divisions and
square roots in a stated order, rounded to nearest even; no library function whose last bit may vary between
processors (``exp``), and no reduction whose order may vary with the array's shape (``sum``, ``matmul``).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LANES", "dequantise", "exp", "int_matmul", "lane_sum", "quantise", "rms_norm", "rotate", "silu",
           "softmax"]

Float = NDArray[Any]            # float32; numpy's stubs take a quotient of two float32 arrays for float64
Int8 = NDArray[np.int8]
Int32 = NDArray[np.int32]

LANES = 8
"""Partial sums of a reduction: element i goes to lane i mod 8."""

TINY = np.float32(2.0 ** -100)
"""A row whose largest magnitude is below this is quantised to zeros: its reciprocal might overflow."""

_ONE = np.float32(1)


def lane_sum(x: Float) -> Float:
    """Sum over the last axis: eight lanes in order of position, then ((0+1)+(2+3))+((4+5)+(6+7)).

    Zeros behind the last element change nothing, so a row's sum depends on its own elements only.
    """
    n = x.shape[-1]
    total = np.zeros((*x.shape[:-1], LANES), np.float32)
    for at in range(0, n, LANES):
        width = min(LANES, n - at)
        total[..., :width] += x[..., at:at + width]
    while total.shape[-1] > 1:
        total = total[..., 0::2] + total[..., 1::2]
    return total[..., 0]


_LOG2E, _LN2 = np.float64(1.4426950408889634), np.float64(0.6931471805599453)
_EXP = [np.float64(1 / f) for f in (3628800, 362880, 40320, 5040, 720, 120, 24, 6, 2, 1, 1)]


def exp(x: Float) -> Float:
    """e to the x: a polynomial of degree 10 in float64, rounded once to float32; below 2**-126 it is zero.

    Error against the true value below 0.502 ulp of float32. Arguments above 87 are taken as 87, so neither
    the result nor its reciprocal leaves the normal numbers; NaN is not allowed.
    """
    y = np.clip(x, np.float32(-104), np.float32(87)).astype(np.float64)
    whole = np.rint(y * _LOG2E)
    rest = y - whole * _LN2
    power = np.full_like(rest, _EXP[0])
    for coefficient in _EXP[1:]:
        power = power * rest + coefficient
    result = np.ldexp(power, whole.astype(np.int32))
    return np.where(result < 2.0 ** -126, 0, result).astype(np.float32)


def silu(x: Float) -> Float:
    """x * (1 / (1 + exp(-x)))."""
    return x * (_ONE / (_ONE + exp(-x)))


def softmax(scores: Float, valid: NDArray[np.bool_]) -> Float:
    """exp(s - max) * (1 / lane sum) over the valid elements of the last axis, zero elsewhere.

    At least one element of every row must be valid.
    """
    top = np.max(np.where(valid, scores, np.float32(-np.inf)), axis=-1, keepdims=True)
    e = np.where(valid, exp(np.where(valid, scores, top) - top), np.float32(0))
    return e * (_ONE / lane_sum(e))[..., None]


def rms_norm(x: Float, weight: Float, eps: float) -> Float:
    """(x * (1 / sqrt(lane sum of x * x / n + eps))) * weight."""
    mean = lane_sum(x * x) / np.float32(x.shape[-1])
    return x * (_ONE / np.sqrt(mean + np.float32(eps)))[..., None] * weight


def rotate(x: Float, cos: Float, sin: Float) -> Float:
    """Turn neighbouring pairs: (a cos - b sin, a sin + b cos), each product rounded."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return np.stack((even * cos - odd * sin, even * sin + odd * cos), -1).reshape(x.shape)


def quantise(x: Float) -> tuple[Int8, Float]:
    """Symmetric int8 along the last axis: x is about q * scale.

    ``scale = max|x| / 127``, ``q = round to even(x * (127 / max|x|))``, both quotients rounded to float32;
    q lies in -127..127. A row below 2**-100 gives zeros and scale 0.

    Returns
    -------
    q: int8, shape of x
    scale: float32, shape of x without its last axis
    """
    top = np.max(np.abs(x), axis=-1)
    top = np.where(top < TINY, np.float32(0), top)
    factor = np.divide(np.float32(127), top, out=np.zeros_like(top), where=top > 0)
    return np.rint(x * factor[..., None]).astype(np.int8), top / np.float32(127)


def dequantise(acc: Int32, row_scale: Float, column_scale: Float) -> Float:
    """(float32(acc) * row scale) * column scale: acc [M, N], scales [M] and [N]."""
    return acc.astype(np.float32) * row_scale[:, None] * column_scale


def int_matmul(a: NDArray[np.integer], b: NDArray[np.integer]) -> Int32:
    """Exact product of int8 matrices [..., M, K] x [..., K, N], int32.

    Done in floating point, where every partial sum is an integer that is exactly representable (float32 up to
    K = 1024, float64 beyond), so no order of summation can change it.

    Raises
    ------
    ValueError
        An operand is not int8, or K is so large that int32 may overflow.
    """
    if a.dtype != np.int8 or b.dtype != np.int8:
        raise ValueError(f"operands must be int8, not {a.dtype} and {b.dtype}")
    k = a.shape[-1]
    if k >= 1 << 17:
        raise ValueError(f"K must be less than {1 << 17} for an int32 sum, not {k}")
    kind = np.float32 if k <= 1024 else np.float64
    return np.matmul(a.astype(kind), b.astype(kind)).astype(np.int32)
