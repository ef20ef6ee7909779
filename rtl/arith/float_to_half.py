"""Float32 to FP16 or BF16: round to nearest even.

::

    value -> shift what will be subnormal -> round, pack -> result
                                          ^              ^
                                         (registers: `stages` of these two places)

What is too large becomes infinity (FP16: 65520 and above), NaN becomes 0x7e00 or 0x7fc0. FP16 results below
2^-14 are subnormal; BF16 has float32's exponents and no subnormals here.

Latency: ``stages`` cycles. Throughput: one number a cycle. Back-pressure: see :mod:`rtl.parts.pipeline`.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal

from rtl.parts.float import Float32, round_nearest_even, shift_right
from rtl.parts.pipeline import Pipeline, pipeline_ports, wire
from rtl.unit import Unit
from sim_models.params.arith.float_to_half import FloatToHalfParams

__all__ = ["FloatToHalf"]


class FloatToHalf(Unit):
    """Converter from float32 codes to 16-bit codes.

    Members
    -------
    enable, i_valid, o_valid: See :func:`rtl.parts.pipeline.pipeline_ports`.
    value: In(32)
        The number, float32 code.
    result: Out(16)
        The same number, FP16 or BF16 code, rounded to nearest even.
    """

    block = "float_to_half"

    enable: Signal
    i_valid: Signal
    value: Signal
    o_valid: Signal
    result: Signal

    def __init__(self, params: FloatToHalfParams | None = None) -> None:
        p = params or FloatToHalfParams()
        self.p = p
        super().__init__(p, pipeline_ports({"value": 32}, {"result": 16}))

    def body(self, platform: Any) -> Module:
        m = Module()
        pipe = Pipeline(m, self, 2, self.p.stages)
        x = Float32(m, self.value, "x")

        if self.p.format == "bf16":
            # the exponent is part of the code that is rounded
            s = pipe.cut(code=Mux(x.is_zero, 0, self.value[15:31]), below=self.value[:15].any() & ~x.is_zero,
                         nan=x.is_nan, sign=x.sign)
            nan = 0x7FC0
            kept, up = round_nearest_even(s.code, [s.below])
        else:
            # exponent 113 is FP16's 1; further down the significand moves to the right, at most out of sight
            small = wire(m, x.exponent < 113, "small")
            distance = wire(m, 113 - x.exponent, "distance")
            shifted, lost = shift_right(
                m, x.significand, Mux(small, Mux(x.exponent < 113 - 12, 12, distance[:4]), 0), "shifted")
            large = wire(m, x.exponent > 142, "large")
            exponent = wire(m, Mux(small, 0, (x.exponent - 112)[:5]), "exponent")
            s = pipe.cut(code=Mux(large, 31 << 11, Cat(shifted[12:23], exponent)),
                         below=(shifted[:12].any() | lost) & ~large, nan=x.is_nan, sign=x.sign)
            nan = 0x7E00
            kept, up = round_nearest_even(s.code, [s.below])
        # a carry out of the fraction is the next exponent, infinity at last
        s = pipe.cut(result=Mux(s.nan, nan, Cat((kept + up)[:15], s.sign)))
        m.d.comb += self.result.eq(s.result)
        return m
