"""The processing element's Verilog against its golden model, on every number and on large samples."""

import numpy as np
import pytest

from rtl.pim.bank.bank_pe import BankPE
from rtl.pim.bank.pe_lane import PELane
from rtl.pim.bank.sum_rounder import SumRounder
from sim_models.golden.pim.bank.bank_pe import BankPE as Model
from sim_models.golden.pim.bank.bank_pe import dot, products
from sim_models.golden.pim.bank.sum_rounder import SumRounder as RounderModel
from sim_models.params.pim.bank.bank_pe import BankPEParams
from sim_models.params.pim.bank.pe_lane import PELaneParams
from sim_models.params.pim.bank.sum_rounder import SumRounderParams
from tb.arith.numbers import HALF_SPECIAL
from tb.common.native import NativeSim
from tb.pim.bank.pe_sums import random_sums
from tb.pim.bank.pe_traffic import PATTERNS, Traffic, Words, pack_steps, pack_sums, random_traffic, seen, unpack_sums
from tests.conftest import Extent
from tests.designs.run import BUILDS

EVERY = np.arange(1 << 16).astype(np.uint16)
#: terms are compared in two parts: so many low bits, and what is above
CHUNK = 40
LOW = (1 << CHUNK) - 1


def rows(codes: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(codes.astype("<u2")).view(np.uint8).reshape(-1, 2)


def parts(payloads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Signed terms of 81 bits: the lowest 40 bits, and what is above them."""
    wide = np.zeros((len(payloads), 16), np.uint8)
    wide[:, :11] = payloads
    low, high = wide.view("<u8").T
    low, high = low.astype(np.int64), high.astype(np.int64)
    above = (low >> CHUNK & 0xFFFFFF) | high << (64 - CHUNK)
    return low & LOW, above - (above >> 40 << 41)


@pytest.fixture(scope="module")
def lane() -> NativeSim:
    return NativeSim(PELane(PELaneParams(format="both")), BUILDS)


def play_lane(lane: NativeSim, a: np.ndarray, b: np.ndarray, int8: int) -> dict[str, np.ndarray]:
    latency = PELaneParams(format="both").latency
    padded = [np.concatenate([x, x[:latency]]) for x in (a, b)]
    inputs = {"a": rows(padded[0]), "b": rows(padded[1]),
              "int8": np.full((len(padded[0]), 1), int8, np.uint8)}
    came = lane.play(inputs, ["term", "carry", "positive", "negative", "nan"])
    return {name: values[latency:] for name, values in came.items()}


def test_every_number_times_special_ones(lane: NativeSim) -> None:
    """3.5 million products of the RTL, either operand special, against float64."""
    count = len(HALF_SPECIAL) // 2
    for k, special in enumerate(HALF_SPECIAL[:count]):
        fixed = np.full_like(EVERY, special | (k & 1) << 15)
        for a, b in ((EVERY, fixed), (fixed, EVERY)):
            came = play_lane(lane, a, b, 0)
            with np.errstate(invalid="ignore"):
                exact = a.view(np.float16).astype(np.float64) * b.view(np.float16).astype(np.float64)
            where = f"{special:#06x}"
            for name, want in (("positive", exact == np.inf), ("negative", exact == -np.inf),
                               ("nan", np.isnan(exact))):
                np.testing.assert_array_equal(came[name][:, 0], want, err_msg=f"{name}, {where}")
            # in units of 2^-48; every number here is exact in float64
            units = np.ldexp(np.where(np.isfinite(exact), exact, 0), 48)
            above = np.floor(np.ldexp(units, -CHUNK))
            low, high = parts(came["term"])
            low = low + came["carry"][:, 0]
            np.testing.assert_array_equal(low & LOW, (units - np.ldexp(above, CHUNK)).astype(np.int64), err_msg=where)
            np.testing.assert_array_equal(high + (low >> CHUNK), above.astype(np.int64), err_msg=where)


def test_every_integer_product(lane: NativeSim) -> None:
    """All 65,536 pairs, in both halves of the operands."""
    x, y = EVERY >> 8, EVERY & 255
    came = play_lane(lane, x | y << 8, y | x << 8, 1)
    assert not any(came[name].any() for name in ("carry", "positive", "negative", "nan"))
    low, high = parts(came["term"])
    want = x.astype(np.uint8).view(np.int8).astype(np.int64) * y.astype(np.uint8).view(np.int8).astype(np.int64)
    lower = low & 0x7_FFFF_FFFF                           # 35 bits
    np.testing.assert_array_equal(lower - (lower >> 34 << 35), want)
    np.testing.assert_array_equal(high >> 11, want)


def test_random_products(lane: NativeSim, extent: Extent) -> None:
    """A million pairs of any numbers, against the golden model."""
    gen = extent.generator(1)
    a, b = (gen.integers(0, 1 << 16, extent.count(1_000_000, 10_000_000)).astype(np.uint16) for _ in range(2))
    came = play_lane(lane, a, b, 0)
    significand, place, *specials = products(a, b)
    for name, want in zip(("positive", "negative", "nan"), specials, strict=True):
        np.testing.assert_array_equal(came[name][:, 0], want, err_msg=name)
    low, high = parts(came["term"])
    got = np.ldexp(high.astype(np.float64), CHUNK - 48) + np.ldexp(low + came["carry"][:, 0].astype(np.float64), -48)
    np.testing.assert_array_equal(got, np.ldexp(significand.astype(np.float64), place - 48))


def play(p: BankPEParams, sim: NativeSim, traffic: Traffic) -> dict[str, np.ndarray]:
    """Outputs before each edge of a traffic."""
    inputs = {"step": pack_steps(p, traffic), "read_en": traffic.read_en.astype(np.uint8)[:, None],
              "read_index": traffic.read_index.astype(np.uint8)[:, None]}
    return sim.play(inputs, ["sum", "busy"])


def check(p: BankPEParams, sim: NativeSim, model: Model, traffic: Traffic) -> int:
    """Compare every cycle; how many sums were compared."""
    came, want = play(p, sim, traffic), seen(model, traffic)
    assert came["busy"][:, 0].tolist() == [busy for _, busy in want]
    known = [k for k, (total, _) in enumerate(want) if total is not None]
    for k, got in zip(known, unpack_sums(p, came["sum"][known]), strict=True):
        assert got == want[k][0], f"cycle {k}"
    return len(known)


@pytest.fixture(scope="module", params=["fp16", "int8", "both"])
def element(request: pytest.FixtureRequest) -> tuple[BankPEParams, NativeSim]:
    p = BankPEParams(format=request.param)
    return p, NativeSim(BankPE(p), BUILDS)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_large_sample(element: tuple[BankPEParams, NativeSim], pattern: str) -> None:
    """Twelve thousand words, up to 384,000 products, in each order of accumulators and each format."""
    p, sim = element
    sim.reset()
    gen = np.random.default_rng(list(f"{p.format}{pattern}".encode()))
    assert check(p, sim, Model(p), random_traffic(p, gen, 12_000, pattern=pattern, rate=0.9)) > 5000


def test_longest_sums(element: tuple[BankPEParams, NativeSim]) -> None:
    """As many words as a sum may have, all of the largest products of either sign: nothing wraps."""
    p, sim = element
    count = (1 << p.terms_width) - 1
    sides = [(0x7BFF, 0x7BFF, False), (0x7BFF, 0xFBFF, False)] if p.fp16 else []
    sides += [(0x8080, 0x8080, True), (0x8080, 0x7F7F, True)] if p.int8 else []
    cycle = np.arange(count + p.latency + p.read_latency + 1)
    for row, other, int8 in sides:
        shape = (len(cycle), p.lanes)
        words = Words(np.full(shape, row, np.uint16), np.full(shape, other, np.uint16), np.full(len(cycle), int8))
        index = np.zeros_like(cycle)
        came = play(p, sim, Traffic(words, cycle < count, cycle == 0, index, cycle >= count, index))
        total = unpack_sums(p, came["sum"][-1:])[0]
        assert total.value == dot(p, words.row[:1], words.other[:1], int8).value * count
        assert abs(total.value) >= 1 << (p.acc_width if not int8 else 32) - 3


@pytest.mark.parametrize("form", ["fp16", "both"])
def test_rounding(form: str, extent: Extent) -> None:
    """Sums of every size and in the middle between results, one a cycle."""
    p = SumRounderParams(format=form)
    sim = NativeSim(SumRounder(p), BUILDS)
    sums, formats = random_sums(p, extent.generator(2), extent.count(30_000, 1_000_000))
    ones = np.ones((len(sums), 1), np.uint8)
    came = sim.play({"enable": ones, "i_valid": ones, "sum": pack_sums(p, sums),
                     "format": np.array(formats, np.uint8)[:, None]}, ["result"])
    got = np.ascontiguousarray(came["result"]).view("<u4")[p.stages:, 0]
    want = RounderModel(p).results(sum=sums, format=formats)["result"][:-p.stages]
    wrong = np.flatnonzero(got != want)
    assert not wrong.size, (f"{wrong.size} differ, first {sums[wrong[0]]} in format {formats[wrong[0]]}: "
                            f"{got[wrong[0]]:#x} came, {want[wrong[0]]:#x} was wanted")
