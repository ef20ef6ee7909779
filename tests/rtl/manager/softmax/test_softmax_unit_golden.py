"""The softmax unit's and the draft controller's models: accuracy, order, edges, and H as in the decoding model."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim_models.golden.manager.draft_controller import DraftController, Drafted, Inputs, Settings, Update
from sim_models.golden.manager.softmax.softmax_unit import SoftmaxResult, SoftmaxUnit
from sim_models.numerics.float32 import bits, from_bits
from sim_models.params.base import ParamError
from sim_models.params.manager.draft_controller import DraftControllerParams
from sim_models.params.manager.softmax.softmax_unit import SoftmaxUnitParams
from sim_models.specdec.fixed import ONE, multiply, quantise
from sim_models.specdec.policies import Confidence, Cumulative, Fixed, LoadTau, Step

P = SoftmaxUnitParams()
#: the bound that the unit promises, of a probability
BOUND = 2.0**-15
#: what it reaches is nearer to half a unit of UQ1.15
REACHED = 2.0**-15.8


def results(x: np.ndarray, given: object = -1, keep: object = True) -> SoftmaxResult:
    return SoftmaxUnit(P).results(bits(x.astype(np.float32)), keep, given)


def exact(x: np.ndarray) -> np.ndarray:
    """Softmax of float32 logits in float64."""
    wide = x.astype(np.float32).astype(np.float64)
    power = np.exp(wide - wide.max(axis=1, keepdims=True))
    return power / power.sum(axis=1, keepdims=True)


def error(x: np.ndarray, given: np.ndarray) -> float:
    """Largest error; the largest logit is right and no probability is above 1 on the way."""
    got = results(x, given)
    assert got.p.max() <= ONE
    assert (got.largest == x.astype(np.float32).argmax(axis=1)).all()
    return float(np.abs(got.p / ONE - exact(x)[np.arange(len(x)), got.token]).max())


@pytest.mark.parametrize("spread", [0.01, 1, 3, 10, 100, 1e4])
@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 300])
def test_error_on_random_logits(length: int, spread: float) -> None:
    rng = np.random.default_rng([length, int(spread * 100)])
    x = rng.normal(0, spread, (1500, length))
    assert error(x, x.astype(np.float32).argmax(axis=1)) <= REACHED
    assert error(x, rng.integers(0, length, 1500)) <= REACHED


def test_error_at_every_step_of_the_output() -> None:
    """Two logits whose probability is at, just below and just above each of the 32768 points of rounding."""
    at = (np.arange(ONE) + 0.5) / ONE
    distance = np.log(at / (1 - at)).astype(np.float32)
    for moved in (distance, np.nextafter(distance, np.float32(np.inf)), np.nextafter(distance, np.float32(-np.inf))):
        for offset in (0.0, 32.0, -1000.0):
            x = np.stack([moved + np.float32(offset), np.full(ONE, offset, np.float32)], axis=1)
            assert error(x, np.zeros(ONE, np.int64)) <= REACHED


@pytest.mark.parametrize("offset", [0.0, 5.5, 11.0, -1000.0])
def test_error_on_both_sides_of_a_band(offset: float) -> None:
    """A band is 16 ln(2), about 11.1: levels that are a band apart, a little more, and more than are summed."""
    rng = np.random.default_rng(3)
    for steps in ((32.0,), (11.0, 11.2), (11.1, 11.1, 11.1), (20.0, 13.0, 1.0), (45.0, 1.0, 31.5), (5.0, 5.0, 23.0)):
        for wobble in (1e-6, 0.1, 3.0):
            level = np.concatenate([[0.0], np.cumsum(steps)]).repeat(8) + offset
            x = level + rng.uniform(-wobble, wobble, (2000, len(level)))
            for token in (x.argmax(axis=1), rng.integers(0, len(level), 2000)):
                assert error(x, token) <= REACHED


@pytest.mark.parametrize("step", [1e-4, 1e-3, 0.1, 0.7, 3, 7.9, 31.9, 32.1])
def test_error_does_not_grow_with_the_number_of_maxima(step: float) -> None:
    """Every logit is a new maximum."""
    x = np.arange(6000, dtype=np.float64)[None] * step + np.array([[0.0], [-1e4], [5.0]])
    for token in (5999, 5998, 5990, 0):
        assert error(x, np.full(3, token)) <= REACHED


def test_error_at_any_size_of_logits() -> None:
    rng = np.random.default_rng(4)
    for exponent in range(-120, 127, 3):
        x = (rng.integers(-6, 7, (50, 40)) * 2.0**max(exponent - 22, -126)).astype(np.float32)
        x += np.float32(rng.choice([-1, 1]) * 2.0**exponent)
        assert error(x, x.argmax(axis=1)) <= REACHED


def test_error_on_a_whole_vocabulary() -> None:
    """The longest vocabulary: all alike, one that has half of the weight, and a tail just above what is left out."""
    n = 1 << P.token_width
    x = np.zeros((5, n), np.float32)
    x[1, -1] = np.log(n - 1)
    x[2] = np.random.default_rng(5).normal(0, 2, n)
    x[2, 77] = 16
    x[3, 5] = 15.9 * np.log(2)
    x[4, 5] = 48.5 * np.log(2)
    assert error(x, np.array([0, n - 1, 77, 5, 5])) <= REACHED


def test_the_order_of_logits_does_not_matter() -> None:
    """Levels over eight bands, some of which are summed and some are not: the same probability in any order."""
    rng = np.random.default_rng(11)
    levels = rng.choice([0.0, 11.0, 22.0, 33.0, 44.0, 55.0, 88.0], (300, 60))
    x = (levels + rng.normal(0, 3, (300, 60))).astype(np.float32)
    token = rng.integers(0, 60, 300)
    want = results(x, token)
    assert len(set(want.p.tolist())) > 30
    for _ in range(5):
        order = rng.permutation(60)
        moved = results(x[:, order], np.argsort(order)[token])
        assert (moved.p == want.p).all()


@given(st.lists(st.tuples(st.integers(0, 0xFFFFFFFF), st.booleans()), min_size=1, max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_codes_at_all(logits: list[tuple[int, bool]]) -> None:
    """All probabilities together are 1 but for rounding, and in the order of the logits; the flags are right."""
    codes = np.array([c for c, _ in logits], np.uint32)
    keep = np.array([k for _, k in logits])
    n = len(codes)
    x = from_bits(codes)
    every = SoftmaxUnit(P).results(np.tile(codes, (n, 1)), keep, np.arange(n))
    best = SoftmaxUnit(P).results(codes[None], keep)
    counts = keep & ~np.isnan(x) & (x > -np.inf)
    assert best.masked[0] == (not counts.any())
    assert best.nan[0] == (keep & np.isnan(x)).any()
    assert not every.p[~counts].any()
    if not counts.any():
        assert (best.token[0], best.largest[0], best.p[0]) == (0, 0, 0)
        return
    values = np.where(counts, np.minimum(np.where(np.abs(x) < 2.0**-126, 0, x), np.finfo(np.float32).max), -np.inf)
    assert best.largest[0] == values.argmax()
    assert best.p[0] == every.p[best.largest[0]]
    order = np.argsort(values, kind="stable")
    assert (np.diff(every.p[order]) >= 0).all()
    assert abs(every.p.sum() / ONE - 1) <= n * BOUND


def test_a_mask_is_a_logit_of_minus_infinity() -> None:
    rng = np.random.default_rng(6)
    x = rng.normal(0, 3, (300, 50)).astype(np.float32)
    keep = rng.random(x.shape) < 0.7
    token = rng.integers(0, 50, 300)
    masked, replaced = results(x, token, keep), results(np.where(keep, x, -np.inf), token)
    assert (masked.p == replaced.p).all()
    assert (masked.largest == replaced.largest).all()


def test_bad_parameters() -> None:
    with pytest.raises(ParamError, match="lanes must be a power of two, not 6"):
        SoftmaxUnitParams(lanes=6)
    with pytest.raises(ParamError, match="lanes must be fewer than the 32 tokens of 5 bits, not 32"):
        SoftmaxUnitParams(lanes=32, token_width=5)


# The draft controller


def decide(model: DraftController, drafted: Drafted, s: Settings) -> tuple[int, bool]:
    """H and whether the draft stops."""
    while not model.step(Inputs(request=1, drafted=drafted, settings=s)).drafted_ready:
        pass
    model.step(Inputs(settings=s))
    decision = model.step(Inputs(settings=s)).decision
    assert decision is not None
    return decision.h, decision.stop


@pytest.mark.parametrize(("policy", "registers"), [
    (Fixed(5), Settings(policy=0, max_draft=5)), (Cumulative(0.3), Settings(policy=1, tau=quantise(0.3))),
    (Confidence(0.7), Settings(policy=2, tau=quantise(0.7), max_draft=20)),
    (LoadTau((0.9, 0.5, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1)),
     Settings(policy=1, tabled=True, taus=tuple(map(quantise, (0.9, 0.5, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1))), load=4)),
], ids=["fixed", "cumulative", "confidence", "table"])
def test_drafts_stop_where_those_of_the_decoding_model_do(policy: object, registers: Settings) -> None:
    rng = np.random.default_rng(7)
    model = DraftController(DraftControllerParams(request_width=1))
    s = Settings(**{**vars(registers), "stop_at_end": False})
    for _ in range(200):
        h, length, stop = ONE, 0, False
        while not stop and length < 16:
            p = quantise(float(rng.random() ** 0.3))
            h, length = multiply(h, p), length + 1
            got = decide(model, Drafted(length, 5, p), s)
            stop = policy.stops(Step(length, h, p, load=4)) or not policy.wants(length, 4)
            stop |= length >= s.max_draft
            assert got == (h, stop)
        model.step(Inputs(settings=s))
        model.step(Inputs(request=1, update=Update(), settings=s))


def test_h_never_rises_and_is_exact_at_the_ends() -> None:
    every = np.arange(ONE + 1, dtype=np.int64)
    for p in (0, 1, 2, 3, ONE // 2, ONE // 2 + 1, ONE - 1, ONE):
        product = every * p
        quotient, rest = product >> 15, product & (ONE - 1)
        rounded = quotient + ((rest > ONE // 2) | ((rest == ONE // 2) & (quotient % 2 == 1)))
        assert (rounded <= np.minimum(every, p)).all()
        assert [multiply(int(h), p) for h in every[::97]] == rounded[::97].tolist()
    assert multiply(ONE, ONE) == ONE
