"""The float32 operations of the integer model: their order, rounding and corner values."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim_models.numerics import rows as exact

F = np.float32


def bits(x: np.ndarray) -> list[int]:
    return np.ascontiguousarray(x, np.float32).view(np.uint32).ravel().tolist()


def scalar_lane_sum(x: np.ndarray) -> np.float32:
    lanes = [F(0)] * 8
    for i, value in enumerate(x):
        lanes[i % 8] = F(lanes[i % 8] + value)
    a, b, c, d = (F(lanes[i] + lanes[i + 1]) for i in (0, 2, 4, 6))
    return F(F(a + b) + F(c + d))


@given(st.integers(1, 70), st.integers(0, 2**32 - 1), st.integers(0, 30))
def test_lane_sum_has_one_order(n: int, seed: int, zeros: int) -> None:
    x = np.random.default_rng(seed).standard_normal((3, n)).astype(F) * F(1000)
    wanted = bits(np.array([scalar_lane_sum(row) for row in x]))
    assert bits(exact.lane_sum(x)) == wanted
    assert bits(exact.lane_sum(np.pad(x, ((0, 0), (0, zeros))))) == wanted
    assert bits(exact.lane_sum(x[1])) == wanted[1:2]


def test_lane_sum_differs_from_a_running_sum_where_order_matters() -> None:
    x = np.array([2.0**24, 1, 1, 1, 1, 1, 1, 1], F)
    assert exact.lane_sum(x) == F(2**24 + 6)           # ((2**24 + 1 -> 2**24) + 2) + 4
    assert np.add.accumulate(x)[-1] == F(2**24)


def test_exp_is_within_an_ulp_of_the_truth() -> None:
    rng = np.random.default_rng(3)
    x = np.concatenate((rng.uniform(-87, 87, 20000), rng.uniform(-1, 1, 20000))).astype(F)
    got, truth = exact.exp(x), np.exp(x.astype(np.float64))
    assert np.max(np.abs(got - truth) / np.spacing(truth.astype(F))) < 0.502


def test_exp_corners() -> None:
    x = np.array([0, -0.0, 1, -87.33654, -87.4, -103, -np.inf, 87, 1000], F)
    top = F(math.exp(87))
    assert F(1) / top >= np.finfo(F).tiny
    assert exact.exp(x).tolist() == [1, 1, F(math.e), F(math.exp(float(F(-87.33654)))), 0, 0, 0, top, top]


def test_exp_does_not_depend_on_the_place_in_an_array() -> None:
    x = np.random.default_rng(4).uniform(-20, 5, (7, 33)).astype(F)
    assert bits(exact.exp(x)) == [b for v in x.ravel() for b in bits(exact.exp(np.array([v])))]


def test_silu_against_float64() -> None:
    x = np.linspace(-100, 100, 4001).astype(F)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(exact.silu(x), wide / (1 + np.exp(-wide)), rtol=3e-7, atol=1e-35)


def test_softmax_sums_to_one_and_ignores_what_is_not_valid() -> None:
    x = np.random.default_rng(5).uniform(-30, 30, (6, 21)).astype(F)
    valid = np.arange(21) < np.array([1, 2, 8, 9, 20, 21])[:, None]
    p = exact.softmax(x, valid)
    assert np.all(p[~valid] == 0)
    assert np.abs(p.astype(np.float64).sum(axis=1) - 1).max() < 1e-6
    for row, n in enumerate((1, 2, 8, 9, 20, 21)):
        assert bits(p[row, :n]) == bits(exact.softmax(x[row:row + 1, :n], valid[row:row + 1, :n]))
    junk = np.where(valid, x, F(3e38))
    assert bits(exact.softmax(junk, valid)) == bits(p)


def test_rms_norm() -> None:
    x = np.random.default_rng(6).standard_normal((4, 24)).astype(F)
    weight = np.linspace(0.5, 1.5, 24).astype(F)
    wide = x.astype(np.float64)
    wanted = wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5) * weight
    np.testing.assert_allclose(exact.rms_norm(x, weight, 1e-5), wanted, rtol=1e-6)
    assert np.all(exact.rms_norm(np.zeros((1, 24), F), weight, 1e-5) == 0)


def test_quantise_rounds_to_even_and_reaches_127() -> None:
    x = np.array([127, -127, 0.5, 1.5, 2.5, -0.5, -2.5, 0], F)
    q, scale = exact.quantise(x)
    assert q.tolist() == [127, -127, 0, 2, 2, 0, -2, 0]
    assert scale == 1
    assert q.dtype == np.int8
    assert scale.dtype == np.float32


@pytest.mark.parametrize("row", [[0, 0, 0], [1e-31, -1e-31, 0], [1e-45, 0, 0]])
def test_quantise_of_nothing(row: list[float]) -> None:
    q, scale = exact.quantise(np.array(row, F))
    assert q.tolist() == [0, 0, 0]
    assert scale == 0


@given(st.integers(0, 2**32 - 1), st.floats(1e-29, 1e38))
def test_quantise_is_within_half_a_step(seed: int, size: float) -> None:
    x = (np.random.default_rng(seed).uniform(-1, 1, (3, 40)) * size).astype(F)
    q, scale = exact.quantise(x)
    assert np.abs(q.astype(int)).max(axis=1).tolist() == [127, 127, 127]
    steps = np.abs(x.astype(np.float64) / scale.astype(np.float64)[:, None] - q)
    assert steps.max() <= 0.5 + 1e-4


@pytest.mark.parametrize("k", [1, 64, 1024, 1025, 3000])
def test_int_matmul_is_exact(k: int) -> None:
    rng = np.random.default_rng(k)
    a, b = (rng.integers(-128, 128, s, dtype=np.int8) for s in ((5, k), (k, 7)))
    a[0], b[:, 0], b[:, 1] = -128, -128, 127
    got = exact.int_matmul(a, b)
    assert got.dtype == np.int32
    assert np.array_equal(got, np.einsum("mk,kn->mn", a.astype(np.int64), b.astype(np.int64)))


def test_int_matmul_refuses_what_it_cannot_do_exactly() -> None:
    with pytest.raises(ValueError, match=r"^operands must be int8, not int16 and int8$"):
        exact.int_matmul(np.zeros((1, 1), np.int16), np.zeros((1, 1), np.int8))
    with pytest.raises(ValueError, match=r"^K must be less than 131072 for an int32 sum, not 131072$"):
        exact.int_matmul(np.zeros((1, 1 << 17), np.int8), np.zeros((1 << 17, 1), np.int8))
