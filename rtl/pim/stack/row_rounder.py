"""Rounds four exact sums a cycle, and sends the results to the host or to the special function unit.

Latency: that of `sum_rounder`. Throughput: a beat a cycle.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.pim.bank.sum_rounder import SumRounder
from rtl.pim.stack.layouts import collected_beat
from rtl.sfu.layouts import sfu_beat
from rtl.unit import Unit
from sim_models.params.pim.stack.pim_stack import PimStackParams

__all__ = ["RowRounder"]


class RowRounder(Unit):
    """Four rounders.

    Members
    -------
    i: In(stream of collected_beat)
    o_host, o_sfu: Out(stream of sfu_beat)
    """

    block = "row_rounder"

    i: Any
    o_host: Any
    o_sfu: Any

    def __init__(self, params: PimStackParams | None = None) -> None:
        p = params or PimStackParams()
        self.p = p
        beat = stream.Signature(sfu_beat(p.sfu))
        super().__init__(p, {"i": In(stream.Signature(collected_beat(p))), "o_host": Out(beat), "o_sfu": Out(beat)})

    def body(self, platform: Any) -> Module:
        m = Module()
        p, beat = self.p, self.i.payload
        enable, valid, to_sfu = Signal(), Signal(), Signal()
        keep, last = beat.keep, beat.last
        target = beat.to_sfu
        for stage in range(p.rounder.stages):
            keep_next, last_next = Signal(4, name=f"keep_{stage}"), Signal(name=f"last_{stage}")
            target_next = Signal(name=f"to_sfu_{stage}")
            with m.If(enable):
                m.d.sync += [keep_next.eq(keep), last_next.eq(last), target_next.eq(target)]
            keep, last, target = keep_next, last_next, target_next
        m.d.comb += [
            to_sfu.eq(target), enable.eq(~valid | Mux(to_sfu, self.o_sfu.ready, self.o_host.ready)),
            self.i.ready.eq(enable), self.o_host.valid.eq(valid & ~to_sfu), self.o_sfu.valid.eq(valid & to_sfu),
        ]
        for lane in range(4):
            m.submodules[f"rounder_{lane}"] = rounder = SumRounder(p.rounder)
            m.d.comb += [
                rounder.enable.eq(enable), rounder.i_valid.eq(self.i.valid), rounder.format.eq(beat.format),
                rounder.sum.value.eq(beat.value[lane]), rounder.sum.positive.eq(beat.positive[lane]),
                rounder.sum.negative.eq(beat.negative[lane]), rounder.sum.nan.eq(beat.nan[lane]),
            ]
            if lane == 0:
                m.d.comb += valid.eq(rounder.o_valid)
            for out in (self.o_host, self.o_sfu):
                m.d.comb += out.payload.data[lane].eq(Mux(keep[lane], rounder.result, 0))
        for out in (self.o_host, self.o_sfu):
            m.d.comb += [out.payload.keep.eq(keep), out.payload.last.eq(last)]
        return m
