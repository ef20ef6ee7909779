"""Gives words to pseudo-channels: each word to all of them, or one word to each in turn.

Words that are dealt out are put into a register each, and handed over when every pseudo-channel has one: those that
take part get their words in the same cycle, and so stay in step.

Words of the special function unit end with their row; zeros follow until the job is complete, and what is left of a
row that is longer than the job goes nowhere.

Latency: 1 cycle from the last word of a turn. Throughput: a word a cycle, and a cycle between jobs. Cost: a word of
registers for each pseudo-channel.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.pim.stack.layouts import deal_job, dealt_word
from rtl.unit import Unit, in_reset
from sim_models.params.pim.stack.pim_stack import PimStackParams

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
        rest, left = Signal(p.pseudo_channels), Signal(16)

        # The word that comes next, and whose it is.
        current, target = Signal(p.pseudo_channels), Signal(p.pseudo_channels)
        available, moved, room, row_ends = Signal(), Signal(), Signal(), Signal()
        word = Signal(p.word_width)
        m.d.comb += [
            current.eq(rest & -rest), target.eq(Mux(job.deal, current, job.channels)),
            available.eq(busy & ~draining & Mux(job.from_sfu, ended | self.i_sfu.valid, self.i_host.valid)),
            word.eq(Mux(job.from_sfu, Mux(ended, 0, self.i_sfu.payload.word), self.i_host.payload)),
            moved.eq(available & room), row_ends.eq(self.i_sfu.payload.last & ~ended),
            self.i_host.ready.eq(busy & ~job.from_sfu & room & ~in_reset()),
            self.i_sfu.ready.eq(busy & job.from_sfu & ((room & ~ended) | draining)),
        ]
        turn_ends, complete = Signal(), Signal()
        m.d.comb += [turn_ends.eq(~job.deal | ((rest & ~current) == 0)), complete.eq(turn_ends & (left == 1))]
        with m.If(moved):
            m.d.sync += [rest.eq(Mux(turn_ends, job.channels, rest & ~current)), left.eq(left - turn_ends),
                         ended.eq(ended | (job.from_sfu & row_ends))]
        self._hand_over(m, room, word, target, comes=moved & ~job.drop, complete=turn_ends)
        self._jobs(m, busy, draining, finished=moved & complete,
                   spent=~job.from_sfu | ended | self.i_sfu.payload.last)
        with m.If(~busy):
            m.d.sync += [rest.eq(job.channels), left.eq(job.count), ended.eq(0)]
        return m

    def _hand_over(self, m: Module, room: Signal, word: Signal, target: Signal, *, comes: Any, complete: Any) -> None:
        """A register for each pseudo-channel; they are offered together, and the next turn waits for all."""
        p = self.p
        outputs = [getattr(self, f"o_{i}") for i in range(p.pseudo_channels)]
        there, offered = Signal(p.pseudo_channels), Signal()
        m.d.comb += room.eq(~offered | (~there | Cat(out.ready for out in outputs)).all())
        with m.If(room):
            m.d.sync += [offered.eq(comes & complete),
                         there.eq(Mux(comes, Mux(offered, 0, there) | target, Mux(offered, 0, there)))]
        with m.Else():
            m.d.sync += there.eq(there & ~Cat(out.ready for out in outputs))
        for i, out in enumerate(outputs):
            m.d.comb += out.valid.eq(offered & there[i])
            with m.If(comes & room & target[i]):
                m.d.sync += out.payload.eq(word)

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
