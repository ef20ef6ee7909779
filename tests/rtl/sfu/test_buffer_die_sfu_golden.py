"""The special function unit's model: errors against float64, the order of sums, constants, refusals."""

import math

import numpy as np
import pytest

from sim_models.golden.sfu.buffer_die_sfu import BufferDieSfu, Operands, Row, rows, sfu_cycles
from sim_models.numerics.float32 import add, bits, from_bits, multiply
from sim_models.numerics.functions import exp2, reciprocal
from sim_models.params.base import ParamError
from sim_models.params.sfu.buffer_die_sfu import GELU_CUBIC, GELU_RATIO, LOG2_E, ONE, BufferDieSfuParams
from sim_models.spec.sfu import SfuOp

P = BufferDieSfuParams
U = 2.0**-24
LANES = pytest.mark.parametrize("lanes", [1, 4, 16])
LENGTHS = pytest.mark.parametrize("length", [1, 2, 7, 64, 255, 1024, 4096])


def results(p: BufferDieSfuParams, op: SfuOp, x: np.ndarray, **more: object) -> np.ndarray:
    """Float32 results, float64 (n, length)."""
    return from_bits(rows(p, op, bits(x), **more).codes).astype(np.float64)  # type: ignore[arg-type]


def code(value: float) -> int:
    return int(bits(np.float32(value)))


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Distances in units of the last place of the exact value's binade."""
    return np.abs(got - want) / np.exp2(np.floor(np.log2(np.maximum(np.abs(want), 2.0**-126))) - 23)


def test_constants() -> None:
    exact = {LOG2_E: math.log2(math.e), GELU_RATIO: 1 / 0.044715, ONE: 1,
             GELU_CUBIC: -2 * math.sqrt(2 / math.pi) * math.log2(math.e) * 0.044715}
    assert {c: code(value) for c, value in exact.items()} == {c: c for c in exact}


@LANES
@LENGTHS
def test_softmax(length: int, lanes: int) -> None:
    """Relative errors, the sum of a row, and no probability above 1; the largest keeps its place."""
    p = P(lanes=lanes, max_length=4096)
    gen = np.random.default_rng([length, lanes])
    words = -(-length // lanes)
    for spread, factor in ((0.01, 1.0), (1, 1.0), (8, 0.125), (30, 1.0), (1000, 0.125)):
        x = gen.normal(0, spread, (20, length)).astype(np.float32)
        x[gen.random(x.shape) < 0.2] = -np.inf
        x[:, 0] = gen.normal(0, spread, 20)
        y = results(p, SfuOp.SOFTMAX, x, scalar=code(factor))
        wide = x.astype(np.float64) * factor
        power = np.exp(wide - wide.max(axis=1, keepdims=True))
        exact = power / power.sum(axis=1, keepdims=True)
        assert y.max() <= 1
        assert (y[x == -np.inf] == 0).all()
        for least, bound in ((2.0**-16, 2.0**-17), (2.0**-100, 2.0**-16.5)):
            there = exact > least
            assert (np.abs(y / np.where(there, exact, 1) - 1)[there] <= bound).all()
        assert np.abs(y.sum(axis=1) - 1).max() <= (words / 6 + p.levels + 5) * U
        assert (np.take_along_axis(y, wide.argmax(axis=1)[:, None], 1)[:, 0] == y.max(axis=1)).all()


@LANES
def test_softmax_whose_sum_loses_terms(lanes: int) -> None:
    """Terms that are each half a unit of the partial sum: the worst there is for the sum of a row."""
    p = P(lanes=lanes, max_length=4096)
    for term in (U, U / 2, U / lanes, U / lanes / 2, U / lanes * 0.99):
        x = np.full((1, 4096), math.log(term), np.float32)
        x[0, :6 * lanes:lanes] = 0                      # one in each partial sum
        y = results(p, SfuOp.SOFTMAX, x, scalar=ONE)
        assert y.max() <= 1
        assert abs(y.sum() - 1) <= (4096 / lanes / 6 + p.levels + 5) * U


@LANES
@LENGTHS
def test_norms(length: int, lanes: int) -> None:
    """RMSNorm in ulp, LayerNorm relative to the largest number of its row; epsilon counts as it is."""
    p = P(lanes=lanes, max_length=4096)
    gen = np.random.default_rng([length, lanes, 1])
    for spread, offset, epsilon in ((1, 0, 1e-5), (1e-3, 0, 1e-5), (1e-3, 1, 1e-5), (1, 100, 1e-5), (1e3, 0, 1e-6),
                                    (1e-6, 0, 1e-12), (1, 0, 10)):
        x = (gen.normal(0, spread, (10, length)) + offset * spread).astype(np.float32)
        weight, bias = (gen.normal(0, 1, length).astype(np.float32) for _ in range(2))
        wide, eps = x.astype(np.float64), float(np.float32(epsilon))
        y = results(p, SfuOp.RMSNORM, x, scalar=code(epsilon), weight=bits(weight), bias=bits(bias))
        exact = wide / np.sqrt((wide * wide).mean(axis=1, keepdims=True) + eps) * weight
        assert ulps(y, exact).max() <= 8
        y = results(p, SfuOp.LAYERNORM, x, scalar=code(epsilon), weight=bits(weight), bias=bits(bias))
        centred = wide - wide.mean(axis=1, keepdims=True)
        exact = centred / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + eps) * weight + bias
        bound = (8 + length / lanes / 64) * U * np.maximum(1, np.abs(exact - bias).max()) + U * np.abs(exact)
        assert (np.abs(y - exact) <= bound).all()


@pytest.mark.parametrize("value", [1e6 + 1 / 3, 1e-30, -3e38, 0.1])
@pytest.mark.parametrize("length", [1, 3, 1000])
def test_a_constant_row_has_no_variance(length: int, value: float) -> None:
    """Exactly: the rounded mean of equal numbers need not be that number."""
    assert (results(P(), SfuOp.LAYERNORM, np.full((1, length), value, np.float32), scalar=code(1e-5)) == 0).all()


def _activations(op: SfuOp, x: np.ndarray) -> np.ndarray:
    z = x if op == SfuOp.SILU else 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    with np.errstate(over="ignore"):
        return x / (1 + np.exp(-z))


@pytest.mark.parametrize(("op", "lowest", "bounds"), [
    (SfuOp.SILU, -87, (2.0**-17.9, 2.0**-17)), (SfuOp.GELU, -11.5, (2.0**-17.6, 2.0**-16)),
])
def test_activations(op: SfuOp, lowest: float, bounds: tuple[float, float]) -> None:
    """All FP16 numbers, float32 numbers of every size, and closely where results are small."""
    half = np.arange(1 << 16).astype(np.uint16).view(np.float16)
    half = half[np.isfinite(half)]
    gen = np.random.default_rng(2)
    more = gen.normal(0, 1, 100_000) * 10.0**gen.integers(-6, 3, 100_000)
    x = np.concatenate([half.astype(np.float32), more.astype(np.float32),
                        np.linspace(lowest, 0, 300_001, dtype=np.float32)])
    exact = _activations(op, x.astype(np.float64))
    y = results(P(), op, x[None])[0]
    for least, bound in zip((2.0**-24, 2.0**-119), bounds, strict=True):
        there = np.abs(exact) > least
        assert (np.abs(y / np.where(there, exact, 1) - 1)[there] <= bound).all()
    assert np.abs(y - exact)[np.abs(exact) <= 2.0**-119].max() <= 2.0**-119

    rounded = rows(P(), op, bits(half.astype(np.float32))[None], fp16=True).codes[0].astype(np.uint16)
    exact = exact[:len(half)]
    place = np.exp2(np.maximum(np.floor(np.log2(np.maximum(np.abs(exact), 2.0**-24))), -14) - 10)
    assert (np.abs(rounded.view(np.float16) - exact) / place).max() <= 0.503


def test_gelu_beside_the_normal_distribution() -> None:
    x = np.linspace(-8, 8, 20_001, dtype=np.float32)
    exact = [v / 2 * (1 + math.erf(v / math.sqrt(2))) for v in x.astype(np.float64)]
    error = np.abs(results(P(), SfuOp.GELU, x[None])[0] - exact).max()
    assert 4.7e-4 < error <= 4.8e-4


@pytest.mark.parametrize("length", [1, 4, 10, 18, 31, 93])
def test_order_of_sums(length: int) -> None:
    """Softmax by hand, number by number, of terms whose sum depends on the order."""
    p = P(lanes=4)
    x = np.random.default_rng(length).normal(0, 4, length).astype(np.float32)
    terms = exp2(multiply(add(x, -x.max()), from_bits(LOG2_E)))
    padded = np.zeros(-(-length // 4) * 4, np.float32)
    padded[:length] = terms
    parts = [np.float32(0)] * 6
    for k, (a, b, c, d) in enumerate(padded.reshape(-1, 4)):
        parts[k % 6] = add(add(add(a, b), add(c, d)), parts[k % 6])
    turn = -(-length // 4) % 6
    q = [*parts[turn:], *parts[:turn]]
    total = add(add(add(q[0], q[1]), add(q[2], q[3])), add(q[4], q[5]))
    want = multiply(terms, reciprocal(total))
    got = rows(p, SfuOp.SOFTMAX, bits(x)[None], scalar=ONE).codes[0]
    assert got.tolist() == bits(want).tolist()


def test_cycles_of_long_rows() -> None:
    """A pass takes a cycle a beat: what one operation costs, for a start."""
    p = P()
    assert {op.name: sfu_cycles(p, op, 1024).period for op in SfuOp} == {
        "COPY": 261, "RELU": 261, "ADD": 274, "SILU": 287, "GELU": 299, "SOFTMAX": 857, "RMSNORM": 593,
        "LAYERNORM": 895}
    for op, passes in ((SfuOp.COPY, 1), (SfuOp.SOFTMAX, 3), (SfuOp.RMSNORM, 2), (SfuOp.LAYERNORM, 3)):
        assert sfu_cycles(p, op, 2048).period - sfu_cycles(p, op, 1024).period == passes * 256
    with pytest.raises(ValueError, match=r"^a length from 0 to 2048 was wanted, not 2049$"):
        sfu_cycles(p, SfuOp.COPY, 2049)


@pytest.mark.parametrize(("values", "message"), [
    ({"lanes": 3}, "lanes must be a power of two, not 3"),
    ({"lanes": 32}, "lanes must be from 1 to 16, not 32"),
    ({"max_length": 1022}, "max_length must be a multiple of 4 lanes, at least 8, not 1022"),
    ({"max_length": 4}, "max_length must be a multiple of 4 lanes, at least 8, not 4"),
])
def test_parameters_are_refused(values: dict[str, int], message: str) -> None:
    with pytest.raises(ParamError) as error:
        P(**values)
    assert str(error.value) == message


@pytest.mark.parametrize(("op", "given", "message"), [
    (SfuOp.ADD, False, "operands were wanted for ADD"), (SfuOp.SILU, True, "no operands were wanted for SILU"),
    (9, True, "no operands were wanted for the unknown operation 9"),
])
def test_operands_that_do_not_belong_are_refused(op: int, given: bool, message: str) -> None:
    word = np.zeros((1, 4), np.uint32)
    with pytest.raises(ValueError, match=f"^{message}$"):
        BufferDieSfu(P()).answer(op, Row(word, word == 0), Operands(word, word) if given else None)
