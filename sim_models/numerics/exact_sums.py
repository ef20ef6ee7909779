"""Exact sums of products over whole arrays: what the PIM side computes, fast enough for real matrices.

FP16 numbers are integers in units of 2^-24, their products integers in units of 2^-48. A factor is split into two
halves of about 20 bits, so that numpy's int64 holds sums of up to 2^20 products of halves; the sums are put
together in Python integers. The order of a sum does not matter, and nothing is rounded before :func:`rounded`.
"""

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FORMATS", "Sums", "dot", "rounded", "zeros"]

#: result formats: name to bits
FORMATS = {"float32": 32, "fp16": 16, "int32": 32}

_HALF = 20                  # bits of a low half
_MOST_TERMS = 1 << 20       # products of halves are below 2^42


@dataclasses.dataclass
class Sums:
    """Exact sums of one shape.

    Members
    -------
    value: object array of int
        In units of 2^-48 (FP16) or 1 (int8); what infinities and NaN contribute is not in it.
    positive, negative, nan: bool arrays
        A product was +infinity, -infinity, NaN.
    """

    value: NDArray[Any]
    positive: NDArray[Any]
    negative: NDArray[Any]
    nan: NDArray[Any]

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(self.value + other.value, self.positive | other.positive, self.negative | other.negative,
                    self.nan | other.nan)

    def __getitem__(self, where: Any) -> "Sums":
        return Sums(self.value[where], self.positive[where], self.negative[where], self.nan[where])

    def __setitem__(self, where: Any, new: "Sums") -> None:
        self.value[where], self.positive[where] = new.value, new.positive
        self.negative[where], self.nan[where] = new.negative, new.nan

    def sum(self, axis: int | tuple[int, ...]) -> "Sums":
        """The sums of sums along axes."""
        flags = (np.asarray(f.any(axis=axis)) for f in (self.positive, self.negative, self.nan))
        return Sums(np.asarray(self.value.sum(axis=axis), object), *flags)

    def transpose(self, *axes: int) -> "Sums":
        """The sums with their axes in another order."""
        flags = (f.transpose(axes) for f in (self.positive, self.negative, self.nan))
        return Sums(self.value.transpose(axes), *flags)

    @classmethod
    def stack(cls, parts: "list[Sums]", axis: int) -> "Sums":
        """Sums of one shape side by side along a new axis."""
        members = zip(*((s.value, s.positive, s.negative, s.nan) for s in parts), strict=True)
        return cls(*(np.stack(m, axis) for m in members))


def zeros(shape: tuple[int, ...]) -> Sums:
    """Sums of nothing."""
    return Sums(np.full(shape, 0, object), *(np.zeros(shape, bool) for _ in range(3)))


def dot(a: NDArray[Any], b: NDArray[Any]) -> Sums:
    """Sums of the products of two arrays along their last axis; the others are broadcast.

    Parameters
    ----------
    a, b: float16 or int8 arrays
        Of the same type and last size, at most 2^20.
    """
    if a.dtype != b.dtype or a.dtype not in (np.float16, np.int8):
        raise ValueError(f"two float16 or two int8 arrays were wanted, {a.dtype} and {b.dtype} came")
    if a.shape[-1] != b.shape[-1] or a.shape[-1] > _MOST_TERMS:
        raise ValueError(f"at most {_MOST_TERMS} terms on both sides were wanted, "
                         f"{a.shape[-1]} and {b.shape[-1]} came")
    if a.dtype == np.int8:
        total = _contract(a.astype(np.int64), b.astype(np.int64))
        return Sums(total.astype(object), *(np.zeros(total.shape, bool) for _ in range(3)))
    a_units, b_units = _units(a), _units(b)
    (a_low, a_high), (b_low, b_high) = _halves(a_units), _halves(b_units)
    middle = _contract(a_low, b_high) + _contract(a_high, b_low)
    value = ((_contract(a_high, b_high).astype(object) << 2 * _HALF) + (middle.astype(object) << _HALF)
             + _contract(a_low, b_low).astype(object))
    return Sums(np.asarray(value, object), *_specials(a, b))


def _contract(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(np.einsum("...i,...i->...", a, b))


def _units(x: NDArray[Any]) -> NDArray[np.int64]:
    """FP16 in units of 2^-24, at most 2^40; infinity and NaN are 0."""
    code = np.ascontiguousarray(x).view(np.uint16).astype(np.int64).reshape(x.shape)
    exponent, fraction = code >> 10 & 31, code & 1023
    size = np.where(exponent == 0, fraction, (fraction | 1024) << np.maximum(exponent - 1, 0))
    size[exponent == 31] = 0
    return np.where(code >> 15, -size, size)


def _halves(units: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return units & ((1 << _HALF) - 1), units >> _HALF


def _specials(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Where a product is +infinity, -infinity or NaN."""
    shape = np.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    if np.isfinite(a).all() and np.isfinite(b).all():
        return np.zeros(shape, bool), np.zeros(shape, bool), np.zeros(shape, bool)
    with np.errstate(invalid="ignore", over="ignore"):
        product = a.astype(np.float32) * b.astype(np.float32)
    kinds = product == np.inf, product == -np.inf, np.isnan(product)
    return tuple(np.asarray(kind.any(axis=-1)) for kind in kinds)


def rounded(sums: Sums, form: str) -> NDArray[np.uint32]:
    """Codes of sums, rounded once to nearest even: ``float32``, ``fp16`` (of FP16 products) or ``int32`` (of int8).

    A sum of zero is +0. NaN is 0x7fc00000 or 0x7e00, and so is the sum of both infinities.
    """
    if form == "int32":
        return (sums.value & 0xFFFFFFFF).astype(np.uint32)
    kind, code, nan, precision, least = _FLOATS[form]
    with np.errstate(over="ignore"):        # beyond the largest number: infinity
        finite = np.array([_nearest(int(v), precision, least) for v in sums.value.flat], float).astype(kind)
    result = np.where(sums.positive, kind(np.inf), finite.reshape(sums.value.shape))
    codes = np.where(sums.negative, kind(-np.inf), result).astype(kind).view(code)
    return np.where(sums.nan | (sums.positive & sums.negative), nan, codes).astype(np.uint32)


#: type, type of codes, canonical NaN, significant bits, weight of the last place of the smallest numbers
_FLOATS: dict[str, tuple[Any, Any, int, int, int]] = {
    "float32": (np.float32, np.uint32, 0x7FC00000, 24, 0),      # no sum is small enough to be subnormal
    "fp16": (np.float16, np.uint16, 0x7E00, 11, 24)}


def _nearest(value: int, precision: int, least: int) -> float:
    """The nearest number of so many significant bits and at least 2^(least - 48) in the last place."""
    size = abs(value)
    shift = max(size.bit_length() - precision, least)
    kept, lost, half = size >> shift, size & ((1 << shift) - 1), 1 << shift >> 1
    kept += lost > half or (lost == half > 0 and kept & 1)
    return math.copysign(math.ldexp(kept, shift - 48), value)
