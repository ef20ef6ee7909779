"""First part of the softmax unit: masks logits, finds the largest of a vector and the band of its power.

::

    beat -> masks -> maximum of the lanes -> compare with the largest so far -> SoftmaxExponent -> limit, clear, slot
                 |                             ^                            |
                 +-> logit of the given token -'                            '-> vector
                 '-> delay -> values, present

NaN and -inf count as masked, +inf as the largest finite number. The only loops are the comparison with the largest
logit so far and the number of the beat; the band follows from that logit.

Latency: ``maximum_cycles`` to the vector, ``band_cycles`` to the band. Throughput: a beat a cycle.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from rtl.arith.float_maximum import FloatMaximum
from rtl.manager.softmax.layouts import logits_beat, softmax_bands, softmax_vector
from rtl.manager.softmax.softmax_exponent import SoftmaxExponent
from rtl.parts.float import Float32, order_key
from rtl.parts.pick import pick
from rtl.parts.pipeline import delay, wire
from rtl.unit import Unit
from sim_models.params.manager.softmax.softmax_unit import BAND_WIDTH, BANDS, SoftmaxUnitParams

__all__ = ["SoftmaxScan"]

_LARGEST = 0x7F7FFFFF
#: key of the lowest finite number in the order of float32 codes
_LOWEST_KEY = 0x00800000


class SoftmaxScan(Unit):
    """Largest logit so far, and what is known of the vector from it.

    Members
    -------
    i_valid: In(1)
        There is a beat.
    beat: In(logits_beat)
    values: Out(ArrayLayout(32, lanes)), present: Out(lanes)
        The logits of a beat and which of them count, so that their powers meet its ``bands``.
    o_valid, o_last: Out(1)
        There is a ``vector`` that includes another beat; its last one.
    vector: Out(softmax_vector)
        What is known after this beat, ``maximum_cycles`` behind it.
    bands_valid: Out(1)
        There are ``bands`` of a beat.
    bands: Out(softmax_bands)
        ``band_cycles`` behind the beat.
    """

    block = "softmax_scan"

    i_valid: Signal
    beat: Any
    values: Any
    present: Signal
    o_valid: Signal
    o_last: Signal
    vector: Any
    bands_valid: Signal
    bands: Any

    def __init__(self, params: SoftmaxUnitParams | None = None) -> None:
        p = params or SoftmaxUnitParams()
        self.p = p
        super().__init__(p, {
            "i_valid": In(1), "beat": In(logits_beat(p)),
            "values": Out(data.ArrayLayout(32, p.lanes)), "present": Out(p.lanes), "o_valid": Out(1),
            "o_last": Out(1), "vector": Out(softmax_vector(p)), "bands_valid": Out(1), "bands": Out(softmax_bands()),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        m.submodules.maximum = maximum = FloatMaximum(p.maximum)
        valid, beat = self._mask(m)
        m.d.comb += [maximum.i_valid.eq(valid), maximum.values.eq(beat["values"]), maximum.present.eq(beat.present)]
        stages = p.maximum.stages
        ahead = p.band_cycles - p.power_cycles - 1
        for k in range(p.lanes):
            m.d.comb += self.values[k].eq(delay(m, beat["values"][k], ahead, f"value{k}"))
        m.d.comb += self.present.eq(delay(m, beat.present, p.band_cycles - 1, "powers_present"))

        # What is known of a beat without the others; a given token's logit waits for the maximum
        lane = beat.token[:p.lane_width]
        own = data.View(self._own(), delay(m, Cat(
            beat.first, beat.last, beat.given, beat.token, beat.word, beat.nans.any(),
            (beat.token[p.lane_width:] == beat.word) & pick(list(beat.present), lane),
            pick([beat["values"][k] for k in range(p.lanes)], lane)), stages + 2, "own"))
        number = delay(m, maximum.number, 1, "number")
        key = delay(m, order_key(m, number, "number"), 1, "key")
        found = delay(m, Cat(maximum.found, maximum.number, maximum.index), 2, "found")
        valid = delay(m, maximum.o_valid, 2, "found_valid", valid=True)
        best = self._compare(m, valid, found, key, own)
        self._find_band(m, best)
        return m

    def _own(self) -> data.StructLayout:
        """What is known of a beat beside its largest logit."""
        p = self.p
        return data.StructLayout({
            "first": 1, "last": 1, "given": 1, "token": p.token_width, "word": p.token_width - p.lane_width, "nan": 1,
            "hit": 1, "chosen": 32})

    def _mask(self, m: Module) -> tuple[Any, Any]:
        """Masks, and the vector's beats counted; 1 cycle."""
        p, beat = self.p, self.beat
        out = Signal(data.StructLayout({
            "values": data.ArrayLayout(32, p.lanes), "present": p.lanes, "nans": p.lanes, "first": 1, "last": 1,
            "given": 1, "token": p.token_width, "word": p.token_width - p.lane_width}), name="masked",
            reset_less=True)
        fresh, word, valid = Signal(init=1), Signal(p.token_width - p.lane_width), Signal()
        m.d.sync += valid.eq(self.i_valid)
        with m.If(self.i_valid):
            m.d.sync += [fresh.eq(beat.last), word.eq(Mux(beat.last, 0, word + 1))]
        for k in range(p.lanes):
            x = Float32(m, beat.data[k], f"lane{k}")
            m.d.sync += [
                out["values"][k].eq(Mux(x.is_inf, Cat(Const(_LARGEST, 31), x.sign), beat.data[k])),
                out.present[k].eq(beat.keep[k] & ~x.is_nan & ~(x.is_inf & x.sign)),
                out.nans[k].eq(beat.keep[k] & x.is_nan),
            ]
        m.d.sync += [out.first.eq(fresh), out.last.eq(beat.last), out.given.eq(beat.given), out.token.eq(beat.token),
                     out.word.eq(word)]
        return valid, out

    def _compare(self, m: Module, valid: Any, found_: Any, key: Any, own: Any) -> Any:
        """The loop of one cycle: the largest logit of all beats so far; its key."""
        vector = self.vector
        found, number, lane = found_[0], found_[1:33], found_[33:]
        best_key, known, last = Signal(32, reset_less=True), Signal(), Signal(reset_less=True)
        kept = wire(m, known & ~own.first, "kept")
        better = wire(m, found & (~kept | (key > best_key)), "better")
        token = Cat(lane[:self.p.lane_width], own.word)
        state = Signal(softmax_vector(self.p), reset_less=True)
        m.d.sync += [self.o_valid.eq(valid), last.eq(own.last)]
        m.d.comb += [vector.eq(state), self.o_last.eq(last)]
        with m.If(valid):
            m.d.sync += [known.eq(kept | found), state.masked.eq(~(kept | found)),
                         state.nan.eq(own.nan | (state.nan & ~own.first))]
            with m.If(better):
                m.d.sync += [best_key.eq(key), state.largest.eq(token)]
            with m.Elif(own.first):
                # as low as can be, until there is one
                m.d.sync += [best_key.eq(_LOWEST_KEY), state.largest.eq(0)]
            with m.If(Mux(own.given, own.hit, better)):
                m.d.sync += [state.chosen.eq(Mux(own.given, own.chosen, number)), state.counts.eq(1)]
            with m.Elif(own.first):
                m.d.sync += state.counts.eq(0)
            with m.If(own.given):
                m.d.sync += state.token.eq(own.token)
            with m.Elif(better):
                m.d.sync += state.token.eq(token)
            with m.Elif(own.first):
                m.d.sync += state.token.eq(0)
        first = Signal(reset_less=True)
        m.d.sync += first.eq(own.first)
        return best_key, first, last

    def _find_band(self, m: Module, best: Any) -> None:
        """The band of the largest logit so far, and which sums it makes start afresh."""
        p, bands = self.p, self.bands
        key, first, last = best
        m.submodules.exponent = exponent = SoftmaxExponent(p)
        # the key of a number is its code with the sign, or all bits, inverted
        m.d.comb += exponent.code.eq(Cat(key[:31] ^ (~key[31]).replicate(31), ~key[31]))
        first = delay(m, first, p.exponent_cycles, "band_first")
        last = delay(m, last, p.exponent_cycles, "band_last")
        valid = delay(m, self.o_valid, p.exponent_cycles, "band_valid", valid=True)
        band = wire(m, exponent.whole[BAND_WIDTH:].as_signed(), "band")
        before = Signal.like(band, reset_less=True)
        with m.If(valid):
            m.d.sync += before.eq(band)
        state = Signal(softmax_bands(), reset_less=True)
        m.d.sync += [
            self.bands_valid.eq(valid), state.last.eq(last), state.top.eq(band), state.limit.eq(band - BANDS),
            state.first.eq(first), state.rise.eq(band - before),
        ]
        m.d.comb += bands.eq(state)
