"""Conversions and exact products against SoftFloat and ml_dtypes, exhaustively for the 16-bit formats."""

import itertools
import math

import ml_dtypes
import numpy as np
import pytest
import softfloatpy as sf

from sim_models.numerics.convert import (
    bf16_product,
    bf16_to_float32,
    float32_to_bf16,
    float32_to_fp16,
    float32_to_int,
    fp16_bits,
    fp16_from_bits,
    fp16_product,
    fp16_to_float32,
    int_to_float32,
)
from sim_models.numerics.float32 import bits, flush, from_bits
from tb.arith.numbers import FLOAT32_SPECIAL, HALF_SPECIAL, float32_codes
from tests.softfloat import FLOAT16, apply, flush_codes

EVERY = np.arange(1 << 16).astype(np.uint16)
pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered")


def same_float32(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_array_equal(bits(got), bits(flush(want)))


def near_every_half(shift: int) -> np.ndarray:
    """Float32 codes at, just below and just above every point where rounding to 16 bits changes its mind."""
    codes = (EVERY.astype(np.int64) << 16) if shift == 16 else bits(fp16_to_float32(fp16_from_bits(EVERY)))
    half = np.int64(1) << (shift - 1)
    steps = [codes.astype(np.int64) + d for d in (-1, 0, 1, half - 1, half, half + 1)]
    return (np.concatenate(steps) & 0xFFFFFFFF).astype(np.uint32)


def test_every_fp16_number_to_float32() -> None:
    want = apply(sf.f16_to_f32, EVERY, kind=FLOAT16)
    same_float32(fp16_to_float32(fp16_from_bits(EVERY)), from_bits(want))


def test_every_bf16_number_to_float32() -> None:
    same_float32(bf16_to_float32(EVERY), EVERY.view(ml_dtypes.bfloat16).astype(np.float32))


def test_rounding_to_fp16_at_every_edge() -> None:
    codes = np.concatenate([near_every_half(13), FLOAT32_SPECIAL])
    x = from_bits(codes)
    got = float32_to_fp16(x)
    # below 2^-14 the edges are further apart than 2^13 codes: those are random
    tiny = from_bits(np.random.default_rng(1).integers(0x33000000, 0x38800000, 100_000, np.uint32))
    for value, result in ((x, got), (tiny, float32_to_fp16(tiny))):
        sample = slice(None, None, 3)
        want = apply(sf.f32_to_f16, flush_codes(bits(value[sample])), out=">u2")
        want = np.where(np.isnan(value[sample]), 0x7E00, want)
        np.testing.assert_array_equal(fp16_bits(result[sample]), want)


def test_rounding_to_bf16_at_every_edge() -> None:
    codes = np.concatenate([near_every_half(16), FLOAT32_SPECIAL])
    x = flush(from_bits(codes))
    want = np.where(np.isnan(x), 0x7FC0, x.astype(ml_dtypes.bfloat16).view(np.uint16))
    np.testing.assert_array_equal(float32_to_bf16(from_bits(codes)), want)


@pytest.mark.parametrize("write", [float32_to_fp16, float32_to_bf16])
def test_every_16_bit_number_survives(write) -> None:
    if write is float32_to_fp16:
        back = fp16_bits(write(fp16_to_float32(fp16_from_bits(EVERY))))
        want = np.where(np.isnan(fp16_from_bits(EVERY)), 0x7E00, EVERY)
    else:
        back = write(bf16_to_float32(EVERY))
        want = np.where(EVERY & 0x7F80, EVERY, EVERY & 0x8000)
        want = np.where((EVERY & 0x7FFF) > 0x7F80, 0x7FC0, want)
    np.testing.assert_array_equal(back, want)


def half_pairs() -> tuple[np.ndarray, np.ndarray]:
    """All pairs of special codes, and each code with random others."""
    special = np.array(list(itertools.product(HALF_SPECIAL, HALF_SPECIAL)), np.uint16)
    gen = np.random.default_rng(2)
    return (np.concatenate([special[:, 0], np.tile(EVERY, 16)]),
            np.concatenate([special[:, 1], gen.integers(0, 1 << 16, 16 << 16, np.uint16)]))


def test_fp16_products_are_exact() -> None:
    a, b = half_pairs()
    x, y = fp16_from_bits(a), fp16_from_bits(b)
    exact = x.astype(np.float64) * y.astype(np.float64)
    got = fp16_product(x, y)
    np.testing.assert_array_equal(got.astype(np.float64), exact)
    same_float32(got, exact.astype(np.float32))


def test_bf16_products_are_exact_within_float32() -> None:
    a, b = half_pairs()
    x, y = (bf16_to_float32(c).astype(np.float64) for c in (a, b))
    exact = x * y
    got = bf16_product(a, b)
    inside = (np.abs(exact) >= 2.0**-126) & (np.abs(exact) < 2.0**128) | (exact == 0)
    assert inside.sum() > 100_000
    np.testing.assert_array_equal(got[inside].astype(np.float64), exact[inside])
    assert (np.abs(got[np.abs(exact) < 2.0**-126]) == 0).all()
    assert np.isinf(got[np.abs(exact) >= 2.0**128]).all()
    assert (np.signbit(got) == np.signbit(exact))[~np.isnan(exact)].all()
    assert (bits(got)[np.isnan(exact)] == 0x7FC00000).all()


@pytest.mark.parametrize("width", [2, 8, 16, 24, 32])
def test_float32_to_integers(width: int) -> None:
    gen = np.random.default_rng(width)
    x = from_bits(np.concatenate([FLOAT32_SPECIAL, float32_codes(gen, 4000)]))
    x = np.concatenate([x, np.arange(-300, 300, dtype=np.float32) / 2, np.float32(2.0**(width - 1)) + np.arange(
        -8, 8, dtype=np.float32) / 4])
    low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
    # Python rounds to nearest even
    want = [0 if math.isnan(v) else low if v <= low else high if v >= high else max(low, min(high, round(v)))
            for v in x.tolist()]
    assert float32_to_int(x, width).tolist() == want


def test_float32_to_int32_as_softfloat() -> None:
    codes = np.concatenate([FLOAT32_SPECIAL, float32_codes(np.random.default_rng(9), 20_000)])
    number = ~np.isnan(from_bits(codes))
    want = apply(lambda v: sf.f32_to_i32(v, sf.RoundingMode.NEAR_EVEN), flush_codes(codes[number]))
    np.testing.assert_array_equal(float32_to_int(from_bits(codes[number]), 32), want.astype(np.uint32).view(np.int32))


def test_integers_to_float32() -> None:
    gen = np.random.default_rng(4)
    n = np.concatenate([gen.integers(-1 << 31, 1 << 31, 20_000) >> gen.integers(0, 31, 20_000),
                        [0, 1, -1, (1 << 31) - 1, -1 << 31, (1 << 24) + 1, (1 << 24) + 3, (1 << 25) + 2]])
    data = n.astype(">i4").tobytes()
    want = [int.from_bytes(sf.i32_to_f32(sf.Int32.from_bytes(data[k:k + 4])).to_bytes(), "big")
            for k in range(0, len(data), 4)]
    assert bits(int_to_float32(n)).tolist() == want
    assert (int_to_float32(np.arange(-128, 128)) == np.arange(-128, 128)).all()
