"""Exact sums over arrays: equal to the golden model of the processing element, word by word and number by number."""

from fractions import Fraction

import numpy as np
import pytest

from sim_models.golden.pim.bank import bank_pe
from sim_models.golden.pim.bank.sum_rounder import FLOAT32, FP16, INT32, round_sum
from sim_models.numerics.exact_sums import Sums, dot, rounded, zeros
from sim_models.params.pim.bank.exact_sum import ExactSumParams

P = ExactSumParams(lanes=4)
FORMS = {"float32": FLOAT32, "fp16": FP16, "int32": INT32}


def pairs(gen: np.random.Generator, kind: str, rows: int, words: int) -> tuple[np.ndarray, np.ndarray]:
    """Words of any numbers; FP16 words with more zeros, subnormals, infinities and NaN than chance would bring."""
    a, b = (gen.integers(0, 1 << 16, (rows, words, P.lanes)).astype(np.uint16) for _ in range(2))
    if kind == "fp16":
        special = np.array([0, 0x8000, 1, 0x83FF, 0x7C00, 0xFC00, 0x7E01, 0x7BFF], np.uint16)
        for x in (a, b):
            finite = np.where((x & 0x7C00) == 0x7C00, x & 0x83FF, x)
            x[:] = np.where(gen.random(x.shape) < 0.05, gen.choice(special, x.shape), finite)
    return a, b


@pytest.mark.parametrize("kind", ["fp16", "int8"])
def test_sums_and_codes_are_those_of_the_processing_element(kind: str) -> None:
    gen = np.random.default_rng(kind == "int8")
    for words in (1, 3, 40):
        a, b = pairs(gen, kind, 60, words)
        view = np.int8 if kind == "int8" else np.float16
        got = dot(*(x.reshape(60, -1).view(view) for x in (a, b)))
        want = [bank_pe.dot(P, x, y, kind == "int8") for x, y in zip(a, b, strict=True)]
        assert got.value.tolist() == [s.value for s in want]
        for flag in ("positive", "negative", "nan"):
            assert getattr(got, flag).tolist() == [getattr(s, flag) for s in want]
        for form in ("int32",) if kind == "int8" else ("float32", "fp16"):
            assert rounded(got, form).tolist() == [round_sum(s, FORMS[form]) for s in want]


def test_sums_are_exact() -> None:
    gen = np.random.default_rng(3)
    a, b = (gen.standard_normal(500).astype(np.float16) * np.float16(100) for _ in range(2))
    exact = sum(Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a, b, strict=True))
    assert int(dot(a, b).value) == exact * 2**48


@pytest.mark.parametrize(("value", "float32", "fp16"), [
    (0, 0, 0),
    (1, 0x27800000, 0),                                         # 2^-48
    (-1, 0xA7800000, 0x8000),
    (1 << 23, 0x33000000, 0),                                   # half the least FP16 number: to even
    ((1 << 23) + 1, 0x33000001, 1),
    (3 << 23, 0x33C00000, 2),                                   # one and a half of it: to even
    (65519 << 48, 0x477FEF00, 0x7BFF),
    (65520 << 48, 0x477FF000, 0x7C00),
    (-65520 << 48, 0xC77FF000, 0xFC00),
    (((1 << 24) + 1) << 30, 0x42800000, 0x5400),                # a tie of float32: to even
    (((1 << 24) + 3) << 30, 0x42800002, 0x5400),
])
def test_rounding_by_hand(value: int, float32: int, fp16: int) -> None:
    sums = zeros((1,))
    sums.value[0] = value
    assert int(rounded(sums, "float32")[0]) == float32
    assert int(rounded(sums, "fp16")[0]) == fp16


def test_sums_of_sums_are_sums() -> None:
    gen = np.random.default_rng(4)
    a, b = pairs(gen, "fp16", 6, 4)
    parts = dot(a.view(np.float16), b.view(np.float16))
    whole = dot(a.reshape(6, -1).view(np.float16), b.reshape(6, -1).view(np.float16))
    for got in (parts.sum(1), Sums.stack([parts[:, k] for k in range(4)], 0).sum(0),
                parts.transpose(1, 0)[0] + parts[:, 1] + parts[:, 2] + parts[:, 3]):
        assert got.value.tolist() == whole.value.tolist()
        assert got.nan.tolist() == whole.nan.tolist()


@pytest.mark.parametrize(("a", "b", "message"), [
    (np.zeros(3, np.float32), np.zeros(3, np.float32), "two float16 or two int8 arrays were wanted, float32"),
    (np.zeros(3, np.int8), np.zeros(3, np.float16), "two float16 or two int8 arrays were wanted, int8 and float16"),
    (np.zeros(3, np.int8), np.zeros(4, np.int8), "at most 1048576 terms on both sides were wanted, 3 and 4 came"),
])
def test_other_operands_are_refused(a: np.ndarray, b: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dot(a, b)
