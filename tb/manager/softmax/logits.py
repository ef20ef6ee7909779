"""Vectors of logits for the softmax unit, and how they are put into beats."""

import dataclasses
from typing import Any

import numpy as np

from sim_models.golden.manager.softmax.softmax_unit import SoftmaxUnit
from sim_models.numerics.float32 import bits
from sim_models.params.manager.softmax.softmax_unit import SoftmaxUnitParams
from tb.arith.numbers import float32_codes

__all__ = ["FIELDS", "Vector", "beats", "expected", "random_vector"]

#: fields of a result
FIELDS = ("token", "largest", "p", "masked", "nan")
#: -inf, +inf, a NaN, -0
_SPECIALS = np.array([0xFF800000, 0x7F800000, 0x7FC00001, 0x80000000], np.uint32)


@dataclasses.dataclass(frozen=True)
class Vector:
    """One vector: codes uint32 (length,), which of them count, the given token or -1."""

    codes: np.ndarray
    keep: np.ndarray
    given: int = -1


def random_vector(gen: np.random.Generator, length: int, token_width: int) -> Vector:
    """Logits of one of several kinds, with and without masks, with and without a given token."""
    kind = int(gen.integers(7))
    spread = float(10.0 ** gen.integers(-3, 4))
    if kind == 0:
        codes = float32_codes(gen, length)
    elif kind == 1:
        codes = bits(np.sort(gen.normal(0, spread, length).astype(np.float32)))             # new maxima all the time
    elif kind == 2:
        codes = bits(gen.integers(-2, 3, length).astype(np.float32) * np.float32(spread))   # ties
    elif kind == 3:
        codes = bits(gen.normal(0, 3, length).astype(np.float32) + np.float32(-1e6))
    elif kind == 4:
        # new bands, and then logits that leave weight to those before
        steps = gen.choice([0.5, 2, 12]) * gen.choice([0, 1, 3], length)
        rising = np.minimum(np.cumsum(steps), gen.choice([32.5, 34, 67, 1e4]))
        codes = bits((rising + gen.normal(0, 0.5, length)).astype(np.float32))
    else:
        codes = bits(gen.normal(0, spread, length).astype(np.float32))
    special = gen.random(length) < gen.choice([0, 0, 0.1, 0.9])
    specials = gen.choice(_SPECIALS, length, p=[0.85, 0.05, 0.05, 0.05])
    codes = np.where(special, specials, codes).astype(np.uint32)
    keep = gen.random(length) >= gen.choice([0, 0, 0.5, 1.0])
    given = int(gen.choice([-1, -1, int(gen.integers(length)), int(gen.integers(1 << token_width))]))
    return Vector(codes, keep, given)


def beats(p: SoftmaxUnitParams, vector: Vector, filler: int = 0x7FFFFFFF) -> dict[str, Any]:
    """Fields of the beats of a vector; lanes behind its end hold something that must not count."""
    length, lanes = len(vector.codes), p.lanes
    count = -(-length // lanes)
    data = np.full(count * lanes, filler, np.int64)
    keep = np.zeros(count * lanes, np.uint64)
    data[:length], keep[:length] = vector.codes, vector.keep
    masks = keep.reshape(count, lanes) @ (np.uint64(1) << np.arange(lanes, dtype=np.uint64))
    return {"data": data.reshape(count, lanes), "keep": masks,
            "last": np.arange(count) == count - 1, "given": int(vector.given >= 0), "token": max(vector.given, 0)}


def expected(p: SoftmaxUnitParams, vectors: list[Vector]) -> np.ndarray:
    """Results by the golden model, int64 (vectors, fields)."""
    model = SoftmaxUnit(p)
    rows = []
    for v in vectors:
        result = model.results(v.codes[None], v.keep[None], [v.given])
        rows.append([int(getattr(result, name)[0]) for name in FIELDS])
    return np.array(rows, np.int64)
