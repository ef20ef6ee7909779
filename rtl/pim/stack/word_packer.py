"""Packs FP16 results of the special function unit, 4 a beat, into words; zeros fill up the last word of a row.

Latency: 1 cycle from a word's last beat. Throughput: a beat a cycle.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.pim.stack.layouts import dealt_word
from rtl.sfu.layouts import sfu_beat
from rtl.unit import Unit
from sim_models.params.pim.stack.pim_stack import PimStackParams

__all__ = ["WordPacker"]


class WordPacker(Unit):
    """Packer.

    Members
    -------
    i: In(stream of sfu_beat)
        FP16 in the low halves, 0 in lanes that are not kept.
    o: Out(stream of dealt_word)
    """

    block = "word_packer"

    i: Any
    o: Any

    def __init__(self, params: PimStackParams | None = None) -> None:
        p = params or PimStackParams()
        self.p = p
        super().__init__(p, {"i": In(stream.Signature(sfu_beat(p.sfu))), "o": Out(stream.Signature(dealt_word(p)))})

    def body(self, platform: Any) -> Module:
        m = Module()
        beats = self.p.lanes // 4
        numbers = Cat(self.i.payload.data[lane][:16] for lane in range(4))
        slot, full, last = Signal(range(max(beats, 2))), Signal(), Signal()
        parts = [Signal(64, name=f"part_{i}") for i in range(beats)]
        m.d.comb += [
            self.i.ready.eq(~full | self.o.ready), self.o.valid.eq(full),
            self.o.payload.word.eq(Cat(parts)), self.o.payload.last.eq(last),
        ]
        with m.If(self.i.ready):
            ends = self.i.payload.last | (slot == beats - 1)
            m.d.sync += full.eq(self.i.valid & ends)
            with m.If(self.i.valid):
                m.d.sync += [slot.eq(Mux(ends, 0, slot + 1)), last.eq(self.i.payload.last)]
                for i, part in enumerate(parts):
                    with m.If(slot == i):
                        m.d.sync += part.eq(numbers)
                    with m.Elif(slot == 0):
                        m.d.sync += part.eq(0)
        return m
