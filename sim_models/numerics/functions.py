"""Float32 exp2, reciprocal and reciprocal square root, bit for bit as in hardware.

Errors are against the exact value, in units of the last place of the exact value's binade; each is verified for
every number of one binade (two for the square root).
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from sim_models.numerics.convert import fp16_to_float32
from sim_models.numerics.float32 import bits, flush, from_bits
from sim_models.numerics.tables import (
    EXP2,
    LOG2,
    LOG2_SLOPE,
    LinearTable,
    exp2_table,
    log2_slope_table,
    log2_table,
    reciprocal_table,
    rsqrt_table,
)

__all__ = ["exp2", "exp2_fixed", "exp2_fp16", "log2_mantissa", "log2_slope", "reciprocal", "rsqrt"]


@functools.cache
def _arrays(make: Callable[[], LinearTable]) -> tuple[np.ndarray, np.ndarray, int]:
    table = make()
    return np.array(table.base, np.int64), np.array(table.slope, np.int64), table.shape.position_bits


def _read(make: Callable[[], LinearTable], index: np.ndarray, position: np.ndarray, sign: int) -> np.ndarray:
    base, slope, bits_ = _arrays(make)
    return ((base[index] << bits_) + sign * slope[index] * position) >> bits_


def _exp2_parts(x: np.ndarray, int_bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Exponent and significand in the table's units of 2^x, for finite x; |x| is cut to the table's fraction bits."""
    limit = float(1 << int_bits)
    # x is a multiple of 2^-149 below 2^int_bits: its product with a power of two is exact in float64
    size = np.floor(np.minimum(np.abs(x.astype(np.float64)), limit) * 2.0**EXP2.operand_bits).astype(np.int64)
    return exp2_fixed(np.where(np.signbit(x), -size, size))


def exp2_fixed(fixed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Exponent and significand of 2^x, int64; x and the significand, which is from 1 to 2, in units of 2^-20."""
    fraction = fixed & ((1 << EXP2.operand_bits) - 1)
    significand = _read(exp2_table, fraction >> EXP2.position_bits,
                        fraction & ((1 << EXP2.position_bits) - 1), 1)
    return fixed >> EXP2.operand_bits, significand


def exp2(x: Any) -> np.ndarray:
    """2^x in float32, within 56 ulp (relative 2^-18); monotone; exact for integers.

    Results below 2^-126 are +0, at 2^128 and above infinity; NaN gives NaN.
    """
    x = flush(x)
    exponent, significand = _exp2_parts(np.where(np.isfinite(x), x, np.float32(0)), 8)
    code = ((exponent + 127) << 23) + ((significand - (1 << EXP2.base_bits)) << (23 - EXP2.base_bits))
    code = np.where((exponent < -126) | (x == -np.inf), 0, code)
    code = np.where((exponent > 127) | (x == np.inf), 0x7F800000, code)
    return flush(np.where(np.isnan(x), np.float32(np.nan), from_bits(code & 0xFFFFFFFF)))


def exp2_fp16(x: Any) -> np.ndarray:
    """2^x for FP16 x, rounded once to FP16: within 0.505 ulp for every FP16 number, subnormals included.

    Monotone; exact for integers. Overflow gives infinity; NaN gives 0x7e00.
    """
    wide = fp16_to_float32(x)
    exponent, significand = _exp2_parts(np.where(np.isfinite(wide), wide, np.float32(0)), 5)
    # float64 holds the value exactly, so that the conversion is the only rounding
    with np.errstate(over="ignore", under="ignore"):
        y = np.ldexp(significand.astype(np.float64), exponent - EXP2.base_bits).astype(np.float16)
    y = np.where(wide == -np.inf, np.float16(0), np.where(wide == np.inf, np.float16(np.inf), y))
    return np.where(np.isnan(wide), np.float16(np.nan), y)


def reciprocal(x: Any) -> np.ndarray:
    """1/x in float32, within 0.509 ulp; exact for powers of two.

    Zeros give infinities, infinities zeros, both of their sign, as do results below 2^-126; NaN gives NaN.
    """
    x = flush(x)
    code = bits(x).astype(np.int64)
    sign, exponent, mantissa = code >> 31 << 31, code >> 23 & 0xFF, code & 0x7FFFFF
    # the complement stands for the negative: one less in the 40th bit
    guess = _read(reciprocal_table, mantissa >> 16, mantissa >> 4 & 0xFFF, -1) >> 2
    error = ~((mantissa + (1 << 23)) * guess - (1 << 40))
    better = (guess << 13) + ((guess * (error >> 9)) >> 18)
    rounded = (better + 32) >> 6                        # units of 2^-24, 2^24 for a power of two
    result = ((253 - exponent) << 23) + rounded - (1 << 23)
    # the least exponent of the result is 1
    result = np.where((exponent == 255) | (result < 1 << 23), 0, result)
    result = np.where(exponent == 0, 0x7F800000, result)
    return np.where(np.isnan(x), np.float32(np.nan), from_bits(result | sign))


def rsqrt(x: Any) -> np.ndarray:
    """1/sqrt(x) in float32, within 0.627 ulp; exact for powers of four.

    +0 gives infinity, -0 minus infinity, +infinity +0, negative numbers and NaN give NaN.
    """
    x = flush(x)
    code = bits(x).astype(np.int64)
    sign, exponent, mantissa = code >> 31, code >> 23 & 0xFF, code & 0x7FFFFF
    odd = ~exponent & 1                                 # of the true exponent, 127 less
    guess = _read(rsqrt_table, odd << 6 | mantissa >> 17, mantissa >> 5 & 0xFFF, -1) >> 2
    root = ((((mantissa + (1 << 23)) << odd) * guess) + (1 << 14)) >> 15
    error = ~(root * guess - (1 << 42))
    better = (guess << 13) + ((guess * (error >> 11)) >> 19)
    rounded = (better + 32) >> 6
    # biased: 127 - floor((exponent - 127) / 2) - 1, with the guess in [1/2, 1)
    result = ((126 - ((exponent - 127) >> 1)) << 23) + rounded - (1 << 23)
    result = np.where(exponent == 255, 0, result)
    bad = np.isnan(x) | ((sign == 1) & (exponent != 0))
    result = np.where(exponent == 0, 0x7F800000 | sign << 31, result)
    return np.where(bad, np.float32(np.nan), from_bits(result & 0xFFFFFFFF))


def _split(operand: np.ndarray, position_bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Segment and position of an operand of a table."""
    return operand >> position_bits, operand & ((1 << position_bits) - 1)


def log2_mantissa(fraction: np.ndarray) -> np.ndarray:
    """log2(1 + f) for f in units of 2^-20, from 0 to below 1: int64 in the same units, within 2^-16.8."""
    return _read(log2_table, *_split(fraction, LOG2.position_bits), 1)


def log2_slope(t: np.ndarray) -> np.ndarray:
    """-log2(1 - t) / t for t from 0 to below 1/2 in units of 2^-21: int64 in units of 2^-20, within 2^-18."""
    return _read(log2_slope_table, *_split(t, LOG2_SLOPE.position_bits), 1)
