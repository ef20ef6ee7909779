"""Golden model of the special function unit: rows bit for bit, and the cycles they take."""

import dataclasses
from typing import Any

import numpy as np

from sim_models.numerics.convert import float32_to_fp16, fp16_bits, int_to_float32
from sim_models.numerics.float32 import add, bits, from_bits, multiply
from sim_models.numerics.functions import exp2, reciprocal, rsqrt
from sim_models.params.sfu.buffer_die_sfu import GELU_CUBIC, GELU_RATIO, LOG2_E, BufferDieSfuParams
from sim_models.spec.sfu import SfuError, SfuOp

__all__ = ["BufferDieSfu", "Operands", "Row", "SfuAnswer", "SfuCycles", "SfuResults", "rows",
           "sfu_cycles"]

_MINUS_INFINITY, _MINUS_LARGEST = np.float32(-np.inf), np.float32(-np.finfo(np.float32).max)
#: partial sums over the words of a row
_PARTS = 6
#: operations that sum over the row before they have a first result
_STORED = (SfuOp.SOFTMAX, SfuOp.RMSNORM, SfuOp.LAYERNORM)


@dataclasses.dataclass(frozen=True)
class SfuResults:
    """Results of ``n`` rows of one length.

    Attributes
    ----------
    codes: uint32 (n, length)
        Float32 codes, or FP16 codes.
    zero, nan: bool (n,)
        Flags of the responses.
    """

    codes: np.ndarray
    zero: np.ndarray
    nan: np.ndarray


@dataclasses.dataclass(frozen=True)
class Row:
    """Beats of a row as it is sent; the last one ends it.

    Attributes
    ----------
    data: uint32 (beats, lanes)
    keep: bool (beats, lanes)
    """

    data: np.ndarray
    keep: np.ndarray


@dataclasses.dataclass(frozen=True)
class Operands:
    """Beats of operands as they are sent, uint32 (beats, lanes) each; the last one ends them."""

    weight: np.ndarray
    bias: np.ndarray


@dataclasses.dataclass(frozen=True)
class SfuAnswer:
    """What a command brings forth: a row, whose last beat ends it, and the fields of the response.

    Attributes
    ----------
    data: uint32 (beats, lanes)
    keep: bool (beats, lanes)
    """

    data: np.ndarray
    keep: np.ndarray
    error: SfuError
    length: int
    zero: bool
    nan: bool


@dataclasses.dataclass(frozen=True)
class SfuCycles:
    """Cycles from the transfer of a command, if its row and operands are there and nobody keeps results waiting.

    Attributes
    ----------
    first, last:
        To the transfers of the first and the last beat of the result.
    period:
        To the transfer of the next command.
    """

    first: int
    last: int
    period: int


def sfu_cycles(p: BufferDieSfuParams, op: SfuOp, length: int) -> SfuCycles:
    """Cycles of an operation on a row of any length from 0.

    Raises
    ------
    ValueError
        The row is longer than the unit's longest.
    """
    if not 0 <= length <= p.max_length:
        raise ValueError(f"a length from 0 to {p.max_length} was wanted, not {length}")
    words = max(1, -(-length // p.lanes))
    multiplied, added, powered, inverted, rooted = 3, 6, 5, 6, 8
    # registers in front of the adders behind the lanes, and behind the lanes
    tree = 1 + p.levels * added
    # behind the last word: partial sums are added in pairs, the second pair at 3, and twice more what comes of them
    summed = tree + 3 + 3 * added
    averaged = summed + multiplied
    lanes = {
        SfuOp.COPY: 3, SfuOp.RELU: 3, SfuOp.SILU: 6 + 2 * multiplied + powered + added + inverted,
        SfuOp.GELU: 6 + 4 * multiplied + powered + 2 * added + inverted,
    }.get(op, 4 + 2 * multiplied + added)
    # from the last word of a pass to the first of the next one
    root = 2 + added + multiplied + 1 + averaged + added + rooted + 1
    between = {
        SfuOp.SOFTMAX: [2 + multiplied + added + min(2, p.levels + 1) + 2,
                        2 + added + multiplied + powered + 1 + summed + inverted + 1],
        SfuOp.RMSNORM: [root],
        SfuOp.LAYERNORM: [2 + added + 1 + averaged + 1, root],
    }.get(op, [])
    # a word a cycle, the first one in cycle 1
    begin = 1 + sum(words - 1 + gap for gap in between)
    end = begin + words - 1
    return SfuCycles(first=begin + lanes + 2, last=end + lanes + 2, period=end + lanes + 2)


def rows(p: BufferDieSfuParams, op: SfuOp, codes: Any, *, scalar: int = 0, weight: Any = None, bias: Any = None,
         fp16: bool = False) -> SfuResults:
    """Results for rows of one length.

    Parameters
    ----------
    p:
        Parameters of the block; the lanes decide the order of sums.
    op:
        The operation.
    codes: uint32 (n, length)
        Float32 codes.
    scalar:
        Float32 code: the factor of SOFTMAX, epsilon of the norms.
    weight, bias: uint32, broadcast to (n, length), or None for 1 and 0
        Operands of the norms and of ADD.
    fp16:
        Whether results are FP16.
    """
    x = from_bits(codes)
    n, length = x.shape
    w = np.float32(1) if weight is None or op == SfuOp.ADD else from_bits(weight)
    b = np.float32(0) if bias is None or op == SfuOp.RMSNORM else from_bits(bias)
    zero = np.zeros(n, bool)
    if op in (SfuOp.COPY, SfuOp.RELU):
        negative = np.signbit(x) & ~np.isnan(x) & (op == SfuOp.RELU)
        results = np.where(negative, np.uint32(0), np.asarray(codes).astype(np.uint32))
        y = from_bits(results)
    else:
        if op == SfuOp.ADD:
            y = _finish(x, np.float32(1), w, b)
        elif op in (SfuOp.SILU, SfuOp.GELU):
            y = _gated(op, x)
        elif op == SfuOp.SOFTMAX:
            y, zero = _softmax(p, x, from_bits(scalar))
        else:
            y, zero = _norm(p, op, x, from_bits(scalar), w, b)
        results = bits(y)
    return SfuResults(fp16_bits(float32_to_fp16(y)).astype(np.uint32) if fp16 else results,
                      zero | (op in _STORED and length == 0), np.asarray(np.isnan(y).any(axis=1)))


def _finish(x: np.ndarray, factor: Any, weight: Any, bias: Any) -> np.ndarray:
    return add(multiply(multiply(x, factor), weight), bias)


def _gated(op: SfuOp, x: np.ndarray) -> np.ndarray:
    """x times a sigmoid, which is 0 at -inf."""
    if op == SfuOp.SILU:
        z = multiply(x, -from_bits(LOG2_E))
    else:
        z = multiply(multiply(add(multiply(x, x), from_bits(GELU_RATIO)), x), from_bits(GELU_CUBIC))
    return multiply(reciprocal(add(exp2(z), np.float32(1))), np.where(x == _MINUS_INFINITY, _MINUS_LARGEST, x))


def _softmax(p: BufferDieSfuParams, x: np.ndarray, factor: Any) -> tuple[np.ndarray, np.ndarray]:
    t = add(multiply(x, factor), np.float32(0))
    best = np.max(np.where(np.isnan(t), _MINUS_INFINITY, t), axis=1, keepdims=True, initial=_MINUS_INFINITY)
    # nothing is subtracted where nothing is larger than -inf
    addend = np.where(best == _MINUS_INFINITY, np.float32(0), -best)
    power = exp2(multiply(add(t, addend), from_bits(LOG2_E)))
    total = _total(p, power)
    zero = total == 0
    return _finish(power, np.where(zero, np.float32(0), reciprocal(total)), np.float32(1), np.float32(0)), zero[:, 0]


def _norm(p: BufferDieSfuParams, op: SfuOp, x: np.ndarray, epsilon: Any, weight: Any,
          bias: Any) -> tuple[np.ndarray, np.ndarray]:
    length = reciprocal(int_to_float32(x.shape[1]))
    if op == SfuOp.LAYERNORM:
        # relative to the first number, so that a constant row is all zeros
        x = add(x, -x[:, :1])
        x = add(x, -multiply(_total(p, x), length))
    else:
        x = add(x, np.float32(0))
    divisor = add(multiply(_total(p, multiply(x, x)), length), epsilon)
    zero = divisor == 0
    return _finish(x, np.where(zero, np.float32(0), rsqrt(divisor)), weight, bias), zero[:, 0]


def _total(p: BufferDieSfuParams, terms: np.ndarray) -> np.ndarray:
    """Sum of each row, float32 (n, 1): over the lanes of a word by pairs, then over every sixth word in order."""
    n, length = terms.shape
    words = max(1, -(-length // p.lanes))
    padded = np.zeros((n, words * p.lanes), np.float32)
    padded[:, :length] = terms
    nodes = padded.reshape(n, words, p.lanes)
    while nodes.shape[2] > 1:
        nodes = add(nodes[:, :, ::2], nodes[:, :, 1::2])
    parts = np.zeros((n, _PARTS), np.float32)
    for k in range(words):
        parts[:, k % _PARTS] = add(nodes[:, k, 0], parts[:, k % _PARTS])
    q = np.roll(parts, -(words % _PARTS), axis=1)
    pairs = [add(q[:, k:k + 1], q[:, k + 1:k + 2]) for k in range(0, _PARTS, 2)]
    return add(add(pairs[0], pairs[1]), pairs[2])


class BufferDieSfu:
    """The unit, command by command, with rows and operands as they come.

    Parameters
    ----------
    p:
        Parameters of the block.
    """

    def __init__(self, p: BufferDieSfuParams) -> None:
        self.p = p

    def answer(self, op: int, row: Row, operands: Operands | None = None, *, scalar: int = 0, affine: bool = False,
               fp16: bool = False) -> SfuAnswer:
        """Outcome of a command.

        Parameters
        ----------
        op:
            Code of the operation, 0 to 15.
        row:
            The row.
        operands:
            Weights and biases; must be given if the operation takes some, and only then.
        scalar, affine, fp16:
            The other fields of the command.

        Raises
        ------
        ValueError
            Operands are missing, or nobody would take them.
        """
        if op not in list(SfuOp):
            if operands is not None:
                raise ValueError(f"no operands were wanted for the unknown operation {op}")
            return self._refused(SfuError.OP, np.zeros((0, self.p.lanes), np.uint32))
        kind = SfuOp(op)
        takes = kind == SfuOp.ADD or (affine and kind in (SfuOp.RMSNORM, SfuOp.LAYERNORM))
        if takes != (operands is not None):
            raise ValueError(f"{'operands were' if takes else 'no operands were'} wanted for {kind.name}")
        error, good = self._check(kind, row, operands)
        stored = kind in _STORED
        if error is not SfuError.OK and stored:
            return self._refused(error, row.data[:0])
        ends = len(row.data) if operands is None else min(len(row.data), len(operands.weight))
        length = int(row.keep[:good].sum())
        flat = {name: self._flat(value, length) for name, value in (
            ("weight", None if operands is None else operands.weight),
            ("bias", None if operands is None else operands.bias))}
        found = rows(self.p, kind, row.data[:good].reshape(1, -1)[:, :length], scalar=scalar, fp16=fp16, **flat)
        data = np.zeros((good, self.p.lanes), np.uint32)
        data.reshape(-1)[:length] = found.codes[0]
        if error is not SfuError.OK:
            return self._refused(error, data)
        if stored and operands is not None and len(operands.weight) != good:
            return self._refused(SfuError.OPERANDS, data[:ends - 1])
        return SfuAnswer(data, row.keep, error, length, bool(found.zero[0]), bool(found.nan[0]))

    def _check(self, op: SfuOp, row: Row, operands: Operands | None) -> tuple[SfuError, int]:
        """The first fault on the way in, and how many beats are without one."""
        final = len(row.data) - 1
        for k, keep in enumerate(row.keep):
            prefix = bool((np.sort(keep)[::-1] == keep).all())
            full = keep.all() if k < final else prefix and (keep.any() or k == 0)
            if k == self.p.words:
                return SfuError.LENGTH, k
            if not full:
                return SfuError.KEEP, k
            if op == SfuOp.ADD and operands is not None and (k == len(operands.weight) - 1) != (k == final):
                return SfuError.OPERANDS, k
        return SfuError.OK, final + 1

    def _flat(self, beats: np.ndarray | None, length: int) -> np.ndarray | None:
        """The first ``length`` operands; what is missing does not count."""
        if beats is None:
            return None
        flat = np.zeros(max(length, beats.size), np.uint32)
        flat[:beats.size] = beats.reshape(-1)
        return flat[None, :length]

    def _refused(self, error: SfuError, data: np.ndarray) -> SfuAnswer:
        """The results so far, and an empty beat."""
        lanes = self.p.lanes
        keep = np.concatenate([np.ones((len(data), lanes), bool), np.zeros((1, lanes), bool)])
        return SfuAnswer(np.concatenate([data, np.zeros((1, lanes), np.uint32)]), keep, error, 0, False, False)
