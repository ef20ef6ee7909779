"""In which cycle a pseudo-channel does what, from the rules alone and in absolute times.

It holds for outputs that are always taken. Time is kept as the earliest cycle at which something may happen; cycles
in which nothing can are skipped. Cycle 0 is the first one after reset.
"""

import dataclasses
import math
from collections.abc import Sequence

from sim_models.golden.pim.channel.channel_commands import BANKS, Command, status, words
from sim_models.params.pim.channel.pseudo_channel import PseudoChannelParams

__all__ = ["Timeline", "Times"]

#: cycles from a command's acceptance to when it may be dispatched
DECODE = 3
#: commands that were dispatched and whose response was not taken
IN_FLIGHT = 8
#: cycles from the arrival of the last sum of a beat in the adders to the beat
ADD = 5


@dataclasses.dataclass
class Times:
    """When things happen to a command.

    Attributes
    ----------
    dispatched, started, done, response: int
        Cycles in which it goes to its unit, is first at work there, does its last work, and is answered.
    cycles, hits, misses: int
        As in the response.
    beats: list[int]
        When its sums leave.
    """

    dispatched: int
    started: int = -1
    done: int = -1
    response: int = -1
    cycles: int = 0
    hits: int = 0
    misses: int = 0
    beats: list[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class _Subarray:
    """A row buffer: what is in it, and from when on it may be accessed, closed and opened."""

    row: int | None = None
    used: bool = False
    use: int = 0
    close: int = 0
    open: int = 0


@dataclasses.dataclass
class _Work:
    """A WRITE or MAC in the sequencer: words are numbered through."""

    command: Command
    times: Times
    #: first cycle in which it may be at work
    since: int
    size: int
    #: its first word on the data stream
    data: int
    number: int = 0


class _Banks:
    """All banks, which are in the same state: rows, refresh, and the time of the next access."""

    def __init__(self, p: PseudoChannelParams) -> None:
        self.p = p
        self.arrays = [_Subarray() for _ in range(p.open_rows)]
        self.access = self.read = 0
        self.due = False
        self.next_due = p.refi

    def of(self, row: int) -> _Subarray:
        return self.arrays[row % len(self.arrays)]

    def word_time(self, row: int, is_read: bool) -> float:
        """When a word of the row may be read or written."""
        there = self.of(row)
        if there.row != row or self.due:
            return math.inf
        return max(there.use, self.access, self.read if is_read else 0)

    def touch(self, t: int, row: int, is_read: bool) -> bool:
        """Read or write a word; whether the row was used before."""
        p, there = self.p, self.of(row)
        hit, there.used = there.used, True
        self.access = t + p.ccd
        there.close = max(there.close, t + (p.rtp if is_read else p.wr))
        if not is_read:
            self.read = max(self.read, t + p.wtr)
        return hit

    def move_time(self, wanted: Sequence[int]) -> float:
        """When the next row command can be."""
        if self.due:
            closing = [a.close for a in self.arrays if a.row is not None]
            return min(closing) if closing else max(a.open for a in self.arrays)
        return min((self._row_time(row) for row in wanted), default=math.inf)

    def move(self, t: int, wanted: Sequence[int]) -> None:
        """The row command of cycle ``t``, if one is possible: for the first wanted row that needs one."""
        if self.due:
            for there in self.arrays:
                if there.row is not None and there.close <= t:
                    there.row, there.open = None, max(there.open, t + self.p.rp)
                    return
            if all(a.row is None and a.open <= t for a in self.arrays):
                for there in self.arrays:
                    there.open = t + self.p.rfc
                self.due = False
            return
        for row in wanted:
            if self._row_time(row) <= t:
                there = self.of(row)
                if there.row is None:
                    there.row, there.used, there.use = row, False, t + self.p.rcd
                    there.close = max(there.close, t + self.p.ras)
                else:
                    there.row, there.open = None, max(there.open, t + self.p.rp)
                return

    def _row_time(self, row: int) -> float:
        there = self.of(row)
        if there.row == row:
            return math.inf
        return there.open if there.row is None else there.close


class Timeline:
    """The course of a pseudo-channel from a reset on.

    Parameters
    ----------
    p:
        Its parameters.
    """

    def __init__(self, p: PseudoChannelParams) -> None:
        self.p = p
        self._banks = _Banks(p)
        #: the first cycle that is not decided yet
        self._now = 0
        self._accepted = self._dispatched = self._response = self._word = -1
        #: dispatched commands that may be without a response
        self._pending: list[Times] = []
        #: last cycle of the loader, and halves that it writes
        self._loading: tuple[int, set[int]] = (-1, set())
        #: command and times of the sum reader, and its last cycle
        self._reading: tuple[Command, Times] | None = None
        self._read_until = self._read_half = -1
        #: at work, and waiting
        self._work: list[_Work] = []
        #: when each half of the accumulators is complete, and when each half of the buffer was read
        self._sums, self._buffer = [0, 0], [0, 0]

    def run(self, commands: Sequence[Command], offered: Sequence[int] | None = None,
            data_offered: Sequence[int] | None = None) -> list[Times]:
        """Times of commands; parameters as for ``PseudoChannel.run``.

        Commands of a later call are not to be offered before those of the calls before it are answered.
        """
        times: list[Times] = []
        taken = 0
        data = [0] * sum(words(c) for c in commands) if data_offered is None else list(data_offered)
        for number, c in enumerate(commands):
            self._accepted = max(self._accepted + 1, offered[number] if offered is not None else 0)
            self._advance(max(self._accepted + DECODE, self._dispatched + 1), data)
            while not self._may_dispatch(c):
                self._advance(self._change(c), data)
            self._dispatched = self._now
            times.append(self._dispatch(c, data, taken))
            taken += words(c)
        while self._work or self._reading:
            self._advance(self._now + 1, data)
        self._answer()
        return times

    def _may_dispatch(self, c: Command) -> bool:
        """Whether nothing is in the way of the command in this cycle."""
        self._answer()
        now, good = self._now, status(self.p, c) == "ok"
        answered = sum(0 <= t.response < now for t in self._pending)
        if len(self._pending) - answered >= IN_FLIGHT:
            return False
        loading, halves = self._loading
        loader_busy, writing = loading >= now, any(w.command.op == "write" for w in self._work)
        if not good:
            return not words(c) or not (loader_busy or writing)
        if c.op == "load":
            wanted = self._buffer_halves(c)
            used = {h for w in self._work if w.command.op == "mac" for h in self._buffer_halves(w.command)}
            return not (loader_busy or writing or used & wanted or any(self._buffer[h] > now for h in wanted))
        if c.op == "read":
            return self._reading is None and self._read_until < now
        if len(self._work) == 2:
            return False
        if c.op == "write":
            return not loader_busy
        reading = self._reading is not None or self._read_until >= now
        return not (loader_busy and halves & self._buffer_halves(c)) and not (
            reading and self._read_half == c.first // self.p.half)

    def _change(self, c: Command) -> int:
        """The first cycle from the next one on in which the command may be dispatched, if it may not now."""
        after = self._now + 1
        times: list[float] = [self._loading[0] + 1, self._read_until + 1, *(self._buffer if c.op == "load" else [])]
        times += [t.response + 1 for t in self._pending if t.response >= 0]
        if self._work:
            # at work to the last word, and answered
            times.append(after + (self._work[0].size - self._work[0].number - 1) * self.p.ccd)
        if self._reading is not None:
            times.append(self._read_time() + 1)
        return int(min(max(t, after) for t in times if t > self._now))

    def _dispatch(self, c: Command, data: list[int], taken: int) -> Times:
        """The command goes to its unit in this cycle."""
        now = self._now
        times = Times(now)
        self._pending.append(times)
        good = status(self.p, c) == "ok"
        if c.op in ("mac", "write") and good:
            size = c.count * (c.outputs if c.op == "mac" else 1)
            self._work.append(_Work(c, times, now + 1, size, taken))
        elif c.op == "read" and good:
            self._reading, self._read_half = (c, times), c.first // self.p.half
        elif words(c):
            for k in range(taken, taken + c.count):
                self._word = max(data[k], self._word + 1, now + 1)
            self._loading = self._word, self._buffer_halves(c) if good else set()
            times.started, times.done = now + 1, self._word
            times.cycles = times.done - now if good else 0
        else:
            times.started = times.done = now
        return times

    def _answer(self) -> None:
        """Times of the responses that are known."""
        for times in self._pending:
            if times.response < 0:
                if times.done < 0:
                    break
                times.response = self._response = max(self._response + 1, times.dispatched + 1, times.done + 1)
        while self._pending and 0 <= self._pending[0].response < self._now:
            self._pending.pop(0)

    def _advance(self, until: int, data: list[int]) -> None:
        """Decide all cycles before ``until``."""
        while self._now < until:
            self._now = max(self._now, min(until, self._next(data)))
            if self._now < until:
                self._cycle(self._now, data)
                self._now += 1
                self._run_on(until, data)

    def _next(self, data: list[int]) -> int:
        """A cycle before which nothing happens."""
        banks, now = self._banks, self._now
        times: list[float] = [banks.next_due, self._read_time(), banks.move_time(self._wanted(now))]
        if self._work:
            times.append(self._word_time(data))
            if self._work[-1].times.dispatched == now:
                times.append(now + 1)
        return int(min(times))

    def _cycle(self, t: int, data: list[int]) -> None:
        """Everything that the banks and the sum reader do in cycle ``t``."""
        banks = self._banks
        if self._read_time() <= t:
            self._start_reading(t)
        if t == banks.next_due:
            banks.due, banks.next_due = True, t + self.p.refi
        issue = bool(self._work) and self._word_time(data) <= t
        banks.move(t, self._wanted(t))
        if issue:
            self._access(t)

    def _run_on(self, until: int, data: list[int]) -> None:
        """Skip over the reads of a row between which nothing else happens."""
        p, banks = self.p, self._banks
        if not self._work or self._work[0].command.op != "mac":
            return
        work, first = self._work[0], self._word_time(data)
        at = work.command.address + work.number
        # all but the last word of the row, and of the work
        most = min(p.columns - 1 - at % p.columns, work.size - work.number - 1)
        end = min(until, banks.next_due, banks.move_time(self._wanted(self._now)), self._read_time())
        number = math.ceil((min(end, first + most * p.ccd) - first) / p.ccd) if first < end else 0
        if number > 1:
            for k in (0, number - 1):
                self._access(int(first) + k * p.ccd)
            work.number += number - 2
            work.times.hits += number - 2
            self._now = int(first) + (number - 1) * p.ccd + 1

    def _wanted(self, t: int) -> list[int]:
        """The row at work in cycle ``t``, and the next one if it has a row buffer of its own."""
        works, columns = [w for w in self._work if w.times.dispatched < t], self.p.columns
        if not works:
            return []
        work = works[0]
        row = (work.command.address + work.number) // columns
        if row != (work.command.address + work.size - 1) // columns:
            ahead = row + 1
        elif len(works) > 1:
            ahead = works[1].command.address // columns
        else:
            return [row]
        return [row] if self._banks.of(row) is self._banks.of(ahead) else [row, ahead]

    def _word_time(self, data: list[int]) -> float:
        """When the next word of the work may be accessed."""
        work = self._work[0]
        mac = work.command.op == "mac"
        time = max(work.since, self._banks.word_time((work.command.address + work.number) // self.p.columns, mac))
        return time if mac else max(time, self._word + 1, data[work.data + work.number])

    def _access(self, t: int) -> None:
        """A word of the work is read or written."""
        work, p = self._work[0], self.p
        c, times = work.command, work.times
        if self._banks.touch(t, (c.address + work.number) // p.columns, c.op == "mac"):
            times.hits += 1
        else:
            times.misses += 1
        if c.op == "mac":
            for half in self._buffer_halves(c):
                self._buffer[half] = t + p.cl
            self._sums[c.first // p.half] = t + p.cl + 1 + p.pe.latency
        else:
            self._word = t
        work.number += 1
        if work.number == work.size:
            times.started, times.done, times.cycles = work.since, t, t - work.since + 1
            self._work.pop(0)
            if self._work:
                self._work[0].since = max(self._work[0].since, t + 1)

    def _buffer_halves(self, c: Command) -> set[int]:
        """Halves of the global buffer that a LOAD or MAC touches."""
        end = c.base + c.count * (4 if c.op == "mac" and c.spread != "all" else 1)
        middle = self.p.buffer_words // 2
        return {half for half, touched in enumerate((c.base < middle, end > middle)) if touched}

    def _read_time(self) -> float:
        """When the sum reader may begin."""
        if self._reading is None:
            return math.inf
        c, times = self._reading
        half = c.first // self.p.half
        if any(w.command.op == "mac" and w.command.first // self.p.half == half for w in self._work):
            return math.inf
        return max(times.dispatched + 1, self._sums[half])

    def _start_reading(self, t: int) -> None:
        """A bank of each group a cycle from now on."""
        assert self._reading is not None
        (c, times), self._reading = self._reading, None
        reads = range(t, t + c.outputs * BANKS)
        times.started, times.done = times.dispatched + 1, reads[-1]
        times.cycles = times.done - times.dispatched
        self._read_until = times.done
        beats = reads if c.reduce == "none" else reads[BANKS - 1::BANKS]
        times.beats = [read + self.p.pe.read_latency + ADD for read in beats]
