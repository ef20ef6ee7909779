"""The golden models of the processing element and of rounding, against fractions, float64, numpy and ml_dtypes."""

import contextlib
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from rtl.pim.bank.pe_lane import SPLIT
from sim_models.golden.pim.bank.bank_pe import BankPE, ExactSum, dot, products, word_sums
from sim_models.golden.pim.bank.sum_rounder import float32_code, fp16_code, round_sum, rounded_code
from sim_models.params.base import ParamError
from sim_models.params.pim.bank.bank_pe import BankPEParams
from sim_models.params.pim.bank.sum_rounder import SumRounderParams
from tb.arith.numbers import HALF_SPECIAL, half_codes
from tb.pim.bank.pe_sums import random_sums
from tb.pim.bank.pe_traffic import KINDS, random_traffic

FP16, INT8, BOTH = (BankPEParams(format=f) for f in ("fp16", "int8", "both"))
EVERY = np.arange(1 << 16).astype(np.uint16)


def value(code: int) -> float:
    return float(np.uint16(code).view(np.float16))


def check_products(a: np.ndarray, b: np.ndarray) -> None:
    """Against float64, which holds every product of two FP16 numbers exactly."""
    significand, place, positive, negative, nan = products(a, b)
    with np.errstate(invalid="ignore"):
        want = a.view(np.float16).astype(np.float64) * b.view(np.float16).astype(np.float64)
    np.testing.assert_array_equal(nan, np.isnan(want))
    np.testing.assert_array_equal(positive, want == np.inf)
    np.testing.assert_array_equal(negative, want == -np.inf)
    got = np.ldexp(significand.astype(np.float64), place - 48)
    np.testing.assert_array_equal(got, np.where(np.isfinite(want), want, 0))


def test_products_of_every_number_with_special_ones() -> None:
    for special in HALF_SPECIAL:
        check_products(EVERY, np.full_like(EVERY, special))
        check_products(np.full_like(EVERY, special), EVERY)


def test_products_of_random_numbers() -> None:
    gen = np.random.default_rng(1)
    check_products(*(gen.integers(0, 1 << 16, 2_000_000).astype(np.uint16) for _ in range(2)))


@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_exact(kind: str) -> None:
    """Against sums of fractions."""
    gen = np.random.default_rng(list(kind.encode()))
    words = random_traffic(FP16, gen, 60, kinds=(kind,)).words
    for row, other, got in zip(words.row, words.other, word_sums(FP16, words.row, words.other), strict=True):
        total, flags = Fraction(0), [False] * 3
        for a, b in zip(map(value, row), map(value, other), strict=True):
            product = a * b
            for k, hit in enumerate((product == np.inf, product == -np.inf, product != product)):
                flags[k] |= hit
            total += Fraction(product) if np.isfinite(product) else 0
        assert got == ExactSum(int(total * 2**48), *flags)
        assert (total * 2**48).denominator == 1


def test_order_does_not_matter() -> None:
    gen = np.random.default_rng(2)
    words = random_traffic(FP16, gen, 50, kinds=("anything", "wide", "special")).words
    a, b = words.row.ravel(), words.other.ravel()
    order = gen.permutation(a.size)
    shape = words.row.shape
    assert dot(FP16, words.row, words.other) == dot(FP16, a[order].reshape(shape), b[order].reshape(shape))
    narrow = BankPEParams(format="fp16", lanes=1)
    assert dot(FP16, words.row, words.other) == dot(narrow, a[:, None], b[:, None])


def test_integer_sums() -> None:
    gen = np.random.default_rng(3)
    a, b = gen.integers(-128, 128, (2, 40, 32))
    words = [x.astype(np.int8).view("<u2") for x in (a, b)]
    want = [ExactSum(int(n)) for n in (a * b).sum(axis=1)]
    assert word_sums(INT8, *words) == want
    assert word_sums(BOTH, *words, int8=True) == want
    half = word_sums(BOTH, *words, int8=False)
    assert half == word_sums(FP16, *words)
    mixed = np.arange(40) % 3 == 0
    assert word_sums(BOTH, *words, int8=mixed) == [w if m else h for w, h, m in zip(want, half, mixed, strict=True)]
    with pytest.raises(ValueError, match="int8 was wanted, 0 or 1 for each pair of words, none came"):
        word_sums(BOTH, *words)


def test_the_longest_sum_fits() -> None:
    for p, code, term in ((FP16, 0x7BFF, None), (INT8, 0x8080, 32 << 14)):
        word = np.full((1, 16), code, np.uint16)
        assert term is None or word_sums(p, word, word)[0].value == term
        largest = word_sums(p, word, word)[0].value * ((1 << p.terms_width) - 1)
        assert largest < 1 << (p.acc_width - 1)
        assert largest >= 1 << (p.acc_width - 2)


def test_upper_integer_sums_are_out_of_reach() -> None:
    """What the lane relies on: lower products, 35 bits each, cannot carry into the upper ones at bit 51."""
    for lanes in (1, 2, 4, 8, 16, 32, 64):
        widths = []
        for width in range(1, 25):
            with contextlib.suppress(ParamError):
                p = BankPEParams(lanes=lanes, terms_width=width)
                widths.append(width)
                assert ((1 << width) - 1) * lanes * ((1 << 35) - 1) < 1 << SPLIT
                assert SPLIT + p.integer_width <= p.acc_width
        assert widths == list(range(1, 17 - lanes.bit_length() + 1))


def test_accumulators_begin_without_a_value() -> None:
    model = BankPE(FP16)
    one = ExactSum(3)
    model.step(valid=1, index=4, term=one)
    model.step(valid=1, first=1, index=5, term=one)
    model.step(valid=1, index=5, term=one)
    assert model.busy
    for _ in range(FP16.latency):
        model.step()
    assert not model.busy
    assert model.accumulators[4] is None
    assert model.accumulators[5] == ExactSum(6)


def neighbours() -> tuple[list[int], list[int]]:
    """Codes of the FP16 numbers from 0 on, and the sums that are equal to them."""
    codes = list(range(0x7C00))
    return codes, [int(Fraction(value(c)) * 2**48) for c in codes]


def test_fp16_rounding_between_all_neighbours() -> None:
    """The middle goes to the even one, what is beside it to the nearest: all 31,744 intervals."""
    codes, values = neighbours()
    values.append(65536 << 48)                          # where the next number would be
    for code in codes:
        low, high = values[code], values[code + 1]
        middle = (low + high) // 2
        for sign, bit in ((1, 0), (-1, 0x8000)):
            nothing = code == 0
            assert fp16_code(ExactSum(sign * low)) == (0 if nothing else code | bit)
            assert fp16_code(ExactSum(sign * (middle - 1))) == code | bit
            assert fp16_code(ExactSum(sign * middle)) == code + (code & 1) | bit
            assert fp16_code(ExactSum(sign * (middle + 1))) == code + 1 | bit


def test_rounding_is_numpys() -> None:
    """Sums that float64 holds exactly, of every size."""
    gen = np.random.default_rng(4)
    draws = zip(gen.integers(-1 << 53, 1 << 53, 40_000), *gen.integers(0, 43, (2, 40_000)), strict=True)
    small = [int(n) >> int(down) << int(up) for n, down, up in draws]
    exact = np.array([float(n) for n in small]) * 2.0**-48
    assert [int(x * 2.0**48) for x in exact] == small
    sums = [ExactSum(n) for n in small]
    with np.errstate(over="ignore"):
        half, single = exact.astype(np.float16).view(np.uint16), exact.astype(np.float32).view(np.uint32)
    assert [fp16_code(s) for s in sums] == half.tolist()
    assert [float32_code(s) for s in sums] == single.tolist()


def test_float32_rounding_is_that_of_fractions() -> None:
    """Sums wider than float64, in the middle of two float32 numbers and beside it."""
    gen = np.random.default_rng(5)
    for _ in range(3000):
        units, place = int(gen.integers(1 << 23, 1 << 24)), int(gen.integers(1, 70))
        middle = (2 * units + 1) << place
        for offset in (-1, 0, 1):
            exact = Fraction(middle + offset, 1 << 48)
            kept = round(exact / 2 ** (place + 1) * 2**48)      # Python rounds fractions to nearest even
            want = np.float32(np.ldexp(float(kept), place + 1 - 48))
            assert float32_code(ExactSum(middle + offset)) == int(want.view(np.uint32))


@pytest.mark.parametrize(("dtype", "fraction_bits", "bias"), [
    (ml_dtypes.bfloat16, 7, 127), (ml_dtypes.float8_e5m2, 2, 15)])
def test_the_rule_of_rounding_is_that_of_other_formats(dtype: Any, fraction_bits: int, bias: int) -> None:
    """The same rule in formats that ml_dtypes rounds to, from float32 and so without rounding twice."""
    gen = np.random.default_rng(6)
    single = np.ldexp(gen.integers(-1 << 24, 1 << 24, 20_000).astype(np.float32), gen.integers(-44, 20, 20_000))
    single = single.astype(np.float32)
    want = single.astype(dtype)
    codes = want.view(np.uint16 if want.itemsize == 2 else np.uint8)
    got = [rounded_code(ExactSum(int(Fraction(float(x)) * 2**48)), fraction_bits=fraction_bits, bias=bias)
           for x in single]
    assert got == np.where(single == 0, 0, codes).tolist()


def test_special_sums() -> None:
    for plus, minus, nan, single, half in (
            (0, 0, 1, 0x7FC00000, 0x7E00), (1, 1, 0, 0x7FC00000, 0x7E00), (1, 1, 1, 0x7FC00000, 0x7E00),
            (1, 0, 0, 0x7F800000, 0x7C00), (0, 1, 0, 0xFF800000, 0xFC00), (0, 1, 1, 0x7FC00000, 0x7E00)):
        for number in (0, 1, -1, 1 << 95, -(1 << 95)):
            total = ExactSum(number, bool(plus), bool(minus), bool(nan))
            assert (float32_code(total), fp16_code(total)) == (single, half)


def test_zeros_and_the_smallest() -> None:
    assert float32_code(ExactSum()) == fp16_code(ExactSum()) == 0
    word = np.full((1, 16), 0x8000, np.uint16)
    minus_zeros = word_sums(FP16, word, np.full((1, 16), 0x3C00, np.uint16))[0]
    assert float32_code(minus_zeros) == 0
    assert float32_code(ExactSum(1)) == int(np.float32(2.0**-48).view(np.uint32))
    assert fp16_code(ExactSum(1)) == 0
    assert fp16_code(ExactSum(-1)) == 0x8000


def test_integers_are_taken_as_they_are() -> None:
    for number in (0, 1, -1, (1 << 31) - 1, -(1 << 31)):
        assert round_sum(ExactSum(number), 2) == number % (1 << 32)


@pytest.mark.parametrize("cls", [BankPEParams, SumRounderParams])
@pytest.mark.parametrize(("values", "message"), [
    ({"lanes": 12}, "lanes must be a power of two, not 12"),
    ({"format": "bf16"}, "format must be one of fp16, int8, both, not bf16"),
    ({"lanes": 32}, "terms_width must be at most 11 with 32 lanes of int8 pairs, so that every sum fits 32 bits, "
                    "not 12"),
    ({"format": "int8", "terms_width": 13}, "terms_width must be at most 12 with 16 lanes of int8 pairs, so that "
                                            "every sum fits 32 bits, not 13"),
])
def test_parameters_that_make_no_sense(cls: type, values: dict[str, object], message: str) -> None:
    with pytest.raises(ParamError) as caught:
        cls(**values)
    assert str(caught.value) == message


def test_accumulators_are_a_power_of_two() -> None:
    with pytest.raises(ParamError, match="accumulators must be a power of two, not 24"):
        BankPEParams(accumulators=24)


def test_random_sums_reach_every_case() -> None:
    sums, formats = random_sums(SumRounderParams(), np.random.default_rng(7), 4000)
    assert set(formats) == {0, 1, 2}
    sizes = {s.value.bit_length() for s in sums}
    assert sizes >= set(range(95))
    codes = {fp16_code(s) & 0x7FFF for s, f in zip(sums, formats, strict=True) if f == 1}
    assert codes >= {0, 0x7C00, 0x7E00}
    assert any(0 < c < 0x400 for c in codes)


def test_half_codes_have_specials() -> None:
    assert np.isin(HALF_SPECIAL, half_codes(np.random.default_rng(8), 4000)).all()
