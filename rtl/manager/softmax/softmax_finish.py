"""Last part of the softmax unit: from the sums of a vector to a probability.

One adder, multiplier, power, reciprocal and rounding are used in turn, on a fixed schedule::

    power = 2^((chosen - anchor) log2(e))        weight = 2^((old_anchor - anchor) log2(e))
    total = sum + weight x old_sum               probability = round(power x (1 / total)), at most 1.0

Sums are cut off to 24 bits on the way.

Latency: ``finish_cycles``. Throughput: a vector in ``finish_cycles`` + 1 cycles.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.arith.exp2 import Exp2
from rtl.arith.float_adder import FloatAdder
from rtl.arith.float_multiplier import FloatMultiplier
from rtl.arith.float_to_int import FloatToInt
from rtl.arith.reciprocal import Reciprocal
from rtl.manager.softmax.layouts import softmax_result, softmax_sums
from rtl.parts.float import leading_zeros
from rtl.unit import Unit
from sim_models.params.arith.stages import LOG2_E
from sim_models.params.manager.pools.pool import H_WIDTH
from sim_models.params.manager.softmax.softmax_unit import SoftmaxUnitParams

__all__ = ["SoftmaxFinish"]

#: cycle by which the sum that was put aside has become a float32 code, and the other takes its turn
_NORMALISED = 3


class SoftmaxFinish(Unit):
    """Division of the chosen token's power by the sum of all.

    Members
    -------
    i: In(stream of softmax_sums)
    o: Out(stream of softmax_result)
    """

    block = "softmax_finish"

    i: Any
    o: Any

    def __init__(self, params: SoftmaxUnitParams | None = None) -> None:
        p = params or SoftmaxUnitParams()
        self.p = p
        super().__init__(p, {
            "i": In(stream.Signature(softmax_sums(p))), "o": Out(stream.Signature(softmax_result(p))),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        m.submodules.adder = adder = FloatAdder(p.adder)
        m.submodules.multiplier = multiplier = FloatMultiplier(p.multiplier)
        m.submodules.exp2 = exp2 = Exp2(p.exp2)
        m.submodules.reciprocal = reciprocal = Reciprocal(p.reciprocal)
        m.submodules.to_int = to_int = FloatToInt(p.to_int)

        # cycles at which the results of the schedule's steps are there
        weighs = p.power_cycles + 1                     # the weight, one behind the power
        adds = weighs + p.multiplier.stages
        inverts = adds + p.adder.stages
        scales = inverts + p.reciprocal.stages
        rounds = scales + p.multiplier.stages
        done = rounds + p.to_int.stages
        assert done == p.finish_cycles - 2
        running, now = Signal(), Signal(range(done + 1))
        sums = Signal(softmax_sums(p))
        m.d.comb += self.i.ready.eq(~running & ~self.o.valid)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [sums.eq(self.i.payload), running.eq(1), now.eq(0)]
        with m.If(running):
            m.d.sync += now.eq(now + 1)

        sum_code = self._normalise(m, sums, now >= _NORMALISED)
        old_code, power = Signal(32), Signal(32)
        with m.If(now == _NORMALISED - 1):
            m.d.sync += old_code.eq(sum_code)
        with m.If(now == weighs - 1):
            m.d.sync += power.eq(exp2.result)

        vector = sums.vector
        m.d.comb += [
            adder.a.eq(Mux(now == 0, vector.chosen, vector.old_anchor)), adder.b.eq(vector.anchor ^ (1 << 31)),
            multiplier.a.eq(adder.result), multiplier.b.eq(LOG2_E),
            exp2.x.eq(multiplier.result), reciprocal.x.eq(adder.result), to_int.value.eq(multiplier.result),
        ]
        with m.If(now == weighs):
            m.d.comb += [multiplier.a.eq(exp2.result), multiplier.b.eq(old_code)]
        with m.If(now == adds):
            m.d.comb += [adder.a.eq(multiplier.result), adder.b.eq(sum_code)]
        with m.If(now == scales):
            m.d.comb += [multiplier.a.eq(reciprocal.result), multiplier.b.eq(power)]

        out, one = self.o.payload, 1 << (H_WIDTH - 1)
        rounded = to_int.result.as_unsigned()
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(running & (now == done)):
            m.d.sync += [
                running.eq(0), self.o.valid.eq(1), out.token.eq(vector.token), out.largest.eq(vector.largest),
                out.p.eq(Mux(vector.masked, 0, Mux(rounded > one, one, rounded))), out.masked.eq(vector.masked),
                out.nan.eq(vector.nan),
            ]
        return m

    def _normalise(self, m: Module, sums: Any, second: Any) -> Any:
        """Float32 code of a sum in units of 2^15, so that what is divided by it is UQ1.15; 2 cycles."""
        width = self.p.sum_width
        word = Mux(second, sums.sum, sums.old_sum)
        scale = Mux(second, sums.scale, sums.old_scale)
        zeros, mantissa = Signal(range(width)), Signal(23)
        exponent, positive = Signal(8), Signal()
        highest = width - 1 - self.p.fraction_width - (H_WIDTH - 1)
        m.d.sync += zeros.eq(leading_zeros(m, word, "zeros"))
        shifted = (word << zeros)[:width]
        m.d.sync += [mantissa.eq(shifted[width - 24:width - 1]), exponent.eq((scale + highest) - zeros),
                     positive.eq(shifted[width - 1])]
        return Mux(positive, Cat(mantissa, exponent, Const(0, 1)), 0)
