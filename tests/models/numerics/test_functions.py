"""Tables and functions against float64, over every number of a binade."""

import itertools

import numpy as np
import pytest

from sim_models.numerics.convert import fp16_bits, fp16_from_bits
from sim_models.numerics.float32 import bits, from_bits, multiply
from sim_models.numerics.functions import exp2, exp2_fp16, reciprocal, rsqrt
from sim_models.numerics.tables import (
    EXP2,
    RECIPROCAL,
    RSQRT,
    LinearTable,
    exp2_table,
    log2_table,
    reciprocal_table,
    rsqrt_table,
)

INF, NAN = np.float32(np.inf), np.float32(np.nan)


def binade(exponent: int) -> np.ndarray:
    """Every float32 number from 2^exponent to 2^(exponent + 1)."""
    return from_bits(np.arange(1 << 23) + ((exponent + 127) << 23))


def ulps(got: np.ndarray, exact: np.ndarray, fraction_bits: int = 23, least: int = -126) -> np.ndarray:
    """Errors in units of the last place of the exact value's binade."""
    exponent = np.maximum(np.frexp(exact)[1] - 1, least)
    return (got.astype(np.float64) - exact) / np.ldexp(1.0, exponent - fraction_bits)


def curve(table: LinearTable) -> np.ndarray:
    """The table at the middle and both ends of each segment, (segments, 3)."""
    base, slope = np.array(table.base, float), np.array(table.slope, float)
    sign = 1 if table.base[1] > table.base[0] else -1
    return (base[:, None] + sign * slope[:, None] * [0, 0.5, 1]) / (1 << table.shape.base_bits)


@pytest.mark.parametrize(("table", "points", "function", "bound"), [
    (exp2_table(), np.arange(128) / 128, np.exp2, 2.0**-17.5),
    (reciprocal_table(), 1 + np.arange(128) / 128, lambda x: 1 / x, 2.0**-16.7),
    (log2_table(), 1 + np.arange(128) / 128, np.log2, 2.0**-16.8),
    (rsqrt_table(), np.concatenate([1 + np.arange(64) / 64, 2 + np.arange(64) / 32]), lambda x: x**-0.5, 2.0**-16),
], ids=["exp2", "reciprocal", "log2", "rsqrt"])
def test_tables_follow_the_function(table, points, function, bound) -> None:
    widths = np.diff([*points, 2 * points[-1] - points[-2]])[:, None]
    assert len(table.base) == len(table.slope) == 1 << table.shape.index_bits
    exact = function(points[:, None] + widths * [0, 0.5, 1])
    error = curve(table) - exact
    assert np.abs(error).max() < bound
    # as large above as below: no table is better by more than rounding
    assert abs(error.max() + error.min()) < 0.4 * bound
    # every word is used and fits
    assert max(table.base) < 2 << table.shape.base_bits
    assert max(table.slope) < 1 << table.shape.slope_bits
    assert len(set(table.base)) == len(table.base)


def test_segments_meet() -> None:
    for table, sign in ((exp2_table(), 1), (reciprocal_table(), -1)):
        ends = [b + sign * s for b, s in zip(table.base, table.slope, strict=True)]
        assert list(table.base[1:]) == ends[:-1]
    table = rsqrt_table()
    ends = [b - s for b, s in zip(table.base, table.slope, strict=True)]
    assert all(b == e for k, (b, e) in enumerate(zip(table.base[1:], ends, strict=False)) if k != 63)


def test_table_sizes_are_what_the_hardware_counts_on() -> None:
    assert EXP2.operand_bits == 20
    assert RECIPROCAL.index_bits + RECIPROCAL.position_bits <= 23
    assert RSQRT.index_bits - 1 + RSQRT.position_bits <= 23
    assert exp2_table().base[0] == 1 << EXP2.base_bits
    assert exp2_table().base[-1] + exp2_table().slope[-1] == 2 << EXP2.base_bits
    assert reciprocal_table().base[0] < 1 << RECIPROCAL.base_bits
    assert rsqrt_table().base[0] < 1 << RSQRT.base_bits


@pytest.mark.parametrize("sign", [1, -1])
def test_exp2_over_a_binade(sign: int) -> None:
    x = sign * binade(0)
    y, exact = exp2(x), np.exp2(x.astype(np.float64))
    error = np.abs(ulps(y, exact)).max()
    assert 40 < error <= 56
    assert np.abs(y / exact - 1).max() <= 2.0**-18
    assert (np.diff(y) * sign >= 0).all()


@pytest.mark.parametrize("exponent", range(-30, 8))
def test_exp2_over_all_sizes(exponent: int) -> None:
    gen = np.random.default_rng(exponent + 100)
    x = binade(exponent)[np.sort(gen.integers(0, 1 << 23, 2000))]
    for signed in (x, -x):
        exact = np.exp2(signed.astype(np.float64))
        y = exp2(signed)
        inside = (exact >= 2.0**-126) & (exact < 2.0**128)
        assert (np.abs(y[inside] / exact[inside] - 1) <= 2.0**-18).all()
        assert (y[exact < 2.0**-126] == 0).all()
        assert np.isposinf(y[exact >= 2.0**128]).all()


def test_exp2_of_integers_is_exact() -> None:
    n = np.arange(-126, 128)
    assert (exp2(n.astype(np.float32)) == np.ldexp(1.0, n)).all()
    assert (exp2(np.arange(-300, -126).astype(np.float32)) == 0).all()
    assert np.isposinf(exp2(np.arange(128, 300).astype(np.float32))).all()


def test_exp2_of_every_fp16_number() -> None:
    x = fp16_from_bits(np.arange(1 << 16))
    number = ~np.isnan(x)
    y = exp2_fp16(x)
    assert (fp16_bits(y)[~number] == 0x7E00).all()
    with np.errstate(over="ignore"):
        exact = np.exp2(x[number].astype(np.float64))
    # what rounds to infinity or to zero does so here too
    huge, none = exact >= 65520, exact <= 2.0**-25
    assert np.isposinf(y[number][huge]).all()
    assert (fp16_bits(y[number][none]) == 0).all()
    inside = ~(huge | none)
    error = np.abs(ulps(y[number][inside], exact[inside], 10, -14))
    assert inside.sum() > 30_000
    assert 0.5 < error.max() <= 0.505
    order = np.argsort(x[number], kind="stable")
    assert (np.diff(y[number][order].astype(np.float64)[np.isfinite(y[number][order])]) >= 0).all()


def test_special_operands() -> None:
    x = np.array([0.0, -0.0, 1e-40, -1e-40, INF, -INF, NAN, 2.0**127, -2.0**127], np.float32)
    one = np.float32(1)
    for function, want in (
            (exp2, [one, one, one, one, INF, 0.0, NAN, INF, 0.0]),
            (reciprocal, [INF, -INF, INF, -INF, 0.0, -0.0, NAN, 0.0, -0.0]),
            (rsqrt, [INF, -INF, INF, -INF, 0.0, NAN, NAN, 2.0**-63.5, NAN])):
        assert bits(function(x)).tolist() == bits(np.array(want, np.float32)).tolist(), function.__name__
    smallest, largest = np.float32(2.0**-126), from_bits(0x7F7FFFFF)
    assert reciprocal(smallest) == 2.0**126
    assert bits(reciprocal(-largest)) == 1 << 31
    assert reciprocal(np.float32(2.0**126)) == smallest
    assert reciprocal(from_bits(0x7E800001)) == 0
    assert rsqrt(smallest) == 2.0**63


@pytest.mark.parametrize("exponent", [0, 126, -126])
def test_reciprocal_over_a_binade(exponent: int) -> None:
    x = binade(exponent)
    y, exact = reciprocal(x), 1 / x.astype(np.float64)
    kept = exact >= 2.0**-126
    assert (y[~kept] == 0).all()
    error = np.abs(ulps(y[kept], exact[kept])).max()
    assert error <= 0.509
    assert (np.diff(y) <= 0).all()


@pytest.mark.parametrize(("exponent", "bound"), [(0, 0.627), (1, 0.566)])
def test_rsqrt_over_two_binades(exponent: int, bound: float) -> None:
    x = binade(exponent)
    y, exact = rsqrt(x), 1 / np.sqrt(x.astype(np.float64))
    error = np.abs(ulps(y, exact)).max()
    assert 0.5 < error <= bound
    assert (np.diff(y) <= 0).all()


def test_exact_powers() -> None:
    n = np.arange(-126, 127)
    assert (reciprocal(np.ldexp(np.float32(1), n)) == np.ldexp(1.0, -n)).all()
    even = np.arange(-126, 128, 2)
    assert (rsqrt(np.ldexp(np.float32(1), even)) == np.ldexp(1.0, -even // 2)).all()


def test_division_by_way_of_the_reciprocal() -> None:
    """A softmax divides by multiplying: a row of equal terms sums to 1 within a unit of the last place."""
    for n in itertools.chain(range(1, 200), (1000, 32000, 128256)):
        share = multiply(np.float32(1), reciprocal(np.float32(n)))
        assert abs(float(share) * n - 1) <= 2.0**-23
