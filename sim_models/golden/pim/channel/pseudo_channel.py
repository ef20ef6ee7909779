"""Golden model of the pseudo-channel: what its commands do, and in which cycle.

Commands are carried out one after the other on arrays; :mod:`sim_models.golden.pim.channel.channel_timeline` says
when.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from sim_models.golden.pim.bank.bank_pe import ExactSum, word_sums
from sim_models.golden.pim.channel.channel_commands import BANKS, GROUPS, Command, status, words
from sim_models.golden.pim.channel.channel_timeline import Timeline
from sim_models.params.pim.channel.pseudo_channel import PseudoChannelParams

__all__ = ["Outcome", "PseudoChannel", "Response"]

#: a word that nobody wrote: NaN in FP16, and no small number in int8
POISON = 0x7E80


@dataclasses.dataclass(frozen=True)
class Response:
    """A response, field by field as in ``rtl.pim.channel.layouts.pim_response``."""

    status: str
    cycles: int
    hits: int
    misses: int


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a stream of commands leads to.

    Attributes
    ----------
    responses: list[Response]
        Cycles, hits and misses are those of streams that never wait at the outside.
    response_times: list[int]
        Cycle in which each is transferred, if that is when it is offered; cycle 0 is the first after reset.
    beats: list of four ExactSum
        What READs deliver, lane by lane; None for a sum that has no value.
    beat_times: list[int]
    last, int8: list[bool]
        The beats' other members.
    """

    responses: list[Response]
    response_times: list[int]
    beats: list[list[ExactSum | None]]
    beat_times: list[int]
    last: list[bool]
    int8: list[bool]


class PseudoChannel:
    """State of a pseudo-channel.

    Parameters
    ----------
    p:
        Its parameters.

    Attributes
    ----------
    banks: uint16 (groups, banks, words, lanes)
    buffer: uint16 (words, lanes)
    sums: list by group, bank and accumulator of ExactSum, or None while it has no value
    """

    def __init__(self, p: PseudoChannelParams) -> None:
        self.p = p
        self.banks = np.full((GROUPS, BANKS, p.words, p.lanes), POISON, np.uint16)
        self.buffer = np.full((p.buffer_words, p.lanes), POISON, np.uint16)
        self.sums: list[list[list[ExactSum | None]]] = [
            [[None] * p.accumulators for _ in range(BANKS)] for _ in range(GROUPS)]
        self._timeline = Timeline(p)

    def reset(self) -> None:
        """What a reset does: sums have no value any more, and time begins again; memories stay as they are."""
        self.sums = [[[None] * self.p.accumulators for _ in range(BANKS)] for _ in range(GROUPS)]
        self._timeline = Timeline(self.p)

    def run(self, commands: Sequence[Command], data: Any = (), *, offered: Sequence[int] | None = None,
            data_offered: Sequence[int] | None = None) -> Outcome:
        """Carry out commands.

        Parameters
        ----------
        commands:
            In order.
        data: uint16 (n, lanes)
            The words that they take.
        offered, data_offered:
            Earliest cycle in which each command, and each word, stands at the port; at once if not given.

        Raises
        ------
        ValueError
            More or fewer words came than the commands take.
        """
        given = np.asarray(data, np.uint16).reshape(-1, self.p.lanes)
        wanted = sum(words(c) for c in commands)
        if len(given) != wanted:
            raise ValueError(f"{wanted} words of data were wanted, {len(given)} came")
        times = self._timeline.run(commands, offered, data_offered)
        outcome = Outcome([], [], [], [], [], [])
        at = 0
        for c, time in zip(commands, times, strict=True):
            beats = self._command(c, given[at:at + words(c)])
            at += words(c)
            outcome.responses.append(Response(status(self.p, c), time.cycles, time.hits, time.misses))
            outcome.response_times.append(time.response)
            outcome.beats.extend(beats)
            outcome.beat_times.extend(time.beats)
            outcome.last.extend(k == len(beats) - 1 for k in range(len(beats)))
            outcome.int8.extend([c.int8] * len(beats))
        return outcome

    def _command(self, c: Command, data: np.ndarray) -> list[list[ExactSum | None]]:
        if status(self.p, c) != "ok":
            return []
        if c.op == "load":
            self.buffer[c.base:c.base + c.count] = data
        elif c.op == "write":
            self.banks[c.group, c.bank, c.address:c.address + c.count] = data
        elif c.op == "mac":
            self._mac(c)
        else:
            return [beat for k in range(c.first, c.first + c.outputs) for beat in self._read(c, k)]
        return []

    def _mac(self, c: Command) -> None:
        """Every bank multiplies its rows by its words of the buffer."""
        stop = c.base + c.count * (1 if c.spread == "all" else 4)
        for g in range(GROUPS):
            for b in range(BANKS):
                start, step = {"all": (0, 1), "bank": (b, 4), "group": (g, 4)}[c.spread]
                others = self.buffer[c.base + start:stop:step]
                rows = self.banks[g, b, c.address:c.address + c.outputs * c.count]
                terms = word_sums(self.p, rows, np.tile(others, (c.outputs, 1)), c.int8)
                for r in range(c.outputs):
                    total = sum(terms[r * c.count:(r + 1) * c.count], ExactSum())
                    before = ExactSum() if c.clear else self.sums[g][b][c.first + r]
                    self.sums[g][b][c.first + r] = None if before is None else before + total

    def _read(self, c: Command, k: int) -> list[list[ExactSum | None]]:
        """The beats of accumulator ``k``."""
        table = [[self.sums[g][b][k] for b in range(BANKS)] for g in range(GROUPS)]
        by_bank = [[table[g][b] for g in range(GROUPS)] for b in range(BANKS)]
        if c.reduce == "none":
            return by_bank
        if c.reduce == "bank":
            return [[_total(own) for own in table]]
        if c.reduce == "group":
            return [[_total(own) for own in by_bank]]
        return [[_total([s for own in table for s in own]), *[ExactSum()] * 3]]


def _total(sums: Sequence[ExactSum | None]) -> ExactSum | None:
    total = ExactSum()
    for s in sums:
        if s is None:
            return None
        total = total + s
    return total
