"""The sequencer carries out WRITE and MAC, a word at a time, as fast as the banks allow.

One job is at work and one waits behind it, so the row with which it begins can be opened early, and its first word
follows the last one of the job before without a gap.

Latency: a job is at work in the cycle after it is taken if none is before it; its commands leave a cycle after their
decision. Throughput: a word every ``ccd`` cycles while its row is open.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.parts.logic import countdown
from rtl.pim.bank.layouts import dram_column
from rtl.pim.channel.layouts import mac_step, pim_job
from rtl.unit import Unit
from sim_models.params.pim.channel.pseudo_channel import PseudoChannelParams
from sim_models.spec.bank import DramColumnOp
from sim_models.spec.channel import PimOp, PimSpread

__all__ = ["MacSequencer"]


class MacSequencer(Unit):
    """Column side of the DRAM controller.

    Members
    -------
    i_job: In(stream of pim_job)
        WRITE and MAC.
    current_valid: Out(1), current: Out(row), ahead_valid: Out(1), ahead: Out(row)
    read, write: Out(1)
    is_open, fresh: In(1)
        See `dram_rows`.
    word_valid: In(1), take_word: Out(1)
        A word for WRITE stands at the data stream, and may be taken.
    column: Out(dram_column), to_group: Out(2), to_bank: Out(2)
        To the banks, a cycle after ``read`` or ``write``; a WRITE is for one bank.
    step: Out(mac_step)
        With READ.
    done: Out(1), cycles: Out(32), hits, misses: Out(24)
        A job issues its last word.
    writing: Out(1)
        A WRITE is at work or waits.
    buffer_halves: Out(2), sum_halves: Out(2)
        Halves of the global buffer that are still to be read, and of the accumulators that are still to change.
    """

    block = "mac_sequencer"

    i_job: Any
    current_valid: Signal
    current: Signal
    ahead_valid: Signal
    ahead: Signal
    read: Signal
    write: Signal
    is_open: Signal
    fresh: Signal
    word_valid: Signal
    take_word: Signal
    column: Any
    to_group: Signal
    to_bank: Signal
    step: Any
    done: Signal
    cycles: Signal
    hits: Signal
    misses: Signal
    writing: Signal
    buffer_halves: Signal
    sum_halves: Signal

    def __init__(self, params: PseudoChannelParams | None = None) -> None:
        p = params or PseudoChannelParams()
        self.p = p
        super().__init__(p, {
            "i_job": In(stream.Signature(pim_job(p))),
            "current_valid": Out(1), "current": Out(range(p.rows)),
            "ahead_valid": Out(1), "ahead": Out(range(p.rows)), "read": Out(1), "write": Out(1),
            "is_open": In(1), "fresh": In(1), "word_valid": In(1), "take_word": Out(1),
            "column": Out(dram_column(p)), "to_group": Out(2), "to_bank": Out(2), "step": Out(mac_step(p)),
            "done": Out(1), "cycles": Out(32), "hits": Out(24), "misses": Out(24), "writing": Out(1),
            "buffer_halves": Out(2), "sum_halves": Out(2),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        job, waiting = Signal(pim_job(p)), Signal(pim_job(p))
        busy, waits = Signal(), Signal()
        issue, last = Signal(), Signal()
        incoming = Signal()
        begin = Signal(pim_job(p))

        # The job at work makes room with its last word; the next one, or the one that comes, takes its place.
        m.d.comb += [self.i_job.ready.eq(~waits), incoming.eq(self.i_job.valid & ~waits),
                     begin.eq(Mux(waits, waiting, self.i_job.payload))]
        free = ~busy | (issue & last)
        with m.If(free):
            m.d.sync += [busy.eq(waits | incoming), waits.eq(0)]
        with m.Elif(incoming):
            m.d.sync += waits.eq(1)
        with m.If(incoming):
            m.d.sync += waiting.eq(self.i_job.payload)

        # Where it stands.
        row, column = Signal(range(p.rows)), Signal(range(p.columns))
        word, output, place = Signal(16), Signal(range(p.half + 1)), Signal(range(p.buffer_words))
        word_end = Signal()
        m.d.comb += [word_end.eq(word == job.count - 1), last.eq(word_end & (output == job.outputs - 1))]
        with m.If(free):
            m.d.sync += [job.eq(begin), row.eq(begin.row), column.eq(begin.column), place.eq(begin.base),
                         word.eq(0), output.eq(0)]
        with m.Elif(issue):
            m.d.sync += [column.eq(column + 1), word.eq(word + 1),
                         place.eq(place + Mux(job.spread == PimSpread.ALL, 1, 4))]
            with m.If(column == p.columns - 1):
                m.d.sync += row.eq(row + 1)
            with m.If(word_end):
                m.d.sync += [word.eq(0), output.eq(output + 1), place.eq(job.base)]

        # A word is issued as soon as its row is open and the column path is free.
        is_write = job.op == PimOp.WRITE
        may_access = countdown(m, "access", (issue, p.ccd))
        may_read = countdown(m, "read", (self.write, p.wtr))
        m.d.comb += [
            self.take_word.eq(busy & is_write & self.is_open & may_access),
            self.write.eq(self.take_word & self.word_valid),
            self.read.eq(busy & ~is_write & self.is_open & may_access & may_read),
            issue.eq(self.read | self.write),
            self.current_valid.eq(busy), self.current.eq(row),
            self.ahead_valid.eq(busy & ((row != job.last_row) | waits)),
            self.ahead.eq(Mux(row != job.last_row, row + 1, waiting.row)),
        ]
        self._commands(m, job, row, column, word, output, place)
        self._account(m, free, issue, last)
        self._hold(m, job, waiting, busy, waits)
        return m

    def _commands(self, m: Module, job: Any, row: Signal, column: Signal, word: Signal, output: Signal,
                  place: Signal) -> None:
        """To the banks and to the processing elements."""
        m.d.sync += [
            self.column.op.eq(Mux(self.write, DramColumnOp.WRITE, Mux(self.read, DramColumnOp.READ,
                                                                      DramColumnOp.NONE))),
            self.column.row.eq(row), self.column.column.eq(column),
            self.to_group.eq(job.group), self.to_bank.eq(job.bank),
            self.step.valid.eq(self.read), self.step.first.eq(job.clear & (word == 0)),
            self.step.index.eq(job.first + output), self.step.int8.eq(job.int8), self.step.spread.eq(job.spread),
            self.step.address.eq(place),
        ]

    def _account(self, m: Module, free: Any, issue: Signal, last: Signal) -> None:
        """What the response says: everything up to this cycle."""
        counts = [(self.cycles, 1), (self.hits, issue & ~self.fresh), (self.misses, issue & self.fresh)]
        for port, event in counts:
            before = Signal.like(port, name=f"{port.name}_before")
            m.d.comb += port.eq(before + event)
            m.d.sync += before.eq(Mux(free, 0, port))
        m.d.comb += self.done.eq(issue & last)

    def _hold(self, m: Module, job: Any, waiting: Any, busy: Signal, waits: Signal) -> None:
        """Halves that jobs use, and those that their last words have not reached yet."""
        p = self.p
        sums: Any = 0
        buffer: Any = 0
        writing: Any = 0
        for there, held in ((busy, job), (waits, waiting)):
            mac = there & (held.op == PimOp.MAC)
            high = held.first[-1]
            sums = sums | Mux(mac, 1 << high, 0)
            buffer = buffer | Mux(mac, held.buffer_halves, 0)
            writing = writing | (there & (held.op == PimOp.WRITE))
        m.d.comb += self.writing.eq(writing)
        # from READ to when the global buffer is read, and to where a read of the processing elements finds the sum
        for port, used, by_word, cycles in (
                (self.buffer_halves, buffer, job.buffer_halves, p.cl),
                (self.sum_halves, sums, 1 << job.first[-1], p.cl + 1 + p.pe.latency)):
            for half in range(2):
                passed = countdown(m, f"{port.name}_{half}", (self.read & (by_word >> half)[0], cycles))
                m.d.comb += port[half].eq((used >> half)[0] | ~passed)
