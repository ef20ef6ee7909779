"""Golden model of the softmax unit: many vectors of one length at once, bit for bit; no cycles and no beats."""

import dataclasses
from typing import Any

import numpy as np

from sim_models.numerics.float32 import bits, flush, from_bits
from sim_models.numerics.functions import exp2_fixed, reciprocal
from sim_models.numerics.tables import EXP2
from sim_models.params.manager.pools.pool import H_WIDTH
from sim_models.params.manager.softmax.softmax_unit import (
    BAND_WIDTH,
    BANDS,
    FRACTION_WIDTH,
    LARGE_EXPONENT,
    LARGE_SHIFT,
    LOG2_E_18,
    LOG2_E_FRACTION,
    SoftmaxUnitParams,
)

__all__ = ["SoftmaxResult", "SoftmaxUnit"]

_ONE = 1 << (H_WIDTH - 1)
_MINUS_INFINITY = np.float32(-np.inf)
_FINITE = np.finfo(np.float32).max
_BAND = 1 << BAND_WIDTH


@dataclasses.dataclass(frozen=True)
class SoftmaxResult:
    """Results of a number of vectors, field by field as in ``rtl.manager.softmax.layouts.softmax_result``; int64
    each."""

    token: np.ndarray
    largest: np.ndarray
    p: np.ndarray
    masked: np.ndarray
    nan: np.ndarray


class SoftmaxUnit:
    """The unit; its results do not depend on how logits are put into beats.

    Parameters
    ----------
    p:
        Parameters of the block.
    """

    def __init__(self, p: SoftmaxUnitParams) -> None:
        self.p = p

    def results(self, codes: Any, keep: Any = True, given: Any = -1) -> SoftmaxResult:
        """Results of ``n`` vectors.

        Parameters
        ----------
        codes: uint32 (n, length)
            Float32 codes of the logits.
        keep: bool, broadcast to (n, length)
            Which of them count.
        given: int, broadcast to (n,)
            The token whose probability is wanted; -1 for the one of the largest logit.
        """
        codes = np.asarray(codes)
        n, length = codes.shape
        given = np.broadcast_to(np.asarray(given, np.int64), n)
        x = from_bits(codes)
        kept = np.broadcast_to(keep, x.shape)
        present = kept & ~np.isnan(x) & (x != _MINUS_INFINITY)
        x = np.where(present, np.clip(flush(x), -_FINITE, _FINITE), _MINUS_INFINITY)

        masked = ~present.any(axis=1)
        largest = np.where(masked, 0, x.argmax(axis=1))
        token = np.where(given < 0, largest, given)
        at = np.arange(n), np.minimum(token, length - 1)
        counts = (token < length) & present[at]

        exponent, significand = exp2_fixed(_exponents(np.where(present, x, 0)))
        band = exponent >> BAND_WIDTH
        significand >>= EXP2.base_bits - FRACTION_WIDTH
        terms = significand << (exponent & (_BAND - 1))
        top = np.where(present, band, np.iinfo(np.int64).min).max(axis=1)
        below = top[:, None] - band
        sums = [np.where(present & (below == k), terms, 0).sum(axis=1) for k in range(BANDS)]
        # in units of the last place of the band below the top
        totals = [sum(int(s) << _BAND >> _BAND * k for k, s in enumerate(row)) for row in zip(*sums, strict=True)]
        distance = below[at]
        counts &= (distance >= 0) & (distance < BANDS)
        # a vector without a distribution has no sum: anything but 0
        inverse = bits(reciprocal(np.array([_cut(v or 1) for v in totals], np.float32))).astype(np.int64)
        product = significand[at] * (inverse & 0x7FFFFF | 1 << 23)
        scale = (exponent & (_BAND - 1))[at] + _BAND * (1 - distance) + (inverse >> 23) - 127 - 23 + H_WIDTH - 1
        # twice the probability in UQ1.15, cut off, then rounded
        twice = np.where(counts, product >> np.clip(-scale - 1, 0, 63), 0)
        p = np.minimum((twice + 1) >> 1, _ONE)
        nan = np.asarray((kept & np.isnan(from_bits(codes))).any(axis=1))
        return SoftmaxResult(token, largest, np.where(masked, 0, p), masked.astype(np.int64), nan.astype(np.int64))


def _exponents(x: np.ndarray) -> np.ndarray:
    """x log2(e) in units of 2^-20, int64; a negative number's is the complement of its magnitude's."""
    code = bits(x).astype(np.int64) & 0x7FFFFFFF
    # a significand of 24 bits times 18 bits is exact in float64
    small = np.minimum(np.abs(x.astype(np.float64)), 2.0 ** (LARGE_EXPONENT - 127))
    size = np.floor(small * LOG2_E_18 * 2.0 ** (EXP2.operand_bits - LOG2_E_FRACTION)).astype(np.int64)
    size = np.where(code >> 23 >= LARGE_EXPONENT, code << (LARGE_SHIFT + EXP2.operand_bits), size)
    return np.where(x < 0, ~size, size)


def _cut(value: int) -> int:
    """An integer cut off to 24 bits."""
    drop = max(value.bit_length() - 24, 0)
    return value >> drop << drop
