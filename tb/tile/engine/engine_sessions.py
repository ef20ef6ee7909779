"""Random sessions with the compute engine: legal, with every kind of mistake a host can make, never for ever.

A session's beats can come at any time and at any pace: what comes back does not depend on it.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sim_models.golden.tile.engine.compute_engine import ComputeEngine, Response
from sim_models.mapping.gemm import (
    KEPT,
    MODES,
    NONE,
    SOURCES,
    STREAMED,
    Command,
    activation_block,
    psum_block,
    weight_block,
)
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

    def queues(self, codecs: EngineCodecs) -> dict[str, np.ndarray]:
        """Beats for every input stream that has any."""
        queues = {stream: np.concatenate(blocks) for stream, blocks in self.beats.items() if blocks}
        return {**queues, "i_command": codecs.commands(self.commands)}

    def counts(self, p: ComputeEngineParams) -> dict[str, int]:
        """Beats of every output stream."""
        return {"o_response": len(self.responses),
                "o_result": sum(len(out) * -(-out.shape[1] // p.cols) for out in self.outputs)}

    def check(self, codecs: EngineCodecs, payloads: Mapping[str, np.ndarray]) -> None:
        """Compare what came from every output stream, uint8 (n, bytes).

        Raises
        ------
        Mismatch, AssertionError
            An answer or a result differs.
        """
        answers = codecs.responses(payloads["o_response"])
        for i, (got, want) in enumerate(zip(answers, self.responses, strict=True)):
            assert got == want, f"command {i}: got {got}, want {want}, {self.commands[i]}"
        assert len(payloads["o_result"]) == self.counts(codecs.p)["o_result"]
        if self.outputs:
            check_results(codecs, payloads["o_result"], self.outputs, "results")


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
        self._often = {flag: gen.choice([0.2, 0.6, 0.9]) for flag in ("accumulate", "streamed", "keep", "release")}
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
        self._kept: dict[int, tuple[int, int]] = {}                   # halves with results of a command, their sizes

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
        for memory in self._released(c):
            del self._blocks[memory, _half(c, memory)]
        if c.accumulate != NONE or c.keep:
            self._kept.pop(c.psum_half, None)
        if c.keep and response.status == "ok":
            self._kept[c.psum_half] = c.m, c.n

    def _released(self, c: Command) -> list[str]:
        """Memories of which the command takes a block for good."""
        return [memory for memory, flag, size in (("activation", c.release_activation, c.m * c.k),
                                                  ("weight", c.release_weight, c.k * c.n)) if flag and size]

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
        elif s in self._kept and gen.random() < 0.8:
            m, k, n = self._with_psum(*self._kept[s], k)
        accumulate = NONE
        if gen.random() < self._often["accumulate"]:
            # an empty half has nothing to add, which is a mistake
            kept = self._known(s, m, n) and (s in self._kept or gen.random() < 0.2)
            accumulate = KEPT if kept and gen.random() > self._often["streamed"] else STREAMED
        release = gen.random(2) < self._often["release"]
        return self._command(m=m, k=k, n=n, accumulate=accumulate, keep=bool(gen.random() < self._often["keep"]),
                             activation_half=a, weight_half=w, psum_half=s, release_activation=bool(release[0]),
                             release_weight=bool(release[1]))

    def _command(self, **fields: Any) -> Command:
        """A command in a mode that is built, and the blocks that it lacks."""
        p = self.p
        c = Command(**{"mode": int(self.gen.choice([0] + [1] * p.systolic + [2] * p.vector)), **fields})
        self._provide("activation", c.activation_half, (c.m, c.k))
        self._provide("weight", c.weight_half, (c.k, c.n))
        if c.accumulate == STREAMED:
            self._stream("psum", (c.m, c.n))
        return c

    def _take_over(self) -> None:
        """Results are kept in one half again and again, each time while the command before still uses it."""
        gen, s = self.gen, int(self.gen.integers(2))
        for turn in range(int(gen.integers(2, 5))):
            free = [[half for half in range(2) if not self._occupied(memory, half)]
                    for memory in ("activation", "weight")]
            if not free[0] or not free[1]:
                return
            m, k, n = self._sizes()
            accumulate = int(gen.choice([NONE, STREAMED, KEPT])) if turn and s in self._kept else NONE
            if accumulate == KEPT:
                m, k, n = self._with_psum(*self._kept[s], k)
            keep = accumulate == NONE or bool(gen.integers(2))
            self._issue(self._command(m=m, k=k, n=n, accumulate=accumulate, keep=keep, psum_half=s,
                                      activation_half=int(gen.choice(free[0])), weight_half=int(gen.choice(free[1]))))

    def _known(self, half: int, m: int, n: int) -> bool:
        """Whether all that a command would add of what is kept is defined: lanes beyond N are not."""
        if half not in self._kept:
            return True
        rows, lanes = self._kept[half]
        same = m * -(-n // self.p.cols) == rows * -(-lanes // self.p.cols)
        return not same or (m == rows and n <= lanes)

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
        """Queue a block for a half that is empty."""
        if not self._occupied(memory, half):
            self._stream(memory, shape, half)
            self._blocks[memory, half] = shape

    def _stream(self, memory: str, shape: tuple[int, int], half: int | None = None) -> None:
        """Queue a block: mostly the one that is wanted."""
        p, gen = self.p, self.gen
        make, bits, depth = {
            "activation": (activation_block, p.operand_width, p.activation_depth),
            "weight": (weight_block, p.operand_width, p.weight_depth),
            "psum": (psum_block, p.psum_width, p.psum_depth)}[memory]
        low = -(1 << (bits - 1))
        values = np.full(shape, low, np.int64) if gen.random() < 0.1 else gen.integers(low, -low, shape)
        words = make(p, values, low)                    # poison in the padding
        halves: int | np.ndarray | None = half
        model = words
        fault = gen.choice(["none", "size", "long", "halves"], p=[0.88, 0.06, 0.03, 0.03]) if self._faults else ""
        if fault == "size":
            words = model = np.resize(words, (int(gen.integers(1, min(depth, 1024) + 1)), words.shape[1]))
        elif fault == "long" and depth <= 1024:             # deeper ones would fill the whole session
            words = np.resize(words, (depth + int(gen.integers(1, 4)), words.shape[1]))
            model = words[:0]
        elif fault == "halves" and half is not None and len(words) > 1:
            halves = np.full(len(words), half)
            halves[gen.integers(1, len(words), gen.integers(1, 3))] ^= 1
            model = words[:0] if (halves != half).any() else words
        self._session.beats[STREAMS[memory]].append(self.codecs.block(STREAMS[memory], words, halves))
        if half is None:
            self._model.fill_psum(model)
        else:
            self._model.fill(memory, half, model)

    def _wrong(self) -> Command:
        """A command that is refused for its shape or mode alone; the blocks that it takes are good ones or not."""
        p, gen = self.p, self.gen
        m, k, n = self._sizes()
        mode, kind, accumulate = int(gen.integers(3)), int(gen.integers(8)), int(gen.choice([NONE, STREAMED, KEPT]))
        if kind == 0:
            mode = 3
        elif kind == 7:
            accumulate = len(SOURCES)
        elif kind == 1 and not (p.systolic and p.vector):
            mode = MODES.index("vector" if p.systolic else "systolic")
        elif kind <= 3:
            sizes = [m, k, n]
            sizes[int(gen.integers(3))] = 0
            m, k, n = sizes
        elif kind == 4:
            k = self._beyond(p.k_max)
        elif kind == 5:
            m = self._beyond(min(p.activation_depth, p.psum_depth))
        elif kind == 6:
            n = self._beyond(min(p.weight_depth, p.psum_depth) * p.cols)
        if mode != 3 and 3 < kind < 7 and self._holds(m, k, n):   # memories deeper than a command can ask for
            m = 0
        a, w, s = (int(h) for h in gen.integers(0, 2, 3))
        c = Command(m=m, k=k, n=n, mode=mode, activation_half=a, weight_half=w, psum_half=s, accumulate=accumulate,
                    keep=bool(gen.integers(2)), release_activation=gen.random() < 0.5,
                    release_weight=gen.random() < 0.5)
        other = self._sizes()
        shapes = {"activation": other[:2], "weight": other[1:]}
        for memory in self._released(c):
            self._provide(memory, _half(c, memory), shapes[memory])
        if accumulate == STREAMED and m and n:
            self._stream("psum", (other[0], other[2]))
        return c

    def _beyond(self, most: int) -> int:
        """A size above this one that a command can name: the next, the largest, or one with a single bit set."""
        above = [1 << bit for bit in range(DIM_WIDTH) if 1 << bit > most] or [LARGEST]
        return int(self.gen.choice([min(most + 1, LARGEST), LARGEST, self.gen.choice(above)]))

    def _empty(self) -> None:
        """Release what is left, by commands that are refused."""
        for half in range(2):
            a, w = (self._occupied(memory, half) for memory in ("activation", "weight"))
            if a or w or half in self._kept:
                self._issue(Command(m=1, k=1, n=1, mode=3, accumulate=KEPT, activation_half=half, weight_half=half,
                                    psum_half=half, release_activation=a, release_weight=w))


def _half(c: Command, memory: str) -> int:
    return c.activation_half if memory == "activation" else c.weight_half
