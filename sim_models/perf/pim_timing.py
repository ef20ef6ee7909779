"""Cycles of programs on a PIM stack, equal to those of the RTL, without stepping through them.

All pseudo-channels take part in every command and stay in step, so one of them is followed: by the recurrences of
:mod:`sim_models.golden.pim.channel.channel_timeline`, which take a row of a bank at a time (n words need (n - 1) ccd
+ 1 cycles). What lies around it is in closed form. With P pseudo-channels, a command given in cycle a, its transfer
to the pseudo-channels D = a + 3, and R = 4 registers of a rounder::

    LOAD    its first turn of words is offered in cycle D + 3, or D + 2 + P where words are dealt out; then one turn
            every 1 or P cycles
    READ    beats are taken every P cycles, the first in D + 2 at the earliest, and P + 2 cycles after the last one of
            the READ before; the value of pseudo-channel i leaves i + 2 + R cycles after its beat was taken, the sum
            over all P + 1 + R cycles; 16 beats may wait
    SFU     takes its command in cycle D + 1; a row whose last beat comes in cycle t leaves as if it had come without
            a pause

Nothing else is at work, and results are always taken.
"""

import dataclasses
from collections import deque
from collections.abc import Sequence

from sim_models.golden.pim.channel.channel_commands import Command as ChannelCommand
from sim_models.golden.pim.channel.channel_timeline import ADD, DECODE, Timeline, Times
from sim_models.golden.pim.stack.pim_stack import Command, Work
from sim_models.golden.sfu.buffer_die_sfu import sfu_cycles
from sim_models.params.pim.stack.pim_stack import PimStackParams
from sim_models.spec.sfu import SfuOp

__all__ = ["Course", "StackTiming", "bank_cycles"]

#: cycles from a command to its transfer, from there to when a job is at work, and beats that a pseudo-channel holds
_CHECK, _BEGIN, _ROOM = 3, 2, 16


@dataclasses.dataclass(frozen=True)
class Course:
    """What a program takes.

    Members
    -------
    end: int
        Cycle of the last result, counted from that of the first command.
    hits, misses: int
        Words of each bank that MACs read, from rows that were used before, and others.
    """

    end: int
    hits: int
    misses: int

    @property
    def cycles(self) -> int:
        """From the first command to the last result, both included."""
        return self.end + 1

    @property
    def hit_rate(self) -> float:
        """Share of the words that came from a row that was used before."""
        return self.hits / (self.hits + self.misses)


def bank_cycles(p: PimStackParams, work: Sequence[Work]) -> int:
    """Least cycles of a program: its words of each bank, one every ``ccd``; rows, refreshes and all else are free."""
    return p.ccd * sum(c.count * c.outputs for c in (one.command for one in work) if c.op == "mac")


class StackTiming(Timeline):
    """The course of a stack from a reset on.

    Parameters
    ----------
    p:
        The stack.
    """

    def __init__(self, p: PimStackParams) -> None:
        super().__init__(p)
        self.stack = p
        #: commands whose response was not taken, in order: those of pseudo-channels with their times
        self._order: deque[tuple[int, Times | None]] = deque()
        self._answerer = 0
        #: READs that are on their way, by their times; beats taken so far, and when the next one may be
        self._reads: list[tuple[Times, Command, int]] = []
        self._taken: list[int] = []
        self._collector = 0
        #: the last word that was put into a register of the dealer
        self._filled = -1
        self._functions: deque[tuple[Command, int]] = deque()
        #: beats of the row that goes to the SFU, numbers in it, and the cycle of the last one
        self._row = self._row_end = 0
        self._results: deque[list[int]] = deque()
        self._end = -1

    def program(self, work: Sequence[Work]) -> Course:
        """Follow a program that begins in the first cycle after reset.

        Raises
        ------
        ValueError
            A WRITE, or a command that not all pseudo-channels take part in.
        """
        everybody = (1 << self.stack.pseudo_channels) - 1
        done: list[Times] = []
        for given, one in enumerate(work):
            c = one.command
            if c.op == "write" or (c.op != "sfu" and c.mask != everybody):
                raise ValueError(f"a LOAD, MAC or READ of all pseudo-channels was wanted, {c.op} of {c.mask:#b} came")
            transfer = given + _CHECK
            if c.op == "sfu":
                self._functions.append((c, transfer + 1))
                self._order.append((transfer, None))
                continue
            inner = ChannelCommand(**{f.name: getattr(c, f.name) for f in dataclasses.fields(ChannelCommand)})
            self._accepted = max(self._accepted + 1, transfer)
            self._advance(max(self._accepted + DECODE, self._dispatched + 1), [])
            while not self._may_dispatch(inner):
                self._advance(self._change(inner), [])
            self._dispatched = self._now
            while c.op == "load" and c.from_sfu and not self._results:      # nothing else is dispatched meanwhile
                self._advance(self._now + 1, [])
            times = self._dispatch(inner, self._words(c, transfer) if c.op == "load" else [], 0)
            self._order.append((transfer, times))
            if c.op == "read":
                self._reads.append((times, c, transfer))
            done.append(times)
        while self._work or self._reading:
            self._advance(self._now + 1, [])
        return Course(self._end, sum(t.hits for t in done), sum(t.misses for t in done))

    def _words(self, c: Command, transfer: int) -> list[int]:
        """When each turn of words is offered to the loaders, which take them from the next cycle on."""
        channels = self.stack.pseudo_channels if c.deal else 1
        ready = self._results.popleft() if c.from_sfu else []
        offered: list[int] = []
        fill = max(transfer + _BEGIN, self._filled + 2, self._word) - 1
        for turn in range(c.count):
            for word in range(turn * channels, (turn + 1) * channels):
                fill = max(fill + 1, ready[word] if word < len(ready) else 0)
            # a turn is taken before the next one begins; the first one when the loader is at work
            fill = fill if turn else max(fill, self._now)
            offered.append(fill + 1)
        self._filled = fill
        return offered

    def _answer(self) -> None:
        """Responses are taken from all pseudo-channels together, and added up one by one."""
        while self._order:
            transfer, times = self._order[0]
            if times is not None and times.done < 0:
                break
            self._order.popleft()
            there = 0 if times is None else max(times.dispatched, times.done) + 1
            taken = max(transfer + _BEGIN, self._answerer, there)
            self._answerer = taken + 3 + (0 if times is None else self.stack.pseudo_channels)
            if times is not None:
                times.response = taken
        while self._pending and 0 <= self._pending[0].response < self._now:
            self._pending.pop(0)

    def _start_reading(self, t: int) -> None:
        """A bank of each group a cycle, while there is room for the beats that the collector has not taken."""
        assert self._reading is not None
        (inner, times), self._reading = self._reading, None
        own, c, transfer = self._reads.pop(0)
        assert own is times
        channels, delay = self.stack.pseudo_channels, self.p.pe.read_latency + ADD
        self._collector = max(self._collector + 2, transfer + _BEGIN)
        first, issue = len(self._taken), t - 1
        for bank in range(4 * inner.outputs):
            waiting = len(self._taken) - _ROOM
            issue = max(issue + 1, self._taken[waiting] + 1 if waiting >= 0 else 0)
            if inner.reduce == "none" or bank % 4 == 3:
                self._taken.append(max(issue + delay, self._collector))
                self._collector = self._taken[-1] + channels
        times.started, times.done = times.dispatched + 1, issue
        times.cycles = times.done - times.dispatched
        self._read_until = issue
        self._leave(c, self._taken[first:])

    def _leave(self, c: Command, taken: Sequence[int]) -> None:
        """The last value of a READ reaches the host or the SFU."""
        channels = self.stack.pseudo_channels
        beat = (c.values - 1) // (1 if c.reduce == "all" else 4)
        group, place = (beat, channels - 1) if c.across else divmod(beat, channels)
        end = taken[group] + place + 2 + self.stack.rounder.stages
        if not c.to_sfu:
            self._end = end
            return
        self._row, self._row_end = self._row + c.values, end
        if c.last:
            self._function()

    def _function(self) -> None:
        """The SFU has its row; when its results are words."""
        (c, begin), length = self._functions.popleft(), self._row
        self._row = 0
        times, beats = sfu_cycles(self.stack.sfu, SfuOp[c.operation.upper()], length), -(-length // 4)
        first = max(begin, self._row_end - beats) + times.first
        if not c.to_buffers:
            self._end = first + beats - 1
            return
        size = self.stack.lanes // 4
        ends = [min(beat + size, beats) - 1 for beat in range(0, beats, size)]
        self._results.append([first + beat + 1 for beat in ends])
