"""Random sessions with the compute engine: legal, with every kind of mistake a host can make, never for ever.

A session's beats can all be queued at once, at any pace: what comes back does not depend on time. So a command
releases no half that a later block may have entered by then, and one that keeps its results does so in a half
that the partial-sum stream leaves alone.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sim_models.golden.tile.engine.compute_engine import ComputeEngine, Response
from sim_models.mapping.gemm import MODES, Command, activation_block, psum_block, weight_block
from sim_models.params.tile.engine.compute_engine import DIM_WIDTH, ComputeEngineParams
from tb.common.scoreboard import compare
from tb.tile.engine.engine_host import EngineCodecs

__all__ = ["LARGEST", "STREAMS", "Session", "SessionMaker", "check_results"]

#: largest size that a command can name
LARGEST = (1 << DIM_WIDTH) - 1
#: fill streams by the memory that they fill
STREAMS = {"activation": "i_activation", "weight": "i_weight", "psum": "i_psum"}


@dataclasses.dataclass
class Session:
    """What goes in, and what must come out.

    Members
    -------
    beats: dict[str, list of uint8 (n, bytes)]
        Blocks for each fill stream, in order.
    commands: list of Command
    responses: list of Response
    outputs: list of int64 (M, N)
        Results that are not kept.
    """

    beats: dict[str, list[np.ndarray]] = dataclasses.field(
        default_factory=lambda: {stream: [] for stream in STREAMS.values()})
    commands: list[Command] = dataclasses.field(default_factory=list)
    responses: list[Response] = dataclasses.field(default_factory=list)
    outputs: list[np.ndarray] = dataclasses.field(default_factory=list)

    def result_beats(self, p: ComputeEngineParams) -> int:
        """Beats of all outputs."""
        return sum(len(out) * -(-out.shape[1] // p.cols) for out in self.outputs)


def check_results(codecs: EngineCodecs, payloads: np.ndarray, outputs: list[np.ndarray], name: str) -> None:
    """Compare result beats, uint8 (n, bytes), with outputs: values, lanes kept, and where blocks end.

    Raises
    ------
    Mismatch, AssertionError
        A beat differs.
    """
    p = codecs.p
    blocks = [psum_block(p, out) for out in outputs]
    lanes = [min(p.cols, out.shape[1] - at) for out in outputs for _ in range(len(out))
             for at in range(0, out.shape[1], p.cols)]
    compare(codecs.results(payloads, lanes), np.concatenate(blocks), f"{name}: results [beat, lane]")
    last = np.concatenate([np.arange(len(block)) == len(block) - 1 for block in blocks])
    compare(codecs.result.unpack(payloads)["last"], last, f"{name}: ends of blocks")


class SessionMaker:
    """Makes sessions for one engine, which starts empty and is left empty by each.

    Parameters
    ----------
    p:
        The engine.
    gen:
        Source of all chance.
    most_steps:
        Bound on the steps of a command, to keep simulations short.
    """

    def __init__(self, p: ComputeEngineParams, gen: np.random.Generator, most_steps: int = 400) -> None:
        self.p, self.gen, self.most_steps = p, gen, most_steps
        self.codecs = EngineCodecs(p)

    def make(self, commands: int) -> Session:
        """A session of so many random commands, and a few more that empty the engine."""
        gen = self.gen
        self._begin(faults=True)
        self._keepers = [bool(gen.integers(2)) for _ in range(2)]     # halves of partial sums that keep results
        self._often = {flag: gen.choice([0.2, 0.6, 0.9]) for flag in ("accumulate", "keep", "release")}
        while len(self._session.commands) < commands:
            kind = gen.random()
            if kind < 0.1:
                self._take_over()
            else:
                self._issue(self._wrong() if kind < 0.25 else self._right())
        return self._end()

    def script(self, commands: Sequence[Mapping[str, Any]]) -> Session:
        """A session of these commands, given by their fields, with good blocks."""
        self._begin(faults=False)
        for fields in commands:
            self._issue(self._command(**{"activation_half": 0, "weight_half": 0, "psum_half": 0, **fields}))
        return self._end()

    def _begin(self, *, faults: bool) -> None:
        self._session, self._model, self._faults = Session(), ComputeEngine(self.p), faults
        self._blocks: dict[tuple[str, int], tuple[int, int]] = {}     # sizes that a block was made for
        self._kept: set[int] = set()                                  # halves with results of a command

    def _end(self) -> Session:
        self._empty()
        self._session.outputs = self._model.outputs
        return self._session

    def _occupied(self, memory: str, half: int) -> bool:
        return (memory, half) in self._blocks

    def _issue(self, c: Command) -> None:
        response = self._model.command(c)
        self._session.commands.append(c)
        self._session.responses.append(response)
        released = []
        if c.release_activation:
            released.append(("activation", c.activation_half))
        if c.release_weight:
            released.append(("weight", c.weight_half))
        if c.accumulate and not (c.keep and response.status == "ok"):
            released.append(("psum", c.psum_half))
        for key in released:
            self._blocks.pop(key, None)
        if c.keep and response.status == "ok":
            self._blocks["psum", c.psum_half] = c.m, c.n
            self._kept.add(c.psum_half)

    def _sizes(self) -> tuple[int, int, int]:
        """Sizes that the memories hold; small ones and whole words are frequent."""
        p, gen = self.p, self.gen
        while True:
            m = self._size(min(p.activation_depth, p.psum_depth), p.rows)
            k = self._size(p.k_max, p.rows)
            n = self._size(min(min(p.weight_depth, p.psum_depth) * p.cols, LARGEST), p.cols)
            words, tiles = -(-k // p.rows), -(-n // p.cols)
            if (self._holds(m, k, n)
                    and (m + p.rows) * words * tiles <= self.most_steps * (1 + 3 * (gen.random() < 0.05))):
                return m, k, n

    def _holds(self, m: int, k: int, n: int) -> bool:
        """Whether the memories hold a GEMM of these sizes."""
        p = self.p
        words, tiles = -(-k // p.rows), -(-n // p.cols)
        return (k <= p.k_max and m * words <= p.activation_depth and words * tiles <= p.weight_depth
                and m * tiles <= p.psum_depth)

    def _size(self, limit: int, unit: int) -> int:
        gen = self.gen
        value = int(np.exp(gen.uniform(0, np.log(limit + 1))))
        if gen.random() < 0.4:
            value = -(-value // unit) * unit
        return max(1, min(limit, value))

    def _right(self) -> Command:
        """A command whose shape and mode are good; its blocks need not be."""
        gen = self.gen
        a, w, s = (int(h) for h in gen.integers(0, 2, 3))
        m, k, n = self._sizes()
        if self._occupied("activation", a) and gen.random() < 0.8:
            m, k, n = self._fit(*self._blocks["activation", a], n)
        elif self._occupied("weight", w) and gen.random() < 0.8:
            n, k, m = self._fit(self._blocks["weight", w][1], self._blocks["weight", w][0], m, transposed=True)
        elif self._occupied("psum", s) and gen.random() < 0.8:
            m, k, n = self._with_psum(*self._blocks["psum", s], k)
        accumulate = bool(self._may_accumulate(s, m, n) and gen.random() < self._often["accumulate"])
        keep = bool((accumulate or self._keepers[s]) and gen.random() < self._often["keep"])
        release = gen.random(2) < self._often["release"]
        return self._command(m=m, k=k, n=n, accumulate=accumulate, keep=keep, activation_half=a, weight_half=w,
                             psum_half=s, release_activation=bool(release[0]), release_weight=bool(release[1]))

    def _command(self, **fields: Any) -> Command:
        """A command in a mode that is built, and the blocks that it lacks."""
        p = self.p
        c = Command(**{"mode": int(self.gen.choice([0] + [1] * p.systolic + [2] * p.vector)), **fields})
        self._provide("activation", c.activation_half, (c.m, c.k))
        self._provide("weight", c.weight_half, (c.k, c.n))
        if c.accumulate:
            self._provide("psum", c.psum_half, (c.m, c.n))
        return c

    def _take_over(self) -> None:
        """Results are kept in one half again and again, each time while the command before still uses it."""
        gen, s = self.gen, int(self.gen.integers(2))
        if not self._keepers[s]:
            return
        for turn in range(int(gen.integers(2, 5))):
            free = [[half for half in range(2) if not self._occupied(memory, half)] for memory in STREAMS]
            if not free[0] or not free[1]:
                return
            m, k, n = self._sizes()
            accumulate = turn > 0 and self._occupied("psum", s) and gen.random() < 0.5
            if accumulate:
                m, k, n = self._with_psum(*self._blocks["psum", s], k)
            keep = not accumulate or bool(gen.integers(2))
            self._issue(self._command(m=m, k=k, n=n, accumulate=accumulate, keep=keep, psum_half=s,
                                      activation_half=int(gen.choice(free[0])), weight_half=int(gen.choice(free[1]))))

    def _may_accumulate(self, half: int, m: int, n: int) -> bool:
        """Whether there are, or can be, partial sums; lanes beyond N of results that were kept are undefined."""
        if not self._occupied("psum", half):
            return not self._keepers[half]
        rows, lanes = self._blocks["psum", half]
        tiles = -(-n // self.p.cols)
        same = m * tiles == rows * -(-lanes // self.p.cols)
        return half not in self._kept or not same or (m == rows and n <= lanes)

    def _fit(self, outer: int, k: int, other: int, *, transposed: bool = False) -> tuple[int, int, int]:
        """``other`` made small enough to go with a block that is there."""
        p = self.p
        words = -(-k // p.rows)
        if transposed:
            tiles = -(-outer // p.cols)
            limit = min(p.activation_depth // words, p.psum_depth // tiles)
            return outer, k, max(1, min(other, limit))
        limit = min(p.weight_depth // words, p.psum_depth // outer) * p.cols
        return outer, k, max(1, min(other, limit))

    def _with_psum(self, m: int, n: int, k: int) -> tuple[int, int, int]:
        p = self.p
        limit = min(p.activation_depth // m, p.weight_depth // -(-n // p.cols)) * p.rows
        return m, max(1, min(k, limit, p.k_max)), n

    def _provide(self, memory: str, half: int, shape: tuple[int, int]) -> None:
        """Queue a block for a half that is empty: mostly the one that is wanted."""
        if self._occupied(memory, half):
            return
        p, gen = self.p, self.gen
        make, bits, depth = {
            "activation": (activation_block, p.operand_width, p.activation_depth),
            "weight": (weight_block, p.operand_width, p.weight_depth),
            "psum": (psum_block, p.psum_width, p.psum_depth)}[memory]
        low = -(1 << (bits - 1))
        values = np.full(shape, low, np.int64) if gen.random() < 0.1 else gen.integers(low, -low, shape)
        words = make(p, values, low)                    # poison in the padding
        halves: int | np.ndarray = half
        model = words
        fault = gen.choice(["none", "size", "long", "halves"], p=[0.88, 0.06, 0.03, 0.03]) if self._faults else ""
        if fault == "size":
            words = model = np.resize(words, (int(gen.integers(1, min(depth, 1024) + 1)), words.shape[1]))
        elif fault == "long" and depth <= 1024:             # deeper ones would fill the whole session
            words = np.resize(words, (depth + int(gen.integers(1, 4)), words.shape[1]))
            model = words[:0]
        elif fault == "halves" and len(words) > 1:
            halves = np.full(len(words), half)
            halves[gen.integers(1, len(words), gen.integers(1, 3))] ^= 1
            model = words[:0] if (halves != half).any() else words
        self._session.beats[STREAMS[memory]].append(self.codecs.block(STREAMS[memory], halves, words))
        self._model.fill(memory, half, model)
        self._blocks[memory, half] = shape
        if memory == "psum":
            self._kept.discard(half)

    def _wrong(self) -> Command:
        """A command that is refused for its shape or mode alone, without waiting for any block."""
        p, gen = self.p, self.gen
        m, k, n = self._sizes()
        mode, kind = int(gen.integers(3)), int(gen.integers(7))
        if kind == 0:
            mode = 3
        elif kind == 1 and not (p.systolic and p.vector):
            mode = MODES.index("vector" if p.systolic else "systolic")
        elif kind <= 3:
            sizes = [m, k, n]
            sizes[int(gen.integers(3))] = 0
            m, k, n = sizes
        elif kind == 4:
            k = int(gen.choice([min(p.k_max + 1, LARGEST), LARGEST]))
        elif kind == 5:
            m = int(gen.choice([min(p.activation_depth, p.psum_depth) + 1, LARGEST]))
        else:
            most = min(p.weight_depth, p.psum_depth) * p.cols
            n = int(gen.choice([min(most + 1, LARGEST), LARGEST]))
        if mode != 3 and kind > 3 and self._holds(m, k, n):       # memories deeper than a command can ask for
            m = 0
        a, w, s = (int(h) for h in gen.integers(0, 2, 3))
        return Command(m=m, k=k, n=n, mode=mode, activation_half=a, weight_half=w, psum_half=s,
                       accumulate=self._occupied("psum", s) and gen.random() < 0.5, keep=bool(gen.integers(2)),
                       release_activation=self._occupied("activation", a) and gen.random() < 0.5,
                       release_weight=self._occupied("weight", w) and gen.random() < 0.5)

    def _empty(self) -> None:
        """Release what is left, by commands that are refused."""
        for half in range(2):
            a, w, s = (self._occupied(memory, half) for memory in STREAMS)
            if a or w or s:
                self._issue(Command(m=0, k=1, n=1, accumulate=s, activation_half=half, weight_half=half,
                                    psum_half=half, release_activation=a, release_weight=w))
