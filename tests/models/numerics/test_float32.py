"""Float32 sums, products and comparisons, bit for bit against other implementations."""

import itertools

import numpy as np
import pytest
import softfloatpy as sf

from sim_models.numerics.float32 import (
    add,
    argmax,
    bits,
    equal,
    flush,
    from_bits,
    less,
    multiply,
    order_key,
    subtract,
    unordered,
)
from tb.arith.numbers import FLOAT32_SPECIAL, float32_codes, near_codes
from tests.softfloat import flush_codes, flushed

OPERATIONS = {"add": (add, sf.f32_add), "subtract": (subtract, sf.f32_sub), "multiply": (multiply, sf.f32_mul)}
ALL = pytest.mark.parametrize("name", OPERATIONS)


def special_pairs() -> tuple[np.ndarray, np.ndarray]:
    a, b = np.meshgrid(FLOAT32_SPECIAL, FLOAT32_SPECIAL)
    return a.ravel(), b.ravel()


def random_pairs(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    gen = np.random.default_rng(seed)
    a = float32_codes(gen, count)
    return a, near_codes(gen, a)


def expected(name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """SoftFloat's result, flushed; a product that only a subnormal's coarser steps lift to 2^-126 is tiny."""
    want = flushed(OPERATIONS[name][1], a, b)
    if name == "multiply":
        exact = np.abs(from_bits(flush_codes(a)).astype(float) * from_bits(flush_codes(b)).astype(float))
        want = np.where((want & 0x7FFFFFFF == 0x00800000) & (exact < 2.0**-126 - 2.0**-151), want & 1 << 31, want)
    return want


@ALL
@pytest.mark.parametrize("pairs", [special_pairs(), random_pairs(60_000, 1)], ids=["special", "random"])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_softfloat_agrees(name: str, pairs: tuple[np.ndarray, np.ndarray]) -> None:
    got = bits(OPERATIONS[name][0](*map(from_bits, pairs)))
    wrong = np.flatnonzero(got != expected(name, *pairs))
    assert wrong.size == 0, [hex(int(v[wrong[0]])) for v in (*pairs, got)]


def significands(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sign, exponent and significand with its leading one, int64."""
    code = codes.astype(np.int64)
    exponent = code >> 23 & 0xFF
    return code >> 31, exponent, np.where(exponent, code & 0x7FFFFF | 1 << 23, 0)


def nearest(sign: np.ndarray, exponent: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Codes of ``value * 2^(exponent - 150)`` rounded to nearest even, for 0 < value < 2^62."""
    length = np.frexp(value.astype(np.float64))[1].astype(np.int64)
    # float64 may round up to the next power of two
    length -= value < np.int64(1) << np.maximum(length - 1, 0)
    drop = length - 24
    down = np.maximum(drop, 0)
    kept = value >> down
    rest, half = value - (kept << down), np.where(down > 0, np.int64(1) << np.maximum(down - 1, 0), 1)
    kept = np.where(drop < 0, value << np.maximum(-drop, 0), kept + ((rest > half) | ((rest == half) & (kept & 1))))
    exponent = exponent + drop + (kept >> 24)
    code = (exponent << 23) + (np.where(kept >> 24, 1 << 23, kept) - (1 << 23))
    code = np.where(exponent <= 0, 0, np.where(exponent >= 255, 0x7F800000, code))
    return (code | sign << 31).astype(np.uint32)


def integer_sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Sums of finite numbers with integers alone."""
    swap = (a & 0x7FFFFFFF) < (b & 0x7FFFFFFF)
    (s, e, m), (t, f, n) = significands(np.where(swap, b, a)), significands(np.where(swap, a, b))
    distance = np.minimum(e - f, 30)
    small = n << 30
    # what is shifted out only matters by being there
    small = small >> distance | ((small & ((np.int64(1) << distance) - 1)) != 0)
    total = (m << 30) + np.where(s == t, small, -small)
    zero = total == 0
    code = nearest(s, e - 30, np.where(zero, 1, total))
    return np.where(zero, (s & t) << 31, code).astype(np.uint32)


def integer_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Products of finite numbers with integers alone."""
    (s, e, m), (t, f, n) = significands(a), significands(b)
    product = m * n
    zero = product == 0
    code = nearest(s ^ t, e + f - 150, np.where(zero, 1, product))
    return np.where(zero, (s ^ t) << 31, code).astype(np.uint32)


@pytest.mark.parametrize("block", range(5))
def test_integers_agree_on_ten_million_pairs(block: int) -> None:
    """Two million random pairs of any finite numbers, half of them close in size, per block."""
    gen = np.random.default_rng(100 + block)
    for _ in range(4):
        a = gen.integers(0, 1 << 32, 500_000, np.uint32)
        near = (a ^ gen.integers(0, 1 << 26, len(a), np.uint32)) ^ gen.integers(0, 2, len(a), np.uint32) << 31
        b = np.where(gen.integers(0, 2, len(a)), near, gen.integers(0, 1 << 32, len(a), np.uint32))
        finite = (a & 0x7F800000 != 0x7F800000) & (b & 0x7F800000 != 0x7F800000)
        a, b = a[finite], b[finite]
        x, y = from_bits(a), from_bits(b)
        np.testing.assert_array_equal(bits(add(x, y)), integer_sum(flush_codes(a), flush_codes(b)))
        np.testing.assert_array_equal(bits(multiply(x, y)), integer_product(a, b))


def test_the_edge_of_underflow_by_hand() -> None:
    """24 bits first, then the flush: 2^-126 (1 - 2^-25) is a tie that goes up, anything less is flushed."""
    one, half = np.float32(1), np.float32(0.5)
    smallest = from_bits(0x00800000)
    assert bits(multiply(smallest, one)) == 0x00800000
    assert bits(multiply(-smallest, half)) == 0x80000000
    below_one = from_bits(0x3F7FFFFF)                   # 1 - 2^-24
    assert bits(multiply(smallest, below_one)) == 0     # IEEE 754 gives 2^-126 here
    # (2^-63 (1 + 2^-12)) * (2^-63 (1 - 2^-12)) = 2^-126 (1 - 2^-24): just as far below
    assert bits(multiply(from_bits(0x20000800), from_bits(0x1FFFF000))) == 0
    assert bits(subtract(from_bits(0x00800001), smallest)) == 0
    assert bits(subtract(smallest, from_bits(0x00800001))) == 0x80000000


def test_flush() -> None:
    codes = np.array([0, 1 << 31, 1, 0x807FFFFF, 0x00800000, 0x7F800000, 0xFFC12345, 0x7F800001], np.uint32)
    want = [0, 1 << 31, 0, 1 << 31, 0x00800000, 0x7F800000, 0x7FC00000, 0x7FC00000]
    assert bits(flush(from_bits(codes))).tolist() == want


def test_shapes_broadcast() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert add(x, np.float32(1)).shape == multiply(x, x[:1]).shape == bits(x).shape == (2, 3)
    assert bits(np.float32(1)).shape == from_bits(0x3F800000).shape == ()


def test_comparisons_agree_with_softfloat() -> None:
    a, b = special_pairs()
    x, y = from_bits(a), from_bits(b)
    fa, fb = flush_codes(a), flush_codes(b)
    numbers = [(sf.Float32.from_bytes(int(p).to_bytes(4, "big")), sf.Float32.from_bytes(int(q).to_bytes(4, "big")))
               for p, q in zip(fa, fb, strict=True)]
    assert less(x, y).tolist() == [sf.f32_lt_quiet(p, q) for p, q in numbers]
    assert equal(x, y).tolist() == [sf.f32_eq(p, q) for p, q in numbers]
    assert unordered(x, y).tolist() == [sf.f32_is_nan(p) or sf.f32_is_nan(q) for p, q in numbers]
    ordered = ~unordered(x, y)
    assert ((order_key(x) < order_key(y)) == less(x, y))[ordered].all()
    assert ((order_key(x) == order_key(y)) == equal(x, y))[ordered].all()


@pytest.mark.parametrize(("values", "present", "want"), [
    ([1, 3, 2, 3], [1, 1, 1, 1], (True, 3, 1)),
    ([1, 3, 2, 3], [1, 0, 1, 1], (True, 3, 3)),
    ([-0.0, 0.0, -1], [1, 1, 1], (True, 0, 0)),
    ([1e-40, -0.0], [0, 1], (True, 0, 1)),
    ([np.nan, -np.inf], [1, 1], (True, -np.inf, 1)),
    ([-np.inf, -3e38], [1, 1], (True, -3e38, 1)),
    ([-np.inf, -np.inf], [1, 1], (True, -np.inf, 0)),
    ([5, np.nan, np.nan], [0, 1, 1], (True, np.nan, 1)),
    ([5, np.inf], [0, 0], (False, np.nan, 0)),
])
def test_argmax_by_hand(values: list[float], present: list[int], want: tuple[bool, float, int]) -> None:
    found, number, index = argmax(np.array(values, np.float32), np.array(present, bool))
    assert (bool(found), int(index)) == (want[0], want[2])
    assert bits(number) == bits(np.float32(want[1]))


def test_argmax_is_the_best_pairwise() -> None:
    gen = np.random.default_rng(3)
    x = from_bits(float32_codes(gen, 30_000)).reshape(-1, 3)
    found, number, index = argmax(x)
    assert found.all()
    for row, best, at in itertools.islice(zip(x, number, index, strict=True), 2000):
        assert not less(best, row).any()
        assert np.isnan(row[at]) or equal(row[at], best)
        assert not equal(row[:at], best).any()
