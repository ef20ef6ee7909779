"""Second part of the softmax unit: powers of the logits relative to their anchor, and their sum.

::

    values - anchor -> x log2(e) -> 2^ -> align to the scale -> add the lanes -> + sum -> sums
                                                                            shift ^-----'

The sum is a fixed-point number with ``fraction_width`` bits behind the point, in units of the largest power of two
that is not above its largest term, the scale. When the scale rises, the sum is shifted to the right; what
falls out is lost, and nothing is ever multiplied, so errors do not grow with the number of maxima. Terms are cut off
at the last place of the sum. The order is that of the beats, and within one everything is exact: a sum does not
depend on when beats come.

With a new anchor the sum starts afresh and the one so far is put aside; another one before is forgotten.

Latency: ``sum_cycles``. Throughput: a beat a cycle. Everything holds without ``enable``.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from rtl.arith.exp2 import Exp2
from rtl.arith.float_adder import FloatAdder
from rtl.arith.float_multiplier import FloatMultiplier
from rtl.manager.softmax.layouts import softmax_step, softmax_sums, softmax_vector
from rtl.manager.softmax.softmax_scan import delayed
from rtl.parts.pick import pick
from rtl.parts.pipeline import wire
from rtl.unit import Unit
from sim_models.numerics.tables import EXP2
from sim_models.params.arith.stages import LOG2_E
from sim_models.params.manager.softmax.softmax_unit import SoftmaxUnitParams

__all__ = ["SoftmaxSum"]


class SoftmaxSum(Unit):
    """Sum of powers.

    Members
    -------
    enable, i_valid: In(1)
    values: In(ArrayLayout(32, lanes)), step: In(softmax_step), vector: In(softmax_vector)
        A beat as it comes from the scan.
    o_valid: Out(1)
        A vector is complete.
    sums: Out(softmax_sums)
    """

    block = "softmax_sum"

    enable: Signal
    i_valid: Signal
    values: Any
    step: Any
    vector: Any
    o_valid: Signal
    sums: Any

    def __init__(self, params: SoftmaxUnitParams | None = None) -> None:
        p = params or SoftmaxUnitParams()
        self.p = p
        super().__init__(p, {
            "enable": In(1), "i_valid": In(1), "values": In(data.ArrayLayout(32, p.lanes)),
            "step": In(softmax_step(p)), "vector": In(softmax_vector(p)), "o_valid": Out(1),
            "sums": Out(softmax_sums(p)),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        powers = [self._power(m, k) for k in range(p.lanes)]
        valid = delayed(m, self.enable, self.i_valid, p.power_cycles, "power_valid", valid=True)
        step = data.View(softmax_step(p), delayed(m, self.enable, self.step.as_value(), p.power_cycles, "step"))

        # The scale: exponent of the largest term so far. Powers rise with logits, so it is that of the largest one.
        scale = Signal(8)
        top = pick([power[23:31] for power in powers], step.lane)
        before = wire(m, Mux(step.first, 0, scale), "before")
        rises = wire(m, step.switched | (top > before), "rises")
        rise = Signal(8)
        moves = self.enable & valid
        with m.If(moves):
            m.d.sync += [scale.eq(Mux(rises, top, before)), rise.eq(Mux(rises, top - before, 0))]
        aligned = [delayed(m, self.enable, power, 1, f"power{k}") for k, power in enumerate(powers)]
        flags = Cat(step.first, step.switched, step.last)

        # Terms at the scale, then their sum
        terms = [self._align(m, power, scale, f"term{k}") for k, power in enumerate(aligned)]
        terms = [delayed(m, self.enable, term, 1, f"term{k}") for k, term in enumerate(terms)]
        total: Any = sum(terms[1:], terms[0])
        total = delayed(m, self.enable, total[:p.fraction_width + 1 + p.lane_width], 1, "total")
        first, switched, last = delayed(m, self.enable, flags, 3, "flags")
        valid = delayed(m, self.enable, valid, 3, "sum_valid", valid=True)
        rise, scale = (delayed(m, self.enable, value, 2, name) for value, name in ((rise, "rise"), (scale, "scale")))
        self._accumulate(m, valid, first, switched, last, total, rise, scale)
        return m

    def _power(self, m: Module, k: int) -> Any:
        """2^((value - anchor) log2(e)), float32."""
        p = self.p
        m.submodules[f"difference{k}"] = difference = FloatAdder(p.adder)
        m.submodules[f"product{k}"] = product = FloatMultiplier(p.multiplier)
        m.submodules[f"power{k}"] = power = Exp2(p.exp2)
        m.d.comb += [
            difference.enable.eq(self.enable), product.enable.eq(self.enable), power.enable.eq(self.enable),
            difference.a.eq(self.values[k]), difference.b.eq(self.vector.anchor ^ (1 << 31)),
            product.a.eq(difference.result), product.b.eq(LOG2_E), power.x.eq(product.result),
        ]
        return power.result

    def _align(self, m: Module, power: Any, scale: Any, name: str) -> Any:
        """A term in units of the sum's last place, cut off there."""
        bits = self.p.fraction_width
        word = Cat(Const(0, bits - EXP2.base_bits), power[23 - EXP2.base_bits:23], power[23:31] != 0)
        distance = wire(m, scale - power[23:31], f"{name}_distance")
        limit = (1 << bits.bit_length()) - 1
        amount = wire(m, Mux(distance[:8] > limit, limit, distance[:bits.bit_length()]), f"{name}_amount")
        return wire(m, word >> amount, name)

    def _accumulate(self, m: Module, valid: Any, first: Any, switched: Any, last: Any, total: Any, rise: Any,
                    scale: Any) -> None:
        """The loop of one cycle."""
        sums = Signal.like(self.sums, reset_less=True)
        width = len(sums.sum)
        limit = (1 << width.bit_length()) - 1
        amount = wire(m, Mux(rise > limit, limit, rise[:width.bit_length()]), "shift_amount")
        vector = delayed(m, self.enable, self.vector.as_value(), self.p.sum_cycles - 1, "vector")
        carried = wire(m, Mux(first | switched, 0, sums.sum >> amount), "carried")
        with m.If(self.enable):
            m.d.sync += self.o_valid.eq(valid & last)
            with m.If(valid):
                m.d.sync += [sums.sum.eq(carried + total), sums.scale.eq(scale)]
                with m.If(first):
                    m.d.sync += [sums.old_sum.eq(0), sums.old_scale.eq(0)]
                with m.Elif(switched):
                    m.d.sync += [sums.old_sum.eq(sums.sum), sums.old_scale.eq(sums.scale)]
            m.d.sync += sums.vector.eq(vector)
        m.d.comb += self.sums.eq(sums)
