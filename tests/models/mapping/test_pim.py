"""Data mapping and command generation of the PIM side, against plain numpy, on the stack's functional model."""

from typing import Any

import numpy as np
import pytest

from sim_models.golden.pim.stack.pim_stack import Command, PimStack, Work
from sim_models.mapping.pim import SPLITS, Attention, Gemv, PimMappingError, in_a_row
from sim_models.numerics.exact_sums import dot, rounded
from sim_models.params.pim.stack.pim_stack import PimStackParams

SMALL = PimStackParams(pseudo_channels=2, lanes=4, accumulators=4, buffer_words=32, rows=64, columns=8)
WAYS = [(split, across) for split in SPLITS for across in (False, True) if split != "none" or not across]


def operands(gen: np.random.Generator, kind: str, *shape: int) -> Any:
    if kind == "int8":
        return gen.integers(-128, 128, shape, np.int8)
    codes = gen.integers(0, 1 << 16, shape).astype(np.uint16)       # all sizes, subnormal ones too
    return np.where((codes & 0x7C00) == 0x7C00, np.uint16(0x3C00), codes).view(np.float16)


def gemv(p: PimStackParams, x: Any, w: Any, *, form: str | None = None, **how: Any) -> np.ndarray:
    mapping, stack = Gemv(p, w, **how), PimStack(p)
    written = stack.run(mapping.image())
    assert not written.results
    [row] = stack.run(mapping.run(x, form)).results
    return row


@pytest.mark.parametrize("kind", ["fp16", "int8"])
@pytest.mark.parametrize("channels", [1, 2, 3])
def test_gemv_of_any_size_in_every_split(kind: str, channels: int) -> None:
    gen = np.random.default_rng([channels, kind == "int8"])
    p = SMALL.replace(pseudo_channels=channels)
    sizes = [(1, 1), (4, 16), (5, 17), (33, 1), (1, 70), *(map(int, gen.integers(1, 100, 2)) for _ in range(12))]
    for k, n in sizes:
        w, x = operands(gen, kind, k, n), operands(gen, kind, k)
        want = rounded(dot(np.ascontiguousarray(w.T), x[None]), "int32" if kind == "int8" else "float32")
        for split, across in WAYS:
            got = gemv(p, x, w, split=split, across=across, address=int(gen.integers(5)))
            np.testing.assert_array_equal(got, want, f"{k} x {n}, {split}, {across}")
        np.testing.assert_array_equal(gemv(p, x, w), want)


def test_the_split_with_the_fewest_words_is_taken() -> None:
    for k, n in [(96, 32), (256, 4), (8, 300), (50, 7)]:
        w = np.ones((k, n), np.float16)
        sizes = {way: Gemv(SMALL, w, split=way[0], across=way[1]).words for way in WAYS}
        assert Gemv(SMALL, w).words == min(sizes.values())
    assert Gemv(SMALL, np.ones((64, 2), np.float16)).across
    assert Gemv(SMALL, np.ones((4, 32), np.float16)).split == "none"


def test_int8_is_the_integer_product() -> None:
    gen = np.random.default_rng(3)
    w, x = operands(gen, "int8", 77, 50), operands(gen, "int8", 77)
    want = x.astype(np.int64) @ w.astype(np.int64)
    np.testing.assert_array_equal(gemv(SMALL, x, w).view(np.int32), want)
    extreme = np.full((77, 3), -128, np.int8)
    np.testing.assert_array_equal(gemv(SMALL, extreme[:, 0], extreme).view(np.int32), [77 << 14] * 3)


@pytest.mark.parametrize("k", [20, 300])
def test_products_in_a_row(k: int) -> None:
    gen = np.random.default_rng(k)
    xs = [operands(gen, "fp16", k) for _ in range(5)]
    w = operands(gen, "fp16", k, 30)
    mapping, stack = Gemv(SMALL, w), PimStack(SMALL)
    stack.run(mapping.image())
    programs = [mapping.run(x, turn=at % 2) for at, x in enumerate(xs)]
    work = in_a_row(programs)
    assert sorted(map(id, work)) == sorted(id(one) for program in programs for one in program)
    # where x fits half a buffer, the next one is loaded behind the first sums
    assert (work[2] is programs[1][0]) == (k == 20)
    want = rounded(dot(np.ascontiguousarray(w.T)[None], np.stack(xs)[:, None]), "float32")
    np.testing.assert_array_equal(np.stack(stack.run(work).results), want)


def test_a_large_matrix_is_written_in_parts() -> None:
    """A command's number of words has 16 bits, a bank has more."""
    p = SMALL.replace(pseudo_channels=1, rows=16384, columns=8)
    image = [one.command for one in Gemv(p, np.ones((1, 16 * 70_000), np.int8), split="none", address=5).image()]
    assert [(c.address, c.count) for c in image] == [(5, 65535), (65540, 4465)] * 16


def test_a_read_has_no_more_results_than_it_can_count() -> None:
    p = PimStackParams(pseudo_channels=64, lanes=4, accumulators=256, rows=512, columns=8)
    work = Gemv(p, np.ones((1, 70_000), np.int8), split="none").run(np.ones(1, np.int8))
    reads = [one.command for one in work if one.command.op == "read"]
    assert [(c.values, c.first, c.last) for c in reads] == [(64512, 0, False), (5488, 128, True)]


def test_infinities_and_nan_stay_where_they_belong() -> None:
    w = np.ones((20, 40), np.float16)
    w[3, 7], w[19, 8], w[5, 9], w[6, 9], w[0, 10] = np.inf, -np.inf, np.inf, -np.inf, np.nan
    x = np.ones(20, np.float16)
    got = gemv(SMALL, x, w).view(np.float32)
    want = np.full(40, 20, np.float32)
    want[7:11] = np.inf, -np.inf, np.nan, np.nan
    np.testing.assert_array_equal(got, want)
    x[3] = 0                                        # 0 x infinity
    assert np.isnan(gemv(SMALL, x, w).view(np.float32)[7])


def test_half_results_are_rounded_once() -> None:
    gen = np.random.default_rng(4)
    w, x = gen.standard_normal((60, 33)).astype(np.float16), gen.standard_normal(60).astype(np.float16)
    want = rounded(dot(np.ascontiguousarray(w.T), x[None]), "fp16")
    np.testing.assert_array_equal(gemv(SMALL, x, w, form="fp16"), want)


@pytest.mark.parametrize("length", [1, 2, 15, 16, 17, 70])
@pytest.mark.parametrize("size", [1, 16, 19, 64])
def test_attention_is_softmax_of_scores_times_values(size: int, length: int) -> None:
    gen = np.random.default_rng([size, length])
    p = SMALL.replace(buffer_words=128)
    attention, stack = Attention(p, size, length + 9), PimStack(p)
    q, k, v = (gen.standard_normal(shape).astype(np.float16) for shape in ((size,), (length, size), (length, size)))
    before = int(gen.integers(length + 1))
    stack.run(attention.write(k[:before], v[:before]))
    stack.run(attention.write(k, v, before))
    [got] = stack.run(attention.run(q, length)).results
    scores = k.astype(np.float64) @ q.astype(np.float64) / np.sqrt(size)
    power = np.exp(scores - scores.max())
    want = power / power.sum() @ v.astype(np.float64)
    # probabilities are rounded to FP16, to half a unit in the last place each
    np.testing.assert_allclose(got.view(np.float32), want, rtol=2e-3, atol=2e-3)


def test_a_new_position_writes_its_own_words_alone() -> None:
    gen = np.random.default_rng(5)
    attention, stack = Attention(SMALL, 16, 60), PimStack(SMALL)
    k, v = (gen.standard_normal((60, 16)).astype(np.float16) for _ in range(2))
    stack.run(attention.write(k[:40], v[:40]))
    before = stack.banks.copy()
    work = attention.write(k[:41], v[:41], 40)
    stack.run(work)
    # a word of K in each bank of a group, 4 columns of V in each bank of one
    assert sum(one.command.count for one in work) == 4 + 16
    assert (before != stack.banks).any(axis=-1).sum() == 4 + 16
    whole = PimStack(SMALL)
    whole.run(attention.write(k[:41], v[:41]))
    np.testing.assert_array_equal(stack.banks, whole.banks)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(("kept", "anew"), [(6, 0), (6, 1), (0, 1), (15, 1), (16, 0)])
def test_a_roll_back_leaves_no_trace(value: float, kept: int, anew: int) -> None:
    """Values of rejected positions may have overflowed; with probability 0 they must not count either."""
    p, gen = PimStackParams(), np.random.default_rng(7)
    q, k, v = (gen.standard_normal(shape).astype(np.float16) for shape in ((8,), (200, 8), (200, 8)))
    wrong = v.copy()
    wrong[kept:] = value
    stack, head = PimStack(p), Attention(p, 8, 200)
    stack.run(head.write(k, wrong))
    left = kept + anew
    found = stack.run(head.write(k[:left], v[:left], kept) + head.run(q, left)).results[0]
    clean = Attention(p, 8, 200)
    want = PimStack(p).run(clean.write(k[:left], v[:left]) + clean.run(q, left)).results[0]
    assert len(want) == 8
    assert np.array_equal(found, want)


def test_attention_over_nothing_is_no_work() -> None:
    attention = Attention(SMALL, 16, 60)
    empty = np.zeros((0, 16), np.float16)
    assert attention.write(empty, empty) == []
    assert attention.run(np.zeros(16, np.float16), 0) == []


def test_words_are_dealt_out_one_by_one() -> None:
    p = SMALL.replace(pseudo_channels=3)
    stack = PimStack(p)
    words = np.arange(6, dtype=np.uint16).repeat(4).reshape(6, 4)
    stack.run([Work(Command(op="load", mask=0b111, base=2, count=2, deal=True), words)])
    np.testing.assert_array_equal(stack.buffers[:, 2:4, 0], [[0, 3], [1, 4], [2, 5]])


HALF, BYTE = np.float16, np.int8


@pytest.mark.parametrize(("make", "message"), [
    (lambda: Gemv(SMALL, np.ones((0, 4), HALF)), r"with K and N at least 1 were wanted, \(0, 4\) came"),
    (lambda: Gemv(SMALL, np.ones(4, HALF)), r"weights \(K, N\) with K and N at least 1 were wanted, \(4,\) came"),
    (lambda: Gemv(SMALL, np.ones((4, 4))), "numbers of type float16 or int8 were wanted, not float64"),
    (lambda: Gemv(SMALL.replace(format="int8"), np.ones((4, 4), HALF)), "type int8 were wanted, not float16"),
    (lambda: Gemv(SMALL, np.ones((4, 4), HALF), split="row"), "a split among none, bank, group, .* wanted, not row"),
    (lambda: Gemv(SMALL, np.ones((4, 4), HALF), split="none", across=True), "a split among .* wanted, not none"),
    (lambda: Gemv(SMALL, np.ones((400, 400), HALF)), "words 0 to [0-9]+ of each bank are needed, a bank has 512"),
    (lambda: Gemv(SMALL.replace(terms_width=4), np.ones((61, 4), HALF)), "K must be at most 60, so that no sum can"),
    (lambda: Gemv(SMALL, np.ones((4, 4), HALF)).run(np.ones(5, HALF)), r"shape \(4,\) were wanted, float16 \(5,\)"),
    (lambda: Gemv(SMALL, np.ones((4, 4), HALF)).run(np.ones(4, BYTE)), r"float16 .* wanted, int8 \(4,\) came"),
    (lambda: Gemv(SMALL, np.ones((4, 4), BYTE)).run(np.ones(4, BYTE), "fp16"), "of int8 weights cannot be fp16"),
    (lambda: Gemv(SMALL, np.ones((4, 4), HALF)).run(np.ones(4, HALF), "bf16"), "of float16 weights cannot be bf16"),
    (lambda: Gemv(SMALL, np.ones((4, 4), HALF), address=-1), "words -1 to -1 of each bank are needed, a bank"),
    (lambda: Attention(SMALL, 4, 4, address=-9), "words -9 to -?[0-9]+ of each bank are needed, a bank has 512"),
    (lambda: Attention(SMALL, 0, 4), "a head and a capacity of at least 1 were wanted, not 0 and 4"),
    (lambda: Attention(SMALL.replace(format="int8"), 4, 4), "numbers of type int8 were wanted, not float16"),
    (lambda: Attention(SMALL, 16, 400), "56 words of each global buffer are needed, it has 32"),
    (lambda: Attention(SMALL, 16, 4000), "words 0 to 999 of each bank are needed, a bank has 512"),
    (lambda: Attention(SMALL.replace(sfu_length=16), 4, 17), "at most 16 positions fit the SFU, not 17"),
    (lambda: Attention(SMALL.replace(terms_width=4), 61, 4), "at most 60 were wanted, .* not 61 and 4"),
    (lambda: Attention(SMALL, 4, 8).run(np.ones(4, HALF), 9), "from 0 to 8 positions were wanted, not 9"),
    (lambda: Attention(SMALL, 4, 8).run(np.ones(5, HALF), 1), r"a float16 query of shape \(4,\) was wanted"),
    (lambda: Attention(SMALL, 4, 8).run(np.ones(4, HALF), 1, form="int32"), "must be float32 or fp16, not int32"),
    (lambda: Attention(SMALL, 4, 8).write(np.ones((9, 4), HALF), np.ones((9, 4), HALF)), "there is room for 8"),
    (lambda: Attention(SMALL, 4, 8).write(np.ones((2, 4), HALF), np.ones((2, 5), HALF)), r"values of shape \(2, 4\)"),
])
def test_what_cannot_be_mapped_is_refused(make: Any, message: str) -> None:
    with pytest.raises(PimMappingError, match=message):
        make()
