"""Golden model of the softmax unit: many vectors of one length at once, bit for bit; no cycles."""

import dataclasses
from typing import Any

import numpy as np

from sim_models.numerics.convert import float32_to_int
from sim_models.numerics.float32 import add, flush, from_bits, multiply, subtract
from sim_models.numerics.functions import exp2, reciprocal
from sim_models.params.arith.stages import LOG2_E
from sim_models.params.manager.pools.pool import H_WIDTH
from sim_models.params.manager.softmax.softmax_unit import SOFTMAX_RISE, SoftmaxUnitParams

__all__ = ["SoftmaxResult", "SoftmaxUnit"]

_ONE = 1 << (H_WIDTH - 1)
_MINUS_INFINITY = np.float32(-np.inf)
_FINITE = np.finfo(np.float32).max


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
    """The unit.

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
        x = np.where(present, np.minimum(flush(x), _FINITE), _MINUS_INFINITY)

        masked = ~present.any(axis=1)
        largest = np.where(masked, 0, x.argmax(axis=1))
        token = np.where(given < 0, largest, given)
        inside = (token < length) & ~((given < 0) & masked)
        chosen = np.where(inside, x[np.arange(n), np.minimum(token, length - 1)], _MINUS_INFINITY)

        lanes = self.p.lanes
        sums = _Sums(self.p, n)
        for at in range(0, length, lanes):
            sums.take(x[:, at:at + lanes])
        p = np.where(masked, 0, sums.probability(chosen))
        nan = np.asarray((kept & np.isnan(from_bits(codes))).any(axis=1))
        return SoftmaxResult(token, largest, p, masked.astype(np.int64), nan.astype(np.int64))


class _Sums:
    """Two sums of each vector: relative to its anchor, and to the anchor before, which was at least 2^-46 lower."""

    def __init__(self, p: SoftmaxUnitParams, n: int) -> None:
        self.p = p
        self.anchored = np.zeros(n, bool)
        self.anchor, self.old_anchor = np.zeros(n, np.float32), np.zeros(n, np.float32)
        #: in units of 2^(scale - fraction_width)
        self.sum, self.old_sum = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.scale, self.old_scale = np.full(n, -127, np.int64), np.zeros(n, np.int64)

    def take(self, x: np.ndarray) -> None:
        """A beat, float32 (n, up to lanes); -inf where it is masked."""
        top = x.max(axis=1)
        there = top > _MINUS_INFINITY
        switched = there & (~self.anchored | (top > add(self.anchor, from_bits(SOFTMAX_RISE))))
        first = switched & ~self.anchored
        # nothing was summed before the first anchor
        self.old_sum = np.where(switched, self.sum, self.old_sum)
        self.old_scale = np.where(switched, self.scale, self.old_scale)
        self.old_anchor = np.where(switched, np.where(first, top, self.anchor), self.old_anchor)
        self.anchor = np.where(switched, top, self.anchor)
        self.anchored |= there

        mantissa, exponent = np.frexp(_power(x, self.anchor[:, None]).astype(np.float64))
        exponent = np.where(mantissa > 0, exponent - 1, -127).astype(np.int64)
        scale = np.where(switched, exponent.max(axis=1), np.maximum(self.scale, exponent.max(axis=1)))
        carried = np.where(switched, 0, _shifted(self.sum, scale - self.scale))
        # a term is an integer of 24 bits times a power of two
        integer = np.ldexp(mantissa, 24).astype(np.int64) << (self.p.fraction_width - 23)
        terms = _shifted(integer, scale[:, None] - exponent)
        self.sum, self.scale = carried + terms.sum(axis=1), scale

    def probability(self, chosen: np.ndarray) -> np.ndarray:
        """UQ1.15 of logits."""
        power, weight = _power(chosen, self.anchor), _power(self.old_anchor, self.anchor)
        total = add(self._code(self.sum, self.scale), multiply(weight, self._code(self.old_sum, self.old_scale)))
        return np.clip(float32_to_int(multiply(reciprocal(total), power), H_WIDTH + 1), 0, _ONE)

    def _code(self, value: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Float32 of a sum in units of 2^15, cut off to 24 bits."""
        length = np.array([int(v).bit_length() for v in value], np.int64)
        cut = np.maximum(length - 24, 0)
        exact = np.ldexp((value >> cut).astype(np.float64), cut + scale - self.p.fraction_width - (H_WIDTH - 1))
        return exact.astype(np.float32)


def _power(x: np.ndarray, anchor: np.ndarray) -> np.ndarray:
    """2^((x - anchor) log2(e)) in the hardware's steps."""
    return exp2(multiply(subtract(x, anchor), from_bits(LOG2_E)))


def _shifted(value: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Shifted to the right by any distance."""
    return value >> np.minimum(distance, 63)
