"""Golden model of a bank's processing element: exact sums as Python integers.

FP16 numbers are integers times 2^-24, so that products are integers times 2^-48. No rounding happens here.
"""

import collections
import dataclasses
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from sim_models.params.pim.bank.bank_pe import BankPEParams
from sim_models.params.pim.bank.exact_sum import ExactSumParams

__all__ = ["BankPE", "ExactSum", "dot", "products", "word_sums"]

#: bits of a digit; one product spans 3 digits at most, and sums of 2^24 words stay within int64
_DIGIT = 20


@dataclasses.dataclass(frozen=True)
class ExactSum:
    """A sum that was not rounded.

    Attributes
    ----------
    value:
        Sum of the finite products, in units of 2^-48 for FP16; an integer for int8.
    positive, negative, nan:
        An infinite product of this sign, or a NaN, is in the sum.
    """

    value: int = 0
    positive: bool = False
    negative: bool = False
    nan: bool = False

    def __add__(self, other: Self) -> "ExactSum":
        return ExactSum(self.value + other.value, self.positive or other.positive, self.negative or other.negative,
                        self.nan or other.nan)


def word_sums(p: ExactSumParams, row: Any, other: Any, int8: Any = None) -> list[ExactSum]:
    """The sum over the lanes of each pair of words.

    Parameters
    ----------
    row, other: uint16 (n, lanes)
        Words: FP16 codes, or two int8 numbers in each code, the lower one in the low bits.
    int8: (n,) or one for all, optional
        Whether the words hold int8 numbers; needed only where the format is chosen at run time.

    Returns
    -------
    list[ExactSum]
        One for each pair.
    """
    a, b = (np.asarray(words).astype(np.uint16).reshape(-1, p.lanes) for words in (row, other))
    if p.both and int8 is None:
        raise ValueError("int8 was wanted, 0 or 1 for each pair of words, none came")
    whole = np.broadcast_to(np.asarray(int8 if p.both else p.int8, bool), len(a))
    sums = [ExactSum()] * len(a)
    for rows, method in ((np.flatnonzero(~whole), _fp16_sums), (np.flatnonzero(whole), _int8_sums)):
        for at, total in zip(rows, method(a[rows], b[rows]), strict=True):
            sums[at] = total
    return sums


def dot(p: ExactSumParams, row: Any, other: Any, int8: bool = False) -> ExactSum:
    """Sum over all lanes of all pairs of words; parameters as for :func:`word_sums`, of one format."""
    return sum(word_sums(p, row, other, int8), ExactSum())


def _int8_sums(a: np.ndarray, b: np.ndarray) -> list[ExactSum]:
    left, right = (np.ascontiguousarray(x.astype("<u2")).view(np.int8).astype(np.int64) for x in (a, b))
    return [ExactSum(int(n)) for n in (left * right).sum(axis=1)]


def products(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
    """Exact products of FP16 numbers.

    Parameters
    ----------
    a, b: uint16
        Codes, of one shape.

    Returns
    -------
    tuple
        Signed significand and place, int64 (a finite product is significand * 2^(place - 48), others have 0);
        positive infinity, negative infinity, NaN.
    """
    (m, place_a, zero_a, inf_a, nan_a), (n, place_b, zero_b, inf_b, nan_b) = _parts(a), _parts(b)
    nan = nan_a | nan_b | (inf_a & zero_b) | (zero_a & inf_b)
    infinite = (inf_a | inf_b) & ~nan
    minus = (a ^ b) >> 15 == 1
    finite = ~(nan | infinite)
    product = np.where(finite, np.where(minus, -m * n, m * n), 0)
    place = np.where(finite, place_a + place_b, 0)
    return product, place, infinite & ~minus, infinite & minus, nan


def _fp16_sums(a: np.ndarray, b: np.ndarray) -> list[ExactSum]:
    product, place, *specials = products(a, b)
    digits = [np.where(place // _DIGIT == d, product << (place % _DIGIT), 0).sum(axis=1) for d in range(3)]
    flags = [x.any(axis=1) for x in specials]
    return [ExactSum(sum(int(x) << (_DIGIT * d) for d, x in enumerate(value)), *map(bool, marks))
            for value, marks in zip(zip(*digits, strict=True), zip(*flags, strict=True), strict=True)]


def _parts(codes: np.ndarray) -> tuple[np.ndarray, ...]:
    """Significand and how far it is shifted (a number is their product times 2^-24); zero, infinite, NaN."""
    exponent, fraction = (codes >> 10 & 31).astype(np.int64), (codes & 1023).astype(np.int64)
    significand = np.where(exponent > 0, fraction + 1024, fraction)
    return (significand, np.maximum(exponent, 1) - 1, significand == 0, (exponent == 31) & (fraction == 0),
            (exponent == 31) & (fraction != 0))


class BankPE:
    """Processing element, cycle by cycle.

    Parameters
    ----------
    p:
        Parameters of the block.

    Attributes
    ----------
    sum: ExactSum or None
        What stands at the output; None until the first read of an accumulator that has a value.
    accumulators: list
        An :class:`ExactSum` each, None while it has no value.
    """

    def __init__(self, p: BankPEParams) -> None:
        self.p = p
        self.accumulators: list[ExactSum | None] = [None] * p.accumulators
        self.reset()

    def reset(self) -> None:
        """Steps and reads on their way are gone; accumulators and what depends on them have no value."""
        self._steps: collections.deque[tuple[int, bool, ExactSum] | None] = collections.deque(
            [None] * (self.p.latency - 1))
        self._reads: collections.deque[tuple[ExactSum | None] | None] = collections.deque(
            [None] * (self.p.read_latency - 1))
        self.accumulators = [None] * self.p.accumulators
        self.sum: ExactSum | None = None

    @property
    def busy(self) -> bool:
        """Whether a step is on its way."""
        return any(step is not None for step in self._steps)

    def step(self, *, valid: int = 0, first: int = 0, index: int = 0, term: ExactSum | None = None, read_en: int = 0,
             read_index: int = 0) -> None:
        """One clock edge with these inputs; ``term`` is the sum over the lanes, see :func:`word_sums`."""
        self._reads.append((self.accumulators[read_index],) if read_en else None)
        read = self._reads.popleft()
        if read is not None:
            self.sum = read[0]
        self._steps.append((index, bool(first), term or ExactSum()) if valid else None)
        done = self._steps.popleft()
        if done is not None:
            at, fresh, total = done
            before = ExactSum() if fresh else self.accumulators[at]
            self.accumulators[at] = None if before is None else before + total

    def run(self, steps: Sequence[dict[str, Any]]) -> list[tuple[ExactSum | None, bool]]:
        """What :attr:`sum` and :attr:`busy` are before each clock edge with these inputs."""
        seen = []
        for inputs in steps:
            seen.append((self.sum, self.busy))
            self.step(**inputs)
        return seen
