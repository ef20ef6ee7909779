"""The softmax unit's hardware against its model at every step of the output, and on hundreds of vectors."""

import dataclasses

import numpy as np
import pytest

from rtl.manager.softmax.layouts import logits_beat, softmax_result
from rtl.manager.softmax.softmax_unit import SoftmaxUnit
from sim_models.golden.manager.softmax.softmax_unit import SoftmaxUnit as Model
from sim_models.numerics.float32 import bits
from sim_models.params.manager.softmax.softmax_unit import SoftmaxUnitParams
from tb.common.native import NativeLibrary, NativeSim
from tb.common.packing import codec
from tb.common.scoreboard import compare
from tb.manager.softmax.logits import FIELDS, beats, expected, random_vector
from tests.designs.run import BUILDS

P = SoftmaxUnitParams(lanes=2, token_width=8)
LANES = (1, 2, 4, 8, 16, 32, 64)
ONE = 1 << 15


@pytest.fixture(scope="module")
def library() -> NativeLibrary:
    return NativeSim(SoftmaxUnit(P), BUILDS).library


def _check(sim: NativeSim, want: np.ndarray, what: str) -> None:
    count = sim.total("o") + len(want)
    sim.run({"o": count}, 400 * len(want) + 10_000)
    got = codec(softmax_result(P)).unpack(sim.take("o", len(want))[0])
    compare(np.stack([got[name] for name in FIELDS], axis=1), want, what)


def test_every_step_of_the_output(library: NativeLibrary) -> None:
    """Two logits whose probability is at and around each UQ1.15 number and each point between two of them."""
    sim = NativeSim(library)
    at = np.arange(1, 2 * ONE) / (2 * ONE)
    distance = np.log(at / (1 - at)).astype(np.float32)
    for moved in (distance, np.nextafter(distance, np.float32(9)), np.nextafter(distance, np.float32(-9))):
        codes = bits(np.stack([moved, np.zeros_like(moved)], axis=1))
        sim.push("i", codec(logits_beat(P)).pack(data=codes.astype(np.int64), keep=3, last=1, given=1, token=0))
        r = Model(P).results(codes, True, 0)
        _check(sim, np.stack([getattr(r, name) for name in FIELDS], axis=1), "[point, field]")
        assert set(range(1, ONE)) <= set(r.p.tolist())


@pytest.mark.parametrize("lanes", [pytest.param(n, marks=[pytest.mark.long] if n > 16 else []) for n in LANES])
def test_hundreds_of_vectors(lanes: int) -> None:
    """The same results with any number of lanes, at full pace and with pauses on both sides."""
    p = dataclasses.replace(P, lanes=lanes)
    gen = np.random.default_rng(8)
    vectors = [random_vector(gen, int(gen.integers(1, 1 + (1 << int(gen.integers(1, 9))))), P.token_width)
               for _ in range(900)]
    want = expected(P, vectors)
    library = NativeSim(SoftmaxUnit(p), BUILDS).library
    for pace in (1.0, 0.3):
        sim = NativeSim(library)
        for stream in sim.streams:
            sim.rate(stream, pace)
        for vector in vectors:
            sim.push("i", codec(logits_beat(p)).pack(beats(p, vector)))
        _check(sim, want, "[vector, field]")


def test_new_bands(library: NativeLibrary) -> None:
    """Beats whose maxima rise by parts of a band, by several, and by more than are summed."""
    gen = np.random.default_rng(9)
    sim = NativeSim(library)
    n, length = 2000, 12
    steps = gen.choice([0.0, 0.5, 5.5, 11.0, 11.1, 22.2, 33.3, 45.0], (n, length // 2))
    level = steps.cumsum(axis=1).repeat(2, axis=1)
    codes = bits((level + gen.uniform(-0.3, 0.3, (n, length))).astype(np.float32))
    vectors = codec(logits_beat(P)).pack(
        data=codes.reshape(-1, 2).astype(np.int64), keep=3, last=np.tile([0, 0, 0, 0, 0, 1], n), given=0, token=0)
    sim.push("i", vectors)
    r = Model(P).results(codes)
    _check(sim, np.stack([getattr(r, name) for name in FIELDS], axis=1), "[vector, field]")
