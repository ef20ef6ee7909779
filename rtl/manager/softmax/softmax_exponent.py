"""Exponent of two of a logit: x log2(e) as a fixed-point number.

::

    code -> significand x log2(e), two parts -> add -> shift by eights -> shift by ones, sign -> whole, fraction
                                             ^      ^                  ^                      ^
                                            (registers)

The constant has 18 bits, the product is exact, and what is below 2^-20 is cut off. A negative number has the
complement of its magnitude's exponent: so the order of logits is kept and nothing carries. From 2^28 on neighbouring
logits are at least 32 apart, and all that counts of their exponents is that they are far from each other: bits 0 to
30 of the code stand for them.

Latency: ``exponent_cycles``. Throughput: a logit a cycle.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out

from rtl.parts.float import Float32
from rtl.parts.pipeline import delay, wire
from rtl.unit import Unit
from sim_models.numerics.tables import EXP2
from sim_models.params.manager.softmax.softmax_unit import (
    LARGE_EXPONENT,
    LARGE_SHIFT,
    LOG2_E_18,
    LOG2_E_FRACTION,
    WHOLE_WIDTH,
    SoftmaxUnitParams,
)

__all__ = ["SoftmaxExponent"]

#: bits of a significand that are multiplied apart: what is left has 18 bits, as a factor of a DSP block
_LOW = 6


class SoftmaxExponent(Unit):
    """Product with log2(e), and conversion to fixed point.

    Members
    -------
    code: In(32)
        A finite logit, float32 code.
    whole: Out(signed)
        The exponent before the point.
    fraction: Out(20)
        The exponent behind the point.
    """

    block = "softmax_exponent"

    code: Signal
    whole: Signal
    fraction: Signal

    def __init__(self, params: SoftmaxUnitParams | None = None) -> None:
        p = params or SoftmaxUnitParams()
        self.p = p
        super().__init__(p, {
            "code": In(32), "whole": Out(signed(WHOLE_WIDTH)), "fraction": Out(EXP2.operand_bits)})

    def body(self, platform: Any) -> Module:
        m = Module()
        point = EXP2.operand_bits
        width = WHOLE_WIDTH - 1 + point
        x = Float32(m, self.code, "x")
        # a zero is shifted out
        high = delay(m, Cat(x.mantissa[_LOW:], 1) * Const(LOG2_E_18), 1, "high")
        low = delay(m, x.mantissa[:_LOW] * Const(LOG2_E_18), 1, "low")
        product = ((high << _LOW) + low)[:24 + len(Const(LOG2_E_18))]
        # with the largest exponent below LARGE_EXPONENT the product's point is here
        highest = LARGE_EXPONENT - 1
        left = highest - 127 - 23 - LOG2_E_FRACTION + point
        distance = wire(m, highest - x.exponent, "distance")
        amount = delay(m, Mux(distance[6:8].any(), 63, distance[:6]), 1, "amount")
        large = delay(m, x.exponent >= LARGE_EXPONENT, 1, "large")
        code = delay(m, self.code[:31], 1, "code")
        sign = delay(m, x.sign & ~x.is_zero, 3, "sign")

        word = delay(m, Mux(large, Cat(Const(0, point + LARGE_SHIFT), code), Cat(Const(0, left), product)), 1, "word")
        amount = delay(m, Mux(large, 0, amount), 1, "places")
        eights = delay(m, word >> Cat(Const(0, 3), amount[3:]), 1, "eights")
        size = wire(m, eights >> delay(m, amount[:3], 1, "ones"), "size")
        assert len(size) == width
        result = delay(m, Cat(size ^ sign.replicate(width), sign), 1, "exponent")
        m.d.comb += [self.fraction.eq(result[:point]), self.whole.eq(result[point:])]
        return m
