"""Rounds an exact sum, once: to float32 or FP16 (nearest, ties to even), or gives the integer of an int8 sum.

::

    sum -> magnitude -> count zeros -> shift -> round and pack -> result
                     ^              ^        ^                 ^
                    (registers: `stages` of these four places)

FP16: 65520 and above become infinity, results below 2^-14 are subnormal; a negative sum too small for that becomes
-0. Float32 has neither case: the smallest sum is 2^-48. A sum of zeros is +0, whatever the signs of its products
(IEEE 754 would give -0 if all of them were -0). A NaN in the sum, or infinities of both signs, give the one NaN
(0x7fc00000, 0x7e00); an infinity of one sign gives that infinity. An integer always fits.

Latency: ``stages`` cycles. Throughput: a sum a cycle. Back-pressure: see :mod:`rtl.parts.pipeline`.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Value

from rtl.parts.float import leading_zeros, round_nearest_even
from rtl.parts.pipeline import Pipeline, pipeline_ports, wire
from rtl.pim.bank.layouts import exact_sum
from rtl.unit import Unit
from sim_models.numerics.float32 import NAN
from sim_models.params.pim.bank.sum_rounder import SumRounderParams
from sim_models.spec.bank import ResultFormat

__all__ = ["SumRounder"]

#: places of the binary point, of the lowest bit of an FP16 subnormal and of the lowest normal FP16 number
_ONE, _HALF_UNIT, _HALF_NORMAL = 48, 24, 34


class SumRounder(Unit):
    """Rounder.

    Members
    -------
    enable, i_valid, o_valid: See :func:`rtl.parts.pipeline.pipeline_ports`.
    sum: In(exact_sum)
        The sum to be rounded.
    format: In(ResultFormat)
        INT32 for sums of int8 products, the others for those of FP16 products; no other pairs.
    result: Out(32)
        The code or integer.
    """

    block = "sum_rounder"

    enable: Any
    i_valid: Any
    sum: Any
    format: Any
    o_valid: Any
    result: Any

    def __init__(self, params: SumRounderParams | None = None) -> None:
        p = params or SumRounderParams()
        self.p = p
        super().__init__(p, pipeline_ports({"sum": exact_sum(p), "format": ResultFormat}, {"result": 32}))

    def body(self, platform: Any) -> Module:
        m = Module()
        p, value = self.p, self.sum.value
        pipe = Pipeline(m, self, 4, p.stages)
        integer = self.format == ResultFormat.INT32
        if not p.fp16:
            s = pipe.cut(result=value)
            for _ in range(3):
                s = pipe.cut(result=s.result)
            m.d.comb += self.result.eq(s.result)
            return m

        # magnitude, or the integer as it is
        negative = wire(m, value[-1] & ~integer if p.int8 else value[-1], "is_negative")
        magnitude = wire(m, (value ^ negative.replicate(len(value))).as_unsigned() + negative, "absolute")
        both = self.sum.positive & self.sum.negative
        # no sum is as far below 0 as -2^(acc_width - 1)
        width = p.acc_width - 1
        s = pipe.cut(magnitude=magnitude[:width], integer=integer, half=self.format == ResultFormat.FP16,
                     nan=self.sum.nan | both, infinite=self.sum.positive | self.sum.negative,
                     sign=Mux(self.sum.positive | self.sum.negative, self.sum.negative, negative))

        # an FP16 number is never shifted further than the lowest normal one
        zeros = wire(m, leading_zeros(m, s.magnitude, "zeros"), "zeros_above")
        limit = width - 1 - _HALF_NORMAL
        shift = wire(m, Mux(s.half & (zeros > limit), limit, zeros), "shift")
        s = pipe.cut(magnitude=s.magnitude, shift=shift, zero=s.magnitude == 0, integer=s.integer, half=s.half,
                     nan=s.nan, infinite=s.infinite, sign=s.sign)

        # the leading one on top
        number = s.magnitude
        for k, bit in enumerate(s.shift):
            number = wire(m, Mux(bit, Cat(Const(0, 1 << k), number)[:width], number), f"number_{k}")
        s = pipe.cut(top=number[width - 24 - 1:], below=number[:width - 24 - 1].any(), integer_part=s.magnitude[:32],
                     shift=s.shift, zero=s.zero, integer=s.integer, half=s.half, nan=s.nan, infinite=s.infinite,
                     sign=s.sign)

        code = Mux(s.half, self._half(m, s), self._single(m, s))
        result = Mux(s.integer, s.integer_part, code) if p.int8 else code
        s = pipe.cut(result=result[:32])
        m.d.comb += self.result.eq(s.result)
        return m

    def _single(self, m: Module, s: Any) -> Value:
        """Float32 code; no sum leaves its range."""
        kept, up = round_nearest_even(s.top, [s.below])
        # the leading one adds 1 to the exponent
        exponent = wire(m, (self.p.acc_width - 2 - _ONE + 127 - 1 - s.shift)[:8], "single_exponent")
        code = wire(m, (Cat(Const(0, 23), exponent) + kept + up)[:31], "single_code")
        body = Mux(s.infinite, 0x7F800000, Mux(s.zero, 0, code))
        return Mux(s.nan, NAN, Cat(body[:31], s.sign))

    def _half(self, m: Module, s: Any) -> Value:
        """FP16 code."""
        kept, up = round_nearest_even(s.top[13:], [s.below, s.top[:13].any()])
        exponent = wire(m, (self.p.acc_width - 2 - _HALF_NORMAL - s.shift)[:7], "half_exponent")
        code = wire(m, (Cat(Const(0, 10), exponent) + kept + up)[:17], "half_code")
        infinite = s.infinite | (code[10:] >= 31)
        return Mux(s.nan, 0x7E00, Cat(Mux(infinite, 0x7C00, Mux(s.zero, 0, code))[:15], s.sign))
