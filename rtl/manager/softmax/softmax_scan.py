"""First part of the softmax unit: compares logits, and chooses what the sums are relative to.

::

    beat -> masks -> maximum of the lanes -> + rise -> keys -> compare with -> vector, values
                 |                                             maximum, anchor
                 +-> logit of the given token -> delay ------> keep

The anchor is the largest logit of some beat. It is replaced by that of a later one if this exceeds it by more than
``SOFTMAX_RISE`` = 32; so no logit is more than that above its anchor (or 64, where float32 has no finer steps). The
sum so far stays relative to the anchor before; at the next change it is too small to count.

NaN and -inf count as masked, +inf as the largest finite number.

Latency: ``scan_cycles``. Throughput: a beat a cycle. Everything holds without ``enable``.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from rtl.arith.float_adder import FloatAdder
from rtl.arith.float_maximum import FloatMaximum
from rtl.manager.softmax.layouts import logits_beat, softmax_step, softmax_vector
from rtl.parts.float import Float32, order_key
from rtl.parts.pick import pick
from rtl.parts.pipeline import wire
from rtl.unit import Unit
from sim_models.params.manager.softmax.softmax_unit import SOFTMAX_RISE, SoftmaxUnitParams

__all__ = ["SoftmaxScan", "delayed"]

_MINUS_INFINITY, _LARGEST = 0xFF800000, 0x7F7FFFFF


def delayed(m: Module, enable: Any, value: Any, cycles: int, name: str, *, valid: bool = False) -> Any:
    """A value as it was some enabled cycles ago; what says that another is valid is cleared by a reset."""
    for n in range(cycles):
        later = Signal(len(value), name=f"{name}_{n + 1}", reset_less=not valid)
        with m.If(enable):
            m.d.sync += later.eq(value)
        value = later
    return value


class SoftmaxScan(Unit):
    """Running maximum and anchor.

    Members
    -------
    enable, i_valid: In(1), o_valid: Out(1)
        As in the pipelines of ``rtl/arith``.
    beat: In(logits_beat)
    values: Out(ArrayLayout(32, lanes))
        The logits of a beat, -inf where they are masked.
    step: Out(softmax_step)
    vector: Out(softmax_vector)
        What is known after this beat.
    """

    block = "softmax_scan"

    enable: Signal
    i_valid: Signal
    beat: Any
    o_valid: Signal
    values: Any
    step: Any
    vector: Any

    def __init__(self, params: SoftmaxUnitParams | None = None) -> None:
        p = params or SoftmaxUnitParams()
        self.p = p
        super().__init__(p, {
            "enable": In(1), "i_valid": In(1), "beat": In(logits_beat(p)), "o_valid": Out(1),
            "values": Out(data.ArrayLayout(32, p.lanes)), "step": Out(softmax_step(p)),
            "vector": Out(softmax_vector(p)),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        m.submodules.maximum = maximum = FloatMaximum(p.maximum)
        m.submodules.rise = rise = FloatAdder(p.adder)
        seen = self._mask(m, maximum)
        m.d.comb += [
            maximum.enable.eq(self.enable), rise.enable.eq(self.enable), maximum.i_valid.eq(self.i_valid),
            rise.i_valid.eq(maximum.o_valid), rise.a.eq(maximum.number), rise.b.eq(SOFTMAX_RISE),
        ]
        # what belongs to a beat's maximum waits for the sum, and everything for its keys
        def behind(value: Any, cycles: int, name: str) -> Any:
            return delayed(m, self.enable, value, cycles, name)
        found = behind(maximum.found, p.adder.stages + 1, "found")
        number = behind(maximum.number, p.adder.stages + 1, "number")
        lane = behind(maximum.index, p.adder.stages + 1, "lane")
        keys = [behind(order_key(m, code, name), 1, f"{name}_key")
                for code, name in ((behind(maximum.number, p.adder.stages, "largest"), "number"),
                                   (rise.result, "raised"))]
        seen = behind(seen.as_value(), p.scan_cycles - 1, "seen")
        valid = delayed(m, self.enable, rise.o_valid, 1, "valid", valid=True)
        self._compare(m, valid, found, number, lane, keys, data.View(self._seen(), seen))
        return m

    def _seen(self) -> data.StructLayout:
        """What is known of a beat without comparing."""
        p = self.p
        return data.StructLayout({
            "values": data.ArrayLayout(32, p.lanes), "first": 1, "last": 1, "given": 1, "token": p.token_width,
            "word": p.token_width - p.lane_width, "hit": 1, "chosen": 32, "nan": 1})

    def _mask(self, m: Module, maximum: FloatMaximum) -> Any:
        """Masks, the vector's beats counted, and the logit of the given token if it is among these."""
        p, beat = self.p, self.beat
        seen = Signal(self._seen())
        nans = Signal(p.lanes)
        for k in range(p.lanes):
            x = Float32(m, beat.data[k], f"lane{k}")
            present = wire(m, beat.keep[k] & ~x.is_nan & ~(x.is_inf & x.sign), f"present{k}")
            m.d.comb += [
                nans[k].eq(beat.keep[k] & x.is_nan), maximum.present[k].eq(present),
                seen["values"][k].eq(Mux(present, Mux(x.is_inf, _LARGEST, beat.data[k]), _MINUS_INFINITY)),
                maximum.values[k].eq(seen["values"][k]),
            ]
        fresh = Signal(init=1)
        word = Signal(p.token_width - p.lane_width)
        moves = self.enable & self.i_valid
        with m.If(moves):
            m.d.sync += [fresh.eq(beat.last), word.eq(Mux(beat.last, 0, word + 1))]
        token = beat.token
        m.d.comb += [
            seen["first"].eq(fresh), seen["last"].eq(beat.last), seen["given"].eq(beat.given),
            seen["token"].eq(token), seen["word"].eq(word), seen["nan"].eq(nans.any()),
            seen["hit"].eq(token[p.lane_width:] == word),
            seen["chosen"].eq(pick([seen["values"][k] for k in range(p.lanes)], token[:p.lane_width])),
        ]
        return seen

    def _compare(self, m: Module, valid: Any, found: Any, number: Any, lane: Any, keys: list[Any], seen: Any) -> None:
        """The loop of one cycle: maximum and anchor of all beats so far."""
        vector, step = self.vector, self.step
        key, raised = keys
        anchored = Signal()
        best_key, limit_key = Signal(32), Signal(32)
        known = wire(m, anchored & ~seen.first, "known")
        better = wire(m, found & (~known | (key > best_key)), "better")
        switched = wire(m, found & (~known | (key > limit_key)), "switched")
        with m.If(self.enable):
            m.d.sync += self.o_valid.eq(valid)
            with m.If(valid):
                m.d.sync += [
                    self.values.eq(seen["values"]), anchored.eq(known | found), vector.masked.eq(~(known | found)),
                    vector.nan.eq(seen.nan | (vector.nan & ~seen.first)),
                    step.first.eq(seen.first), step.last.eq(seen.last), step.switched.eq(switched),
                    step.lane.eq(lane),
                ]
                with m.If(better):
                    m.d.sync += [best_key.eq(key), vector.largest.eq(Cat(lane, seen.word))]
                with m.Elif(seen.first):
                    m.d.sync += vector.largest.eq(0)
                with m.If(switched):
                    m.d.sync += [limit_key.eq(raised), vector.anchor.eq(number),
                                 vector.old_anchor.eq(Mux(known, vector.anchor, number))]
                with m.Elif(seen.first):
                    # all that is masked is as far below as can be
                    m.d.sync += [vector.anchor.eq(0), vector.old_anchor.eq(0)]
                with m.If(Mux(seen.given, seen.hit, better)):
                    m.d.sync += vector.chosen.eq(Mux(seen.given, seen.chosen, number))
                with m.Elif(seen.first):
                    m.d.sync += vector.chosen.eq(_MINUS_INFINITY)
                with m.If(seen.given):
                    m.d.sync += vector.token.eq(seen.token)
                with m.Elif(better):
                    m.d.sync += vector.token.eq(Cat(lane, seen.word))
                with m.Elif(seen.first):
                    m.d.sync += vector.token.eq(0)
