"""The stack's host: drives commands through the Verilated stack and takes its rows and responses apart."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rtl.pim.stack.layouts import stack_command, stack_response
from rtl.pim.stack.pim_stack import PimStack
from rtl.sfu.layouts import sfu_beat, sfu_operands
from sim_models.golden.pim.stack.pim_stack import Command, Outcome, Response, Work
from sim_models.numerics.float32 import bits
from sim_models.params.pim.stack.pim_stack import PimStackParams
from sim_models.spec.bank import DramError, ResultFormat
from sim_models.spec.channel import PimOp, PimReduce, PimSpread
from sim_models.spec.sfu import SfuOp
from sim_models.spec.stack import StackStatus, StackUnit
from tb.common.native import NativeLibrary, NativeSim
from tb.common.packing import Codec
from tb.common.scoreboard import Mismatch

__all__ = ["ONCE", "Finished", "StackCodecs", "StackHost", "assemble"]

#: blocks that are large and come several times
ONCE = ("pseudo_channel", "bank_group")


class StackCodecs:
    """Between commands and the beats of a stack's streams."""

    def __init__(self, p: PimStackParams) -> None:
        self.p = p
        self.command, self.response = Codec(stack_command(p)), Codec(stack_response)
        self.beat, self.operands = Codec(sfu_beat(p.sfu)), Codec(sfu_operands(p.sfu))

    def commands(self, commands: Sequence[Command]) -> np.ndarray:
        """Beats of commands."""
        rows = [_fields(c) for c in commands]
        return self.command.pack({name: np.array([r[name] for r in rows], object) for name in rows[0]})

    def row(self, codes: np.ndarray) -> np.ndarray:
        """Beats of a row."""
        beats = max(1, -(-len(codes) // 4))
        numbers = np.zeros(4 * beats, np.int64)
        numbers[:len(codes)] = codes
        keep = np.full(beats, 15)
        keep[-1] = (1 << len(codes) - 4 * (beats - 1)) - 1
        return self.beat.pack(data=numbers.reshape(-1, 4), keep=keep, last=np.arange(beats) == beats - 1)

    def operand_beats(self, one: Work) -> np.ndarray:
        """Beats of weights and biases."""
        given = [codes for codes in (one.weight, one.bias) if codes is not None]
        beats = max(1, -(-len(given[0]) // 4))
        numbers = {}
        for name, codes in (("weight", one.weight), ("bias", one.bias)):
            numbers[name] = np.zeros(4 * beats, np.int64)
            if codes is not None:
                numbers[name][:len(codes)] = codes
        return self.operands.pack({name: n.reshape(-1, 4) for name, n in numbers.items()},
                                  last=np.arange(beats) == beats - 1)

    def queues(self, work: Sequence[Work]) -> dict[str, np.ndarray]:
        """Beats for every input stream."""
        words = [np.ascontiguousarray(one.words).view(np.uint8) for one in work if one.words is not None]
        rows = [self.row(one.row) for one in work if one.row is not None]
        operands = [self.operand_beats(one) for one in work if one.weight is not None or one.bias is not None]
        found = {"i_command": [self.commands([one.command for one in work])] if work else [],
                 "i_data": words, "i_row": rows, "i_operands": operands}
        return {stream: np.concatenate(beats) for stream, beats in found.items() if beats}

    def responses(self, beats: np.ndarray) -> list[Response]:
        """Responses from beats."""
        f = self.response.unpack(beats)
        return [Response(StackStatus(int(s)).name.lower(), *map(int, counts)) for s, *counts in zip(
            f["status"], f["cycles"], f["hits"], f["misses"], strict=True)]


def _fields(c: Command) -> dict[str, int]:
    sfu = c.op == "sfu"
    pim: dict[str, Any] = {name: getattr(c, name) for name in (
        "address", "count", "base", "first", "outputs", "clear", "int8", "group", "bank")}
    pim |= {"op": 0 if sfu else PimOp[c.op.upper()].value, "reduce": PimReduce[c.reduce.upper()].value,
            "spread": 3 if c.spread == "invalid" else PimSpread[c.spread.upper()].value}
    function = {"op": SfuOp[c.operation.upper()].value, "fp16": c.fp16, "affine": c.affine,
                "scalar": int(bits(np.float32(c.scalar)))}
    own = {name: getattr(c, name) for name in (
        "deal", "from_sfu", "across", "values", "last", "to_sfu", "from_host", "to_buffers")}
    own |= {"unit": StackUnit.SFU.value if sfu else StackUnit.CHANNELS.value, "channels": c.mask,
            "format": ResultFormat[c.form.upper()].value}
    named = own | {f"pim.{k}": v for k, v in pim.items()} | {f"sfu.{k}": v for k, v in function.items()}
    return {name: int(value) for name, value in named.items()}


def assemble(fields: dict[str, np.ndarray], what: str, *, singles: bool = False) -> list[np.ndarray]:
    """Rows from beats; every row must have ended, and all beats but its last must be full.

    Sums over all banks are ``singles``: their beats hold one number.

    Raises
    ------
    Mismatch
        A beat keeps other lanes than the lowest, is not full within a row, or a row is not complete.
    """
    rows: list[np.ndarray] = []
    parts: list[np.ndarray] = []
    for data, keep, last in zip(fields["data"], fields["keep"], fields["last"], strict=True):
        count = int(keep).bit_count()
        if keep != (1 << count) - 1 or not (count == 4 or last or (singles and count == 1)) or data[count:].any():
            raise Mismatch(f"{what}: a beat keeps {keep:#x} of {data} with last = {last}")
        parts.append(data[:count])
        if last:
            rows.append(np.concatenate(parts).astype(np.uint32))
            parts = []
    if parts:
        raise Mismatch(f"{what}: the last row has no end")
    return rows


@dataclasses.dataclass(frozen=True)
class Finished:
    """What commands gave.

    Members
    -------
    outcome: Outcome
        Rows that came to the host.
    responses: list of Response
    began: int
        Cycle of the first command's transfer.
    ended, answered: int
        Cycle of the last beat of the last row, and of the last response, -1 without any.
    """

    outcome: Outcome
    responses: list[Response]
    began: int
    ended: int
    answered: int

    @property
    def cycles(self) -> int:
        """From the first command to the last result, both included."""
        return self.ended - self.began + 1


class StackHost:
    """Commands on a Verilated stack.

    Parameters
    ----------
    p:
        The stack.
    build_root:
        Folder of all builds.
    seed:
        Of pauses and of uninitialised memory.
    library:
        A compiled stack to be used instead of building one.
    """

    def __init__(self, p: PimStackParams, build_root: Path, *, seed: int = 1,
                 library: NativeLibrary | None = None) -> None:
        self.p, self.codecs = p, StackCodecs(p)
        self.sim = NativeSim(library or PimStack(p), build_root, seed=seed, once=ONCE)
        self.reset()

    def reset(self) -> None:
        """Reset; banks and buffers keep what is in them."""
        self.sim.reset()

    def run(self, work: Sequence[Work], *, results: int = 0, rows: int = 0, max_cycles: int = 1 << 22) -> Finished:
        """Carry out commands until all are answered and so many rows have come.

        Raises
        ------
        NativeTimeout
            Not within ``max_cycles``.
        Mismatch
            Beats make no rows, other rows came, or a rule of DRAM was broken.
        """
        sim = self.sim
        sim.accepted("i_command")
        for stream, beats in self.codecs.queues(work).items():
            sim.push(stream, beats)
        sim.run({"o_response": sim.total("o_response") + len(work),
                 "o_result": sim.total("o_result") + results, "o_row": sim.total("o_row") + rows}, max_cycles)
        error = DramError(sim.get("error"))
        if error != DramError.NONE:
            raise Mismatch(f"a rule of DRAM was broken: {error.name}")
        payloads, stamps = sim.take("o_result")
        more, _ = sim.take("o_row")
        answers, answered = sim.take("o_response")
        outcome = Outcome(assemble(self.codecs.beat.unpack(payloads), "o_result"),
                          assemble(self.codecs.beat.unpack(more), "o_row"))
        return Finished(outcome, self.codecs.responses(answers), int(sim.accepted("i_command")[0]),
                        int(stamps[-1]) if len(stamps) else -1, int(answered[-1]) if len(answered) else -1)
