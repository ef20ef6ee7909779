"""Output of the special function unit: results to FP16 if wanted, lanes that are not kept to 0, and a queue of two.

``enable`` comes from a register and says that the queue has room for what is on its way to it; so the lanes stand
still while nobody takes results, and ``o`` does not depend on what is ready.

Latency: 2 cycles. Throughput: a beat a cycle.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from rtl.arith.float_to_half import FloatToHalf
from rtl.parts.pipeline import wire
from rtl.sfu.layouts import sfu_beat
from rtl.unit import Unit
from sim_models.params.sfu.buffer_die_sfu import BufferDieSfuParams

__all__ = ["SfuOutput"]


class SfuOutput(Unit):
    """Last stage.

    Members
    -------
    enable: Out(1)
    i_valid, last, fp16: In(1), keep: In(lanes), results: In(ArrayLayout(32, lanes))
        A word, with ``enable``.
    nan: Out(1)
        A number of the word that is kept is NaN.
    o: Out(stream of sfu_beat)
    """

    block = "sfu_output"

    enable: Signal
    i_valid: Signal
    last: Signal
    fp16: Signal
    keep: Signal
    results: Any
    nan: Signal
    o: Any

    def __init__(self, params: BufferDieSfuParams | None = None) -> None:
        p = params or BufferDieSfuParams()
        self.p = p
        super().__init__(p, {
            "enable": Out(1), "i_valid": In(1), "last": In(1), "fp16": In(1), "keep": In(p.lanes),
            "results": In(data.ArrayLayout(32, p.lanes)), "nan": Out(1),
            "o": Out(stream.Signature(sfu_beat(p))),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        lanes = self.p.lanes
        valid, half = Signal(), Signal(reset_less=True)
        beat = Signal(sfu_beat(self.p), reset_less=True)    # of float32 numbers
        made = Signal(sfu_beat(self.p))
        nans = Signal(lanes)
        m.d.comb += [made.eq(beat), self.nan.eq(nans.any())]
        for k in range(lanes):
            number = wire(m, Mux(self.keep[k], self.results[k], 0), f"kept{k}")
            m.submodules[f"to_half{k}"] = to_half = FloatToHalf(self.p.to_half)
            m.d.comb += [to_half.enable.eq(self.enable), to_half.value.eq(number),
                         nans[k].eq((number[23:31] == 255) & (number[:23] != 0))]
            with m.If(half):
                m.d.comb += made.data[k].eq(to_half.result)
            with m.If(self.enable):
                m.d.sync += beat.data[k].eq(number)
        with m.If(self.enable):
            m.d.sync += [valid.eq(self.i_valid), half.eq(self.fp16), beat.keep.eq(self.keep), beat.last.eq(self.last)]

        # two words: the one that is offered, and one behind it
        spare, waits = Signal(sfu_beat(self.p), reset_less=True), Signal()
        out = self.o
        comes = wire(m, valid & self.enable, "comes")
        m.d.comb += self.enable.eq(~waits)
        with m.If(~out.valid | out.ready):
            m.d.sync += [out.valid.eq(waits | comes), waits.eq(0)]
            with m.If(waits | comes):
                m.d.sync += out.payload.eq(Mux(waits, spare, made))
        with m.Elif(comes):
            m.d.sync += [spare.eq(made), waits.eq(1)]
        return m
