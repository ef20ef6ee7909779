"""Cycles of programs on the Verilated stack; results, cycles and row hits compared with the models."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sim_models.golden.pim.stack.pim_stack import PimStack, Work
from sim_models.mapping.pim import Attention, Gemv, PimMappingError, in_a_row
from sim_models.params.pim.stack.pim_stack import PimStackParams
from sim_models.perf.pim_timing import Course, StackTiming, bank_cycles
from tb.common.native import NativeLibrary
from tb.common.scoreboard import Mismatch, compare
from tb.pim.stack.stack_host import StackHost
from tb.pim.stack.stack_sessions import Maker

__all__ = ["Measured", "StackMeter"]

#: products in a row: at least so many, and two refresh intervals
_AT_LEAST = 4
#: words of each bank that random shapes find filled
_FILLED = 256


@dataclasses.dataclass(frozen=True)
class Measured:
    """A program, measured.

    Members
    -------
    cycles: int
        Alone.
    interval: float
        Of one among many in a row; 0 where that was not measured.
    bank_cycles: int
        Least cycles that its words of a bank take.
    words: int
        Words of each bank that are read.
    hit_rate: float
        Share of them from rows that were used before.
    split: str
        How K is split, ``across`` pseudo-channels or not.
    """

    cycles: int
    interval: float
    bank_cycles: int
    words: int
    hit_rate: float
    split: str


class StackMeter:
    """A Verilated stack that checks every result and every cycle count against the models.

    Parameters
    ----------
    p:
        The stack.
    build_root:
        Folder of all builds.
    seed:
        Of operands and of uninitialised memory.
    library:
        A compiled stack to be used instead of building one.

    Notes
    -----
    A result, cycle count or row hit that differs raises :class:`tb.common.scoreboard.Mismatch`.
    """

    def __init__(self, p: PimStackParams, build_root: Path, *, seed: int = 1,
                 library: NativeLibrary | None = None) -> None:
        self.p, self.compared = p, 0
        self.host = StackHost(p, build_root, seed=seed, library=library)
        self.model = PimStack(p)
        self.gen = np.random.default_rng(seed)

    def _operands(self, kind: np.dtype, *shape: int) -> np.ndarray:
        if kind == np.int8:
            return self.gen.integers(-128, 128, shape, np.int8)
        return self.gen.standard_normal(shape).astype(np.float16)

    def write(self, work: Sequence[Work]) -> None:
        """Bring data into the banks."""
        self.model.run(work)
        self.host.run(work)

    def run(self, work: Sequence[Work], name: str) -> tuple[Course, list[np.ndarray]]:
        """A program right after a reset: its course, and the rows of its results."""
        want = self.model.run(work).results
        self.host.reset()
        done = self.host.run(work, results=sum(-(-len(row) // 4) for row in want))
        got = done.outcome.results
        for one, other in zip(got, want, strict=True):
            self.compared += compare(one, other, f"results of {name}")
        course = StackTiming(self.p).program(work)
        channels = self.p.pseudo_channels
        counts = (done.cycles, sum(r.hits for r in done.responses), sum(r.misses for r in done.responses))
        wanted = (course.cycles, course.hits * channels, course.misses * channels)
        if counts != wanted:
            raise Mismatch(f"{name}: {counts} cycles, row hits and misses in the RTL, {wanted} in the model")
        return course, got

    def gemv(self, w: np.ndarray) -> Measured:
        """w [K, N], float16 or int8, with an x that is drawn."""
        mapping = Gemv(self.p, w)
        name = f"{w.dtype} {w.shape[0]} x {w.shape[1]}"
        self.write(mapping.image())
        x = self._operands(w.dtype, len(w))
        alone = mapping.run(x)
        course, _ = self.run(alone, name)
        count = max(_AT_LEAST, -(-2 * self.p.refi // bank_cycles(self.p, alone)))
        row, _ = self.run(in_a_row([mapping.run(x, turn=at % 2) for at in range(count)]), f"{name} in a row")
        split = mapping.split + (", across" if mapping.across else "")
        return Measured(course.cycles, row.cycles / count, bank_cycles(self.p, alone), mapping.words, row.hit_rate,
                        split)

    def attention(self, size: int, length: int) -> Measured:
        """A head of ``size`` elements over ``length`` positions."""
        mapping = Attention(self.p, size, length)
        q, k, v = (self._operands(np.dtype(np.float16), *s) for s in ((size,), (length, size), (length, size)))
        self.write(mapping.write(k, v))
        work = mapping.run(q, length)
        course, _ = self.run(work, f"attention over {length}")
        return Measured(course.cycles, 0.0, bank_cycles(self.p, work), course.hits + course.misses, course.hit_rate,
                        "")

    def random(self, count: int) -> int:
        """GEMVs and attention of random sizes on banks that were filled before; returns how many."""
        p, gen = self.p, self.gen
        filled = min(_FILLED, p.words)
        maker, everybody = Maker(p, gen), (1 << p.pseudo_channels) - 1
        fill = maker.fill_all(filled)
        self.write(fill)
        done = 0
        while done < count:
            try:
                work, name = self._random(gen)
            except PimMappingError:             # too large for what is filled
                continue
            reach = max(one.command.address + one.command.count * one.command.outputs for one in work)
            if reach <= filled and all(one.command.mask in (0, everybody) for one in work):
                self.run(work, name)
                done += 1
        return done

    def _random(self, gen: np.random.Generator) -> tuple[list[Work], str]:
        p = self.p
        if p.fp16 and gen.integers(4) == 0:
            size, length = int(gen.integers(1, 100)), int(2 ** (8 * gen.random()))
            return Attention(p, size, length).run(self._operands(np.dtype(np.float16), size), length), (
                f"attention of {size} over {length}")
        k, n = (int(2 ** (9 * gen.random())) for _ in range(2))
        kinds = [np.dtype(kind) for kind, there in ((np.float16, p.fp16), (np.int8, p.int8)) if there]
        kind = kinds[gen.integers(len(kinds))]
        ways = [(None, None), ("none", False), ("bank", False), ("group", False), ("bank", True), ("group", True)]
        split, across = ways[gen.integers(len(ways))]
        mapping = Gemv(p, np.zeros((k, n), kind), split=split, across=across, address=int(gen.integers(40)))
        return mapping.run(self._operands(kind, k)), f"{kind} {k} x {n}, {mapping.split}, {mapping.across}"
