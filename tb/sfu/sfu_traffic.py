"""Commands for the special function unit, with rows and operands of all kinds, and what they are to bring forth."""

import dataclasses
from typing import Any

import numpy as np

from rtl.sfu.layouts import sfu_beat, sfu_command, sfu_operands
from sim_models.golden.sfu.buffer_die_sfu import BufferDieSfu, Operands, Row, SfuAnswer
from sim_models.numerics.float32 import bits
from sim_models.params.sfu.buffer_die_sfu import BufferDieSfuParams
from sim_models.spec.sfu import SfuOp
from tb.arith.numbers import float32_codes
from tb.common.packing import codec
from tb.common.scoreboard import compare

__all__ = ["FAULTS", "RESPONSE", "Job", "Packed", "check", "job", "make_row", "pack", "random_job", "row_codes"]

#: fields of a response
RESPONSE = ("error", "length", "zero", "nan")
#: what can be wrong with a command
FAULTS = ("op", "long", "hole", "short", "empty", "fewer", "more")
#: a NaN that must not count
_POISON = 0xFFC0DEAD
#: -inf, +inf, a NaN, -0, a subnormal number, the largest
_SPECIALS = np.array([0xFF800000, 0x7F800000, 0x7F812345, 0x80000000, 0x00400000, 0x7F7FFFFF], np.uint32)


@dataclasses.dataclass(frozen=True)
class Job:
    """A command with all that belongs to it."""

    op: int
    row: Row
    operands: Operands | None
    scalar: int
    affine: bool
    fp16: bool

    def answer(self, p: BufferDieSfuParams) -> SfuAnswer:
        """What the model says."""
        return BufferDieSfu(p).answer(self.op, self.row, self.operands, scalar=self.scalar, affine=self.affine,
                                      fp16=self.fp16)


@dataclasses.dataclass(frozen=True)
class Packed:
    """Payloads of some jobs' beats, uint8 (beats, bytes) a stream."""

    command: np.ndarray
    row: np.ndarray
    operands: np.ndarray


def _beats(p: BufferDieSfuParams, codes: np.ndarray) -> np.ndarray:
    words = max(1, -(-len(codes) // p.lanes))
    data = np.full(words * p.lanes, _POISON, np.uint32)
    data[:len(codes)] = codes
    return data.reshape(words, p.lanes)


def make_row(p: BufferDieSfuParams, codes: np.ndarray) -> Row:
    """A row as it should be, NaNs in the lanes behind its end."""
    data = _beats(p, codes)
    return Row(data, np.arange(data.size).reshape(data.shape) < len(codes))


def job(p: BufferDieSfuParams, op: SfuOp, codes: np.ndarray, *, scalar: float = 0.0, weight: np.ndarray | None = None,
        bias: np.ndarray | None = None, fp16: bool = False) -> Job:
    """A command without a fault; weight and bias come together, uint32 (length,)."""
    operands = None
    if bias is not None:
        operands = Operands(_beats(p, bias if weight is None else weight), _beats(p, bias))
    return Job(op, make_row(p, codes), operands, int(bits(np.float32(scalar))), weight is not None, fp16)


def row_codes(gen: np.random.Generator, length: int) -> np.ndarray:
    """Float32 codes of one of several kinds of rows."""
    kind = int(gen.integers(8))
    spread = np.float32(10.0 ** gen.integers(-3, 4))
    normal = gen.normal(0, 1, length).astype(np.float32)
    if kind == 0:
        codes = float32_codes(gen, length)
    elif kind == 1:
        codes = bits(np.sort(normal) * spread)                          # a new maximum in every word
    elif kind == 2:
        codes = bits(np.full(length, normal[0] if length else 0) * spread)
    elif kind == 3:
        codes = bits(np.zeros(length, np.float32))
    elif kind == 4:
        codes = bits(normal + np.float32(-1e6))
    else:
        codes = bits(normal * spread)
    special = gen.random(length) < gen.choice([0, 0, 0, 0.05, 1.0])
    chosen = gen.choice(_SPECIALS, length, p=[0.9, 0.02, 0.02, 0.02, 0.02, 0.02])
    return np.where(special, chosen, codes).astype(np.uint32)


def random_job(p: BufferDieSfuParams, gen: np.random.Generator, length: int, *, op: int | None = None,
               fault: str | None = None) -> Job:
    """A command on a row of this length.

    Parameters
    ----------
    op:
        The operation; any when None.
    fault:
        One of ``FAULTS``; where it cannot be made of this command the command is without one.
    """
    op = int(gen.choice(list(SfuOp))) if op is None else op
    op = int(gen.integers(len(SfuOp), 16)) if fault == "op" else op
    affine, fp16 = bool(gen.integers(2)), bool(gen.integers(2))
    scalar = bits(np.float32(gen.choice([0.0, 1.0, 0.125, 1e-5, -1.0], p=[0.1, 0.2, 0.4, 0.25, 0.05])))
    takes = op == SfuOp.ADD or (affine and op in (SfuOp.RMSNORM, SfuOp.LAYERNORM))
    row = make_row(p, row_codes(gen, length))
    beats = len(row.data)
    if fault == "fewer" and beats > 1:
        beats = int(gen.integers(1, beats))
    beats += int(gen.integers(1, 4)) if fault == "more" else 0
    operands = Operands(*(row_codes(gen, beats * p.lanes).reshape(-1, p.lanes) for _ in range(2))) if takes else None
    return Job(op, _spoil(p, gen, row, fault), operands, int(scalar), affine, fp16)


def _spoil(p: BufferDieSfuParams, gen: np.random.Generator, row: Row, fault: str | None) -> Row:
    keep = row.keep.copy()
    at = int(gen.integers(len(keep)))
    if fault == "long":
        beats = p.words + int(gen.integers(1, 4))
        return Row(row_codes(gen, beats * p.lanes).reshape(-1, p.lanes), np.ones((beats, p.lanes), bool))
    if fault == "hole" and p.lanes > 1:
        # a lane is kept above one that is not
        hole = int(gen.integers(p.lanes - 1))
        keep[at, hole], keep[at, hole + 1] = False, True
    if fault == "short" and len(keep) > 1:
        keep[min(at, len(keep) - 2), p.lanes - 1] = False
    if fault == "empty" and len(keep) > 1:
        keep[-1] = False
    return Row(row.data, keep)


def _flags(keep: np.ndarray) -> np.ndarray:
    return keep.astype(np.int64) @ (1 << np.arange(keep.shape[1], dtype=np.int64))


def pack(p: BufferDieSfuParams, jobs: list[Job]) -> Packed:
    """Beats of all streams."""
    command = codec(sfu_command).pack(
        op=np.array([j.op for j in jobs]), fp16=np.array([j.fp16 for j in jobs]),
        affine=np.array([j.affine for j in jobs]), scalar=np.array([j.scalar for j in jobs], np.int64))

    def last(beats: np.ndarray) -> np.ndarray:
        return np.arange(len(beats)) == len(beats) - 1
    row, operands = codec(sfu_beat(p)), codec(sfu_operands(p))
    rows = [row.pack(data=j.row.data.astype(np.int64), keep=_flags(j.row.keep), last=last(j.row.data)) for j in jobs]
    taken = [operands.pack(weight=o.weight.astype(np.int64), bias=o.bias.astype(np.int64), last=last(o.bias))
             for o in (j.operands for j in jobs) if o is not None]
    none = np.zeros((0, operands.nbytes), np.uint8)
    return Packed(command, np.concatenate(rows), np.concatenate([none, *taken]))


def check(p: BufferDieSfuParams, answers: list[SfuAnswer], beats: Any, responses: Any, what: str) -> None:
    """Compare unpacked beats and responses with what was wanted."""
    want = np.concatenate([a.data for a in answers]).astype(np.int64)
    compare(beats["keep"], _flags(np.concatenate([a.keep for a in answers])), f"{what}: lanes kept [beat]")
    compare(beats["last"], np.concatenate([np.arange(len(a.data)) == len(a.data) - 1 for a in answers]).astype(int),
            f"{what}: last [beat]")
    compare(beats["data"], want, f"{what}: results [beat, lane]")
    compare(np.stack([responses[name] for name in RESPONSE], axis=1),
            [[int(getattr(a, name)) for name in RESPONSE] for a in answers],
            f"{what}: responses [command, {{{', '.join(RESPONSE)}}}]")
