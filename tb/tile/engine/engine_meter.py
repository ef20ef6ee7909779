"""Cycles of GEMMs on the Verilated engine; values compared with numpy, cycle counts with the golden model."""

import copy
import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gen.emit.emit import Design
from rtl.tile.engine.compute_engine import ComputeEngine
from sim_models.golden.tile.engine.compute_engine import cycles, gap, steps
from sim_models.mapping.gemm import MODES, Program
from sim_models.params.tile.engine.compute_engine import ComputeEngineParams
from tb.common.native import compile_native
from tb.common.runner import unit_ports
from tb.common.scoreboard import Mismatch, compare
from tb.tile.engine.engine_host import EngineHost, Outcome

__all__ = ["EngineMeter", "Measured", "PassMeasured", "alternate", "resident"]

#: equal commands in a row, and how many distances at their end are measured: those before fill whatever the engine
#: queues up; an even number, since halves of memories take turns
RESIDENT, MEASURED = 12, 8
#: the same for GEMMs of several commands: the first is not measured
STREAMED = 4


@dataclasses.dataclass(frozen=True)
class Measured:
    """One GEMM, measured alone and back to back.

    Members
    -------
    cycles: int
        From the first operand to the last result, both included.
    interval: float
        Cycles between the ends of equal GEMMs that follow each other, once this has settled.
    array: int
        Cycles of such an interval for which the model says that the array is occupied; an interval that is longer
        is bound by something else.
    commands: int
        Commands that the GEMM is split into.
    resident: bool
        Back to back, the operands stayed in the local memories (one command); else every command's operands were
        streamed in while the one before was computed.
    """

    cycles: int
    interval: float
    array: int
    commands: int
    resident: bool


@dataclasses.dataclass(frozen=True)
class PassMeasured:
    """Several GEMMs in one queue, their operands streamed in at a word of each memory a cycle.

    Members
    -------
    busy: int
        Sum over all commands of the cycles from first operand to last result.
    total: int
        Cycles from the first beat of the first operand to the last beat of the last result.
    interval: int
        Cycles between the ends of two such queues that follow each other; 0 when there was one.
    """

    busy: int
    total: int
    interval: int


def alternate(programs: Sequence[Program]) -> list[Program]:
    """Copies whose operand blocks go to the two halves of each memory in turn, from program to program.

    A program by itself begins with half 0. In a row, this would make its first block wait for the last block of
    the program before, where that lies in the same half.
    """
    out = []
    flip = {"activation": 0, "weight": 0}
    for program in programs:
        turned = copy.copy(program)
        a, w = flip["activation"], flip["weight"]
        turned.activations = [(half ^ a, words) for half, words in program.activations]
        turned.weights = [(half ^ w, words) for half, words in program.weights]
        turned.commands = [dataclasses.replace(c, activation_half=c.activation_half ^ a,
                                               weight_half=c.weight_half ^ w) for c in program.commands]
        flip["activation"] ^= len(program.activations) % 2
        flip["weight"] ^= len(program.weights) % 2
        out.append(turned)
    return out


def resident(program: Program, count: int) -> list[Program]:
    """A program of one command ``count`` times, on operands that are filled once and released by the last.

    Raises
    ------
    ValueError
        The program has several commands.
    """
    if len(program.commands) != 1:
        raise ValueError(f"a program of one command was wanted, one of {len(program.commands)} came")
    out = []
    for index in range(count):
        one = copy.copy(program)
        if index:
            one.activations, one.weights = [], []
        last = index == count - 1
        one.commands = [dataclasses.replace(program.commands[0], release_activation=last, release_weight=last)]
        out.append(one)
    return out


class EngineMeter:
    """A Verilated engine that checks every value and every cycle count against the models.

    Parameters
    ----------
    p:
        The engine.
    build_root:
        Folder of all builds.
    seed:
        Of uninitialised memory.
    design:
        The engine's Verilog, where that has been emitted already.

    Notes
    -----
    The methods raise :class:`tb.common.scoreboard.Mismatch` on the first value, status or cycle count that
    differs from the models, and whatever :meth:`tb.common.native.NativeSim.run` raises.
    """

    def __init__(self, p: ComputeEngineParams, build_root: Path, *, seed: int = 1,
                 design: Design | None = None) -> None:
        self.p = p
        library = design and compile_native(design.simulation, design.top, unit_ports(ComputeEngine(p)), build_root)
        self.host = EngineHost(p, build_root, seed=seed, library=library)
        self.compared = 0

    def measure(self, x: np.ndarray, w: np.ndarray, mode: str) -> Measured:
        """x [M, K] times w [K, N], alone and back to back."""
        program, want = Program(self.p, x, w, mode=mode), _product(x, w)
        name = f"{' x '.join(map(str, program.shape))} {mode}"
        [alone] = self._run([program], [want], [name])
        elapsed = int(alone.answered[-1] - alone.answered[0]) + alone.responses[0].cycles
        is_resident = len(program.commands) == 1
        queue = resident(program, RESIDENT) if is_resident else alternate([program] * STREAMED)
        outcomes = self._run(queue, [want] * len(queue), [f"{name} back to back"] * len(queue))
        ends = [int(o.answered[-1]) for o in outcomes][-1 - MEASURED if is_resident else 0:]
        return Measured(elapsed, (ends[-1] - ends[0]) / (len(ends) - 1), self._array(program),
                        len(program.commands), is_resident)

    def measure_pass(self, gemms: Sequence[tuple[str, np.ndarray, np.ndarray]], mode: str = "auto",
                     repeats: int = 2) -> PassMeasured:
        """Names, activations and weights of several GEMMs in one queue, ``repeats`` times."""
        programs = [Program(self.p, x, w, mode=mode) for _, x, w in gemms]
        wants, names = [_product(x, w) for _, x, w in gemms], [name for name, _, _ in gemms]
        outcomes = self._run(alternate(programs * repeats), wants * repeats, names * repeats)
        n = len(programs)
        busy = sum(r.cycles for o in outcomes[:n] for r in o.responses)
        interval = int(outcomes[-1].answered[-1] - outcomes[-1 - n].answered[-1]) if repeats > 1 else 0
        return PassMeasured(busy, outcomes[n - 1].cycles, interval)

    def _array(self, program: Program) -> int:
        """Cycles that the array needs for a program that follows itself."""
        shapes = [(c.m, c.k, c.n, MODES[c.mode]) for c in program.commands]
        ends = [(m, mode) for m, _, _, mode in shapes]
        gaps = (gap(self.p, *pair) for pair in zip([ends[-1], *ends], ends, strict=False))
        return sum(steps(self.p, *shape) for shape in shapes) + sum(gaps)

    def _run(self, programs: Sequence[Program], wants: Sequence[np.ndarray],
             names: Sequence[str]) -> list[Outcome]:
        """Run programs in one queue and compare all that comes."""
        outcomes = self.host.run(programs)
        for program, outcome, want, name in zip(programs, outcomes, wants, names, strict=True):
            self.compared += compare(outcome.result, want, f"results of {name}")
            for index, (c, r) in enumerate(zip(program.commands, outcome.responses, strict=True)):
                expected = "ok", cycles(self.p, c.m, c.k, c.n, MODES[c.mode])
                if (r.status, r.cycles) != expected:
                    raise Mismatch(f"response {index} of {name}: got {r.status} after {r.cycles} cycles, want "
                                   f"{expected[0]} after {expected[1]}")
        return outcomes


def _product(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return x.astype(np.int64) @ w.astype(np.int64)
