"""Conversions between float32, integers, FP16 and BF16, and exact products of the 16-bit formats.

Everything rounds to nearest even. Float32 and BF16 have no subnormals (zeros of their sign), FP16 has them, both
on the way in and on the way out: its range is small enough for them to matter. FP16 arrays are numpy float16,
BF16 arrays are codes, uint16.
"""

from typing import Any

import numpy as np

from sim_models.numerics.float32 import bits, flush, from_bits, multiply

__all__ = ["bf16_product", "bf16_to_float32", "float32_to_bf16", "float32_to_fp16", "float32_to_int",
           "fp16_bits", "fp16_from_bits", "fp16_product", "fp16_to_float32", "int_to_float32"]


def fp16_bits(x: Any) -> np.ndarray:
    """Codes of FP16 numbers, uint16 of the same shape."""
    return np.ascontiguousarray(np.asarray(x, np.float16)).view(np.uint16).reshape(np.shape(x))


def fp16_from_bits(codes: Any) -> np.ndarray:
    """FP16 numbers with these codes, of the same shape."""
    return np.ascontiguousarray(np.asarray(codes).astype(np.uint16)).view(np.float16).reshape(np.shape(codes))


def float32_to_int(x: Any, width: int) -> np.ndarray:
    """Signed integers of ``width`` bits, int64: rounded, saturated; NaN gives 0."""
    low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
    exact = np.rint(flush(x).astype(np.float64))
    return np.where(np.isnan(exact), 0, np.clip(exact, low, high)).astype(np.int64)


def int_to_float32(n: Any) -> np.ndarray:
    """Float32 nearest to integers of at most 53 bits; 0 gives +0."""
    # float64 holds the integer exactly, so that the conversion is the only rounding
    return np.asarray(n).astype(np.float64).astype(np.float32)


def float32_to_fp16(x: Any) -> np.ndarray:
    """FP16, float16: 65520 and above become infinity, small results are subnormal, NaN gives 0x7e00."""
    with np.errstate(over="ignore", under="ignore"):
        half = flush(x).astype(np.float16)
    return np.where(np.isnan(half), np.float16(np.nan), half)


def fp16_to_float32(x: Any) -> np.ndarray:
    """Float32, exact, subnormals included; NaN gives 0x7fc00000."""
    return flush(np.asarray(x, np.float16).astype(np.float32))


def float32_to_bf16(x: Any) -> np.ndarray:
    """BF16 codes, uint16: overflow becomes infinity, subnormals zero, NaN gives 0x7fc0."""
    code = bits(flush(x)).astype(np.uint64)
    rounded = (code + 0x7FFF + (code >> np.uint64(16) & np.uint64(1))) >> np.uint64(16)
    return np.where(np.isnan(np.asarray(x, np.float32)), 0x7FC0, rounded).astype(np.uint16)


def bf16_to_float32(codes: Any) -> np.ndarray:
    """Float32, exact but for subnormals, which become zeros; NaN gives 0x7fc00000."""
    return flush(from_bits(np.asarray(codes).astype(np.uint32) << np.uint32(16)))


def fp16_product(a: Any, b: Any) -> np.ndarray:
    """Float32 product of two FP16 numbers, exact for all of them: 22 bits, 2^-48 at least."""
    return multiply(fp16_to_float32(a), fp16_to_float32(b))


def bf16_product(a: Any, b: Any) -> np.ndarray:
    """Float32 product of BF16 codes: 16 bits, hence exact unless it overflows or is flushed."""
    return multiply(bf16_to_float32(a), bf16_to_float32(b))
