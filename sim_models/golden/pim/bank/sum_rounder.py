"""Golden model of the rounding of exact sums, with Python integers."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sim_models.golden.arith.pipeline import PipelineModel
from sim_models.golden.pim.bank.bank_pe import ExactSum
from sim_models.params.pim.bank.sum_rounder import SumRounderParams

__all__ = ["FLOAT32", "FP16", "INT32", "SumRounder", "float32_code", "float32_codes", "fp16_code", "fp16_codes",
           "round_sum", "rounded_code"]

#: numbers of the formats
FLOAT32, FP16, INT32 = 0, 1, 2


def float32_code(total: ExactSum) -> int:
    """Float32 code of an FP16 sum."""
    return rounded_code(total, fraction_bits=23, bias=127)


def fp16_code(total: ExactSum) -> int:
    """FP16 code of an FP16 sum."""
    return rounded_code(total, fraction_bits=10, bias=15)


def float32_codes(sums: Iterable[ExactSum]) -> np.ndarray:
    """Float32 codes of FP16 sums, uint32."""
    return np.array([float32_code(s) for s in sums], np.uint32)


def fp16_codes(sums: Iterable[ExactSum]) -> np.ndarray:
    """FP16 codes of FP16 sums, uint16."""
    return np.array([fp16_code(s) for s in sums], np.uint16)


def round_sum(total: ExactSum, form: int) -> int:
    """A sum in a format: code of 32 or 16 bits, or the integer modulo 2^32."""
    if form == INT32:
        return total.value % (1 << 32)
    return fp16_code(total) if form == FP16 else float32_code(total)


def rounded_code(total: ExactSum, *, fraction_bits: int, bias: int) -> int:
    """Code of an IEEE format of an FP16 sum, rounded to nearest even once.

    Parameters
    ----------
    total:
        The sum.
    fraction_bits, bias:
        Bits of the format's fraction, and what is added to its exponent.
    """
    top = 2 * bias + 1                                  # exponent of infinities
    sign_bit = (top + 1) << fraction_bits
    if total.nan or (total.positive and total.negative):
        return (top << fraction_bits) | (1 << (fraction_bits - 1))
    if total.positive or total.negative:
        return (top << fraction_bits) | (sign_bit if total.negative else 0)
    magnitude = abs(total.value)
    # exponent of the leading one, not below that of the smallest normal number
    exponent = max(magnitude.bit_length() - 1 - 48, 1 - bias)
    drop = 48 + exponent - fraction_bits
    if drop > 0:
        units, rest = magnitude >> drop, magnitude & ((1 << drop) - 1)
        half = 1 << (drop - 1)
        units += rest > half or (rest == half and units & 1)
    else:
        units = magnitude << -drop
    if units == 0:
        return sign_bit if total.value < 0 else 0
    code = ((exponent + bias - 1) << fraction_bits) + units
    return min(code, top << fraction_bits) | (sign_bit if total.value < 0 else 0)


class SumRounder(PipelineModel):
    """Golden model of the rounder."""

    p: SumRounderParams

    def results(self, *, sum: Any, format: Any) -> dict[str, np.ndarray]:
        """Results of sums, one or a sequence of them, in formats."""
        if isinstance(sum, ExactSum):
            return {"result": np.array(round_sum(sum, int(format)), np.uint32)}
        sums: Sequence[ExactSum] = sum
        return {"result": np.array([round_sum(s, int(f)) for s, f in zip(sums, format, strict=True)], np.uint32)}
