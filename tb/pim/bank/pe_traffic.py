"""Traffic for the processing element of a bank: words of every kind, accumulators in every order."""

import dataclasses
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from rtl.pim.bank.layouts import exact_sum, pe_step
from sim_models.golden.pim.bank.bank_pe import BankPE, ExactSum, word_sums
from sim_models.params.pim.bank.bank_pe import BankPEParams
from sim_models.params.pim.bank.exact_sum import ExactSumParams
from tb.arith.numbers import HALF_SPECIAL
from tb.common.packing import Codec

__all__ = ["KINDS", "PATTERNS", "Traffic", "Words", "pack_steps", "pack_sums", "random_traffic", "seen",
           "unpack_sums"]

#: orders in which accumulators take their turns, see :func:`_indices`
PATTERNS = ("same", "two", "three", "round", "random", "runs")
#: kinds of words, see :func:`_fp16_words`
KINDS = ("anything", "moderate", "tiny", "wide", "cancelling", "largest", "zeros", "special", "infinite",
         "dense_special")
#: infinities, zeros and ones, as many numbers beside them with one bit in the fraction, of both signs
_INFINITE = np.array([sign << 15 | exponent << 10 | fraction for sign in range(2) for exponent in (0, 15, 31)
                      for fraction in (*[0] * 10, *(1 << k for k in range(10)))], np.uint16)


@dataclasses.dataclass(frozen=True)
class Words:
    """Pairs of words, uint16 (n, lanes), and whether they hold int8 numbers, (n,)."""

    row: np.ndarray
    other: np.ndarray
    int8: np.ndarray


@dataclasses.dataclass(frozen=True)
class Traffic:
    """Inputs of the element, an entry a cycle."""

    words: Words
    valid: np.ndarray
    first: np.ndarray
    index: np.ndarray
    read_en: np.ndarray
    read_index: np.ndarray

    def __len__(self) -> int:
        return len(self.valid)

    def cut(self, count: int) -> Self:
        """The first cycles."""
        words = Words(self.words.row[:count], self.words.other[:count], self.words.int8[:count])
        others = {f.name: getattr(self, f.name)[:count] for f in dataclasses.fields(self) if f.name != "words"}
        return type(self)(words, **others)


def random_traffic(p: BankPEParams, gen: np.random.Generator, count: int, *, pattern: str = "random",
                   kinds: tuple[str, ...] = KINDS, rate: float = 1.0) -> Traffic:
    """Steps in nearly every cycle and reads in most, which follow the rules of the block.

    Parameters
    ----------
    pattern:
        One of :data:`PATTERNS`.
    kinds:
        Kinds of words to choose from.
    rate:
        Share of cycles with a step.
    """
    index = _indices(p, gen, count, pattern)
    valid = gen.random(count) < rate
    restart, whole = gen.random(count) < 0.2, gen.integers(0, 2, count).astype(bool)
    first, int8 = np.zeros(count, bool), np.full(count, p.format == "int8")
    sums: dict[int, tuple[bool, int]] = {}              # format of a sum, and words that may still come
    for k in np.flatnonzero(valid):
        at = int(index[k])
        kind, left = sums.get(at, (False, 0))
        first[k] = restart[k] or not left
        if first[k]:
            kind, left = bool(whole[k]) if p.both else not p.fp16, (1 << p.terms_width) - 1
        int8[k] = kind
        sums[at] = kind, left - 1
    fp16, integers = _fp16_words(p, gen, count, kinds), _int8_words(p, gen, count)
    row, other = (np.where(int8[:, None], integers[k], fp16[k]) for k in range(2))
    # a read of the accumulator that has just been written is the interesting one
    near = index[np.maximum(np.arange(count) - p.latency - gen.integers(-2, 3, count), 0)]
    read_index = np.where(gen.integers(0, 2, count), near, gen.integers(0, p.accumulators, count))
    return Traffic(Words(row, other, int8), valid, first, index, gen.random(count) < 0.8, read_index)


def _indices(p: BankPEParams, gen: np.random.Generator, count: int, pattern: str) -> np.ndarray:
    steps = np.arange(count)
    few = gen.choice(p.accumulators, min(3, p.accumulators), replace=False)
    return {
        "same": np.full(count, few[0]),
        "two": few[steps % 2],
        "three": few[steps % len(few)],
        "round": steps % p.accumulators,
        "random": gen.integers(0, p.accumulators, count),
        "runs": gen.integers(0, p.accumulators, count)[np.cumsum(gen.random(count) < 0.3) - 1],
    }[pattern]


def _fp16_words(p: ExactSumParams, gen: np.random.Generator, count: int,
                kinds: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of words of randomly chosen kinds."""
    shape = (2, count, p.lanes)
    anything = gen.integers(0, 1 << 16, shape).astype(np.uint16)
    sign_fraction = anything & 0x83FF
    finite = sign_fraction | (gen.integers(0, 31, shape) << 10).astype(np.uint16)
    lonely = gen.random((1, count, p.lanes)) < 0.7 / p.lanes
    words = {
        "anything": finite,
        "moderate": gen.normal(size=shape).astype(np.float16).view(np.uint16),
        "tiny": sign_fraction,
        # only the extremes of the exponent: carries over the whole width
        "wide": sign_fraction | (gen.choice([0, 1, 29, 30], shape) << 10).astype(np.uint16),
        # each product of an odd lane is that of the even one before, negated
        "cancelling": np.where(np.arange(p.lanes) % 2, np.repeat(finite[:, :, ::2], 2, axis=2)[:, :, :p.lanes]
                               ^ np.array([0x8000, 0], np.uint16)[:, None, None], finite),
        "largest": 0x7BFF | (anything & 0x8000) * gen.integers(0, 2, (2, count, 1)).astype(np.uint16),
        "zeros": np.where(gen.random(shape) < 0.5, anything & 0x8000, finite),
        "special": np.where(lonely, gen.choice(HALF_SPECIAL, shape), finite),
        "infinite": np.where(lonely, gen.choice(_INFINITE, shape), finite),
        "dense_special": gen.choice(HALF_SPECIAL, shape),
    }
    kind = gen.integers(0, len(kinds), count)
    chosen = np.choose(kind[:, None], [words[name][0] for name in kinds])
    return chosen, np.choose(kind[:, None], [words[name][1] for name in kinds])


def _int8_words(p: ExactSumParams, gen: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of words, random or of extremes alone."""
    shape = (2, count, 2 * p.lanes)
    edge = gen.choice(np.array([-128, -127, -1, 0, 1, 127]), shape)
    worst = gen.choice(np.array([-128, 127]), (2, count, 1))
    kind = gen.integers(0, 3, (count, 1))
    numbers = np.where(kind == 0, edge, np.where(kind == 1, worst, gen.integers(-128, 128, shape)))
    row, other = numbers.astype(np.int8).view("<u2").astype(np.uint16)
    return row, other


def _inputs(p: BankPEParams, traffic: Traffic) -> Iterator[dict[str, Any]]:
    """Inputs of the golden model, cycle by cycle."""
    terms = word_sums(p, traffic.words.row, traffic.words.other, traffic.words.int8)
    columns = (traffic.valid, traffic.first, traffic.index, traffic.read_en, traffic.read_index)
    for term, (valid, first, index, read_en, read_index) in zip(
            terms, zip(*(c.tolist() for c in columns), strict=True), strict=True):
        yield {"valid": valid, "first": first, "index": index, "term": term, "read_en": read_en,
               "read_index": read_index}


def seen(model: BankPE, traffic: Traffic) -> list[tuple[ExactSum | None, bool]]:
    """Outputs of the golden model before each clock edge: the sum, if it has a value, and ``busy``."""
    return model.run(list(_inputs(model.p, traffic)))


def pack_steps(p: BankPEParams, traffic: Traffic) -> np.ndarray:
    """Values of the port ``step``, uint8 (n, bytes)."""
    codec = Codec(pe_step(p))
    words = traffic.words
    bits = np.zeros((len(traffic), codec.nbytes * 8), np.uint8)
    for leaf in codec.leaves:
        name = leaf.path[0]
        if name in ("row", "other"):
            data = np.ascontiguousarray(getattr(words, name).astype("<u2")).view(np.uint8)
        else:
            data = (words.int8 if name == "int8" else getattr(traffic, name)).astype("<u2")[:, None].view(np.uint8)
        bits[:, leaf.offset:leaf.offset + leaf.width] = np.unpackbits(data, axis=1, bitorder="little")[:, :leaf.width]
    return np.packbits(bits, axis=1, bitorder="little")


def pack_sums(p: ExactSumParams, sums: list[ExactSum]) -> np.ndarray:
    """Values of a port of sums, uint8 (n, bytes)."""
    width = p.acc_width
    numbers = [s.value % (1 << width) | s.positive << width | s.negative << (width + 1) | s.nan << (width + 2)
               for s in sums]
    return Codec(exact_sum(p)).from_ints(numbers)


def unpack_sums(p: ExactSumParams, payloads: np.ndarray) -> list[ExactSum]:
    """Sums from values of a port."""
    width, found = p.acc_width, []
    for number in Codec(exact_sum(p)).to_ints(payloads):
        value = number % (1 << width)
        found.append(ExactSum(value - (value >> (width - 1) << width),
                              *(bool(number >> (width + k) & 1) for k in range(3))))
    return found
