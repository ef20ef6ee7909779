"""Random sessions of a pseudo-channel: right and wrong commands, their words, and when they come."""

import dataclasses

import numpy as np

from sim_models.golden.pim.channel.channel_commands import (
    BANKS,
    GROUPS,
    OPS,
    REDUCES,
    SPREADS,
    Command,
    status,
    words,
)
from sim_models.params.pim.channel.pseudo_channel import PseudoChannelParams

__all__ = ["Part", "Session", "SessionMaker", "fill"]

#: of infinities and NaNs, a word in so many has one
_RARE = 200


@dataclasses.dataclass(frozen=True)
class Part:
    """So many commands and words are queued, then a pause of so many cycles."""

    commands: int
    data: int
    pause: int = 0


@dataclasses.dataclass
class Session:
    """Commands, the words that they take, uint16 (n, lanes), and how both are queued."""

    commands: list[Command]
    data: np.ndarray
    parts: list[Part]

    @classmethod
    def at_once(cls, commands: list[Command], data: np.ndarray) -> "Session":
        """Everything is there from the start."""
        return cls(commands, data, [Part(len(commands), len(data))])


def numbers(p: PseudoChannelParams, gen: np.random.Generator, count: int) -> np.ndarray:
    """Words: FP16 of all sizes and few specials, uint16 (count, lanes); as int8 they are any numbers."""
    codes = gen.integers(0, 1 << 16, (count, p.lanes)).astype(np.uint16)
    if p.format == "int8":
        return codes
    codes = np.where(codes >> 10 & 31 == 31, codes & 0xBFFF, codes)
    special = gen.random((count, p.lanes)) < 1 / (_RARE * p.lanes)
    return np.where(special, gen.choice(np.array([0x7C00, 0xFC00, 0x7E01, 0xFFFF], np.uint16), codes.shape), codes)


def fill(p: PseudoChannelParams, gen: np.random.Generator, used: int | None = None) -> Session:
    """Give every word of the global buffer and of all banks a value, or the first ``used`` ones of each."""
    size = min(used or p.words, p.words)
    commands = [Command(op="load", count=min(used or p.buffer_words, p.buffer_words))]
    commands += [Command(op="write", group=g, bank=b, count=size) for g in range(GROUPS) for b in range(BANKS)]
    return Session.at_once(commands, numbers(p, gen, sum(words(c) for c in commands)))


class SessionMaker:
    """Makes sessions that follow one another on one device whose memories are filled.

    Parameters
    ----------
    p:
        The pseudo-channel.
    gen:
        The test's generator.
    wrong:
        Share of commands that are made wrong.
    longest:
        Words of the longest MAC, or thereabouts.
    used:
        Words of the banks, and of the buffer, that commands which are right keep to.
    """

    def __init__(self, p: PseudoChannelParams, gen: np.random.Generator, *, wrong: float = 0.1,
                 longest: int = 60, used: int | None = None) -> None:
        self.p, self._gen, self._wrong, self._longest = p, gen, wrong, longest
        self._words, self._buffer = (min(used or size, size) for size in (p.words, p.buffer_words))
        self.restart()

    def restart(self) -> None:
        """Accumulators have no value any more."""
        #: by accumulator that has a value: format, and words of each bank that went into it
        self._sums: dict[int, tuple[bool, int]] = {}

    def make(self, count: int, pauses: float = 0.0) -> Session:
        """A session of so many commands; after each of them a pause comes with probability ``pauses``."""
        gen, commands = self._gen, []
        mix = gen.dirichlet([0.5, 0.5, 1.5, 1.0])
        for _ in range(count):
            c = self._right(str(gen.choice(OPS, p=mix)))
            if gen.random() < self._wrong:
                c = self._spoil(c)
            if status(self.p, c) == "ok" and not self._note(c):
                c = dataclasses.replace(c, clear=True) if c.op == "mac" else Command(op="load", count=1)
                if not self._note(c):
                    c = Command(op="load", count=1)
            commands.append(c)
        session = Session.at_once(commands, numbers(self.p, gen, sum(words(c) for c in commands)))
        if pauses:
            session.parts = self._parts(commands, pauses)
        return session

    def _right(self, op: str) -> Command:
        """A command that is right, or so it seems."""
        p, gen = self.p, self._gen
        if op == "load":
            base = int(gen.integers(self._buffer))
            return Command(op=op, base=base, count=min(int(gen.integers(1, 20)), self._buffer - base))
        address = int(gen.integers(self._words))
        if op == "write":
            return Command(op=op, address=address, count=min(int(gen.integers(1, 20)), self._words - address),
                           group=int(gen.integers(GROUPS)), bank=int(gen.integers(BANKS)))
        place = int(gen.integers(p.half))
        first, outputs = place + p.half * int(gen.integers(2)), int(gen.integers(1, p.half - place + 1))
        if op == "read":
            return Command(op=op, first=first, outputs=outputs, reduce=str(gen.choice(REDUCES)),
                           int8=not p.fp16 or (p.int8 and bool(gen.integers(2))))
        spread = str(gen.choice(SPREADS[:3]))
        stride = 1 if spread == "all" else 4
        base = int(gen.integers(self._buffer // stride)) * stride
        longest = max(1, int(gen.integers(1, self._longest + 1)) // outputs)
        count = max(1, min(longest, (self._buffer - base) // stride, self._words // outputs))
        return Command(op=op, address=min(address, self._words - count * outputs), count=count, base=base,
                       first=first, outputs=outputs, spread=spread, clear=bool(gen.integers(2)),
                       int8=not p.fp16 or (p.int8 and bool(gen.integers(2))))

    def _spoil(self, c: Command) -> Command:
        """The command with one member at or beyond an edge; it may still be right."""
        p, gen = self.p, self._gen
        name = str(gen.choice(["address", "count", "base", "first", "outputs", "spread", "int8"]))
        edge = {"address": [p.words - 1, p.words - c.count, p.words - c.count + 1, p.words, (1 << 24) - 1],
                "count": [0, 0, p.buffer_words + 1, p.words, 300],
                "base": [p.buffer_words - 1, p.buffer_words, 2, 65535],
                "first": [p.half - 1, p.accumulators - 1, p.accumulators, 255],
                "outputs": [0, p.half, p.half + 1, 255], "spread": ["invalid"], "int8": [not c.int8]}[name]
        value = edge[int(gen.integers(len(edge)))]
        return dataclasses.replace(c, **{name: max(value, 0) if isinstance(value, int) else value})

    def _note(self, c: Command) -> bool:
        """Keep account of the accumulators; false if the command would use something that has no value."""
        used = range(c.first, c.first + c.outputs)
        if c.op == "read":
            return all(k in self._sums for k in used)
        if c.op != "mac":
            return True
        most = ((1 << self.p.terms_width) - 1) // (GROUPS * BANKS)
        end = c.base + c.count * (1 if c.spread == "all" else 4)
        if c.count > most or c.address + c.count * c.outputs > self._words or end > self._buffer:
            return False
        for k in used:
            int8, so_far = self._sums.get(k, (c.int8, most))
            if not c.clear and (int8 != c.int8 or so_far + c.count > most):
                return False
        for k in used:
            self._sums[k] = c.int8, c.count + (0 if c.clear else self._sums[k][1])
        return True

    def _parts(self, commands: list[Command], pauses: float) -> list[Part]:
        """Commands before or behind their words, with pauses in between."""
        gen, parts = self._gen, []
        for c in commands:
            there = int(gen.integers(words(c) + 1))
            pause = [int(gen.integers(1, 60)) if gen.random() < pauses else 0 for _ in range(3)]
            parts += [Part(0, there, pause[0]), Part(1, 0, pause[1]), Part(0, words(c) - there, pause[2])]
        return parts
