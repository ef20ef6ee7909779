"""Gives words to pseudo-channels: each word to all of them, or 4 words to each in turn.

Words of the special function unit end with their row; zeros follow until the job is complete, and what is left of a
row that is longer than the job goes nowhere.

Latency: none. Throughput: a word a cycle, and a cycle between jobs.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.pim_layouts import deal_job, dealt_word
from rtl.unit import Unit, in_reset
from sim_models.params.pim import PimStackParams

__all__ = ["WordDealer"]


class WordDealer(Unit):
    """Distributor.

    Members
    -------
    i_job: In(stream of deal_job)
    i_host: In(stream of words), i_sfu: In(stream of dealt_word)
    o_0, ...: Out(stream of words)
        To each pseudo-channel.
    """

    block = "word_dealer"

    i_job: Any
    i_host: Any
    i_sfu: Any

    def __init__(self, params: PimStackParams | None = None) -> None:
        p = params or PimStackParams()
        self.p = p
        word = stream.Signature(p.word_width)
        super().__init__(p, {
            "i_job": In(stream.Signature(deal_job(p))), "i_host": In(word),
            "i_sfu": In(stream.Signature(dealt_word(p))),
            **{f"o_{i}": Out(word) for i in range(p.pseudo_channels)}})

    def body(self, platform: Any) -> Module:
        m = Module()
        p, job = self.p, self.i_job.payload
        busy, draining, ended = Signal(), Signal(), Signal()
        rest, given = Signal(p.pseudo_channels), Signal(p.pseudo_channels)
        left, place = Signal(16), Signal(2)

        # The word that is offered, and to whom.
        current, target = Signal(p.pseudo_channels), Signal(p.pseudo_channels)
        available, moved, row_ends = Signal(), Signal(), Signal()
        word = Signal(p.word_width)
        taken = (~target | given | _ready(self, p)).all()
        m.d.comb += [
            current.eq(rest & -rest), target.eq(Mux(job.drop, 0, Mux(job.deal, current, job.channels))),
            available.eq(busy & ~draining & Mux(job.from_sfu, ended | self.i_sfu.valid, self.i_host.valid)),
            word.eq(Mux(job.from_sfu, Mux(ended, 0, self.i_sfu.payload.word), self.i_host.payload)),
            moved.eq(available & taken), row_ends.eq(self.i_sfu.payload.last & ~ended),
            self.i_host.ready.eq(busy & ~job.from_sfu & taken & ~in_reset()),
            self.i_sfu.ready.eq(busy & job.from_sfu & ((taken & ~ended) | draining)),
        ]
        for i in range(p.pseudo_channels):
            out = getattr(self, f"o_{i}")
            m.d.comb += [out.payload.eq(word), out.valid.eq(available & target[i] & ~given[i])]
        with m.If(moved):
            m.d.sync += given.eq(0)
        with m.Elif(available):
            m.d.sync += given.eq(given | (target & _ready(self, p)))

        # What is left.
        turn_ends, round_ends, complete = Signal(), Signal(), Signal()
        step = Signal(3)
        m.d.comb += [
            turn_ends.eq(~job.deal | (place == 3) | (place + 1 == left)),
            round_ends.eq(turn_ends & (~job.deal | ((rest & ~current) == 0))),
            step.eq(Mux(job.deal, 4, 1)), complete.eq(round_ends & (left <= step)),
        ]
        with m.If(moved):
            m.d.sync += [place.eq(Mux(turn_ends, 0, place + 1)), ended.eq(ended | (job.from_sfu & row_ends))]
            with m.If(turn_ends):
                m.d.sync += rest.eq(Mux(round_ends, job.channels, rest & ~current))
            with m.If(round_ends):
                m.d.sync += left.eq(left - step)
        self._jobs(m, busy, draining, finished=moved & complete,
                   spent=~job.from_sfu | ended | self.i_sfu.payload.last)
        with m.If(~busy):
            m.d.sync += [rest.eq(job.channels), left.eq(job.count), place.eq(0), ended.eq(0)]
        return m

    def _jobs(self, m: Module, busy: Signal, draining: Signal, *, finished: Any, spent: Any) -> None:
        """Begin and end; a row of the special function unit is taken to its end."""
        over = Signal()
        m.d.comb += [over.eq(Mux(draining, self.i_sfu.valid & self.i_sfu.payload.last, finished & spent)),
                     self.i_job.ready.eq(busy & over)]
        with m.If(~busy):
            m.d.sync += busy.eq(self.i_job.valid)
        with m.Elif(over):
            m.d.sync += [busy.eq(0), draining.eq(0)]
        with m.Elif(finished):
            m.d.sync += draining.eq(1)


def _ready(unit: Any, p: PimStackParams) -> Any:
    """The pseudo-channels that take a word now."""
    return Cat(getattr(unit, f"o_{i}").ready for i in range(p.pseudo_channels))
