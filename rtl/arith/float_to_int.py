"""Float32 to a signed integer: round to nearest even, saturate.

::

    value -> distance -> shift -> round, sign, saturate -> result
                      ^        ^                        ^
                     (registers: `stages` of these three places)

Infinities and what is too large give the nearest integer that there is; NaN gives 0.

Latency: ``stages`` cycles. Throughput: one number a cycle. Back-pressure: see :mod:`rtl.parts.pipeline`.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed

from rtl.parts.float import Float32, round_nearest_even, shift_right
from rtl.parts.pipeline import Pipeline, pipeline_ports, wire
from rtl.unit import Unit
from sim_models.params.arith.float_to_int import FloatToIntParams

__all__ = ["FloatToInt"]


class FloatToInt(Unit):
    """Converter from float32 codes to integers.

    Members
    -------
    enable, i_valid, o_valid: See :func:`rtl.parts.pipeline.pipeline_ports`.
    value: In(32)
        The number, float32 code.
    result: Out(signed(width))
        The same number, rounded to nearest even and saturated.
    """

    block = "float_to_int"

    enable: Signal
    i_valid: Signal
    value: Signal
    o_valid: Signal
    result: Signal

    def __init__(self, params: FloatToIntParams | None = None) -> None:
        p = params or FloatToIntParams()
        self.p = p
        super().__init__(p, pipeline_ports({"value": 32}, {"result": signed(p.width)}))

    def body(self, platform: Any) -> Module:
        m = Module()
        width = self.p.width
        pipe = Pipeline(m, self, 3, self.p.stages)

        # the significand's leading one stands for 2^(width - 1), until it is shifted
        x = Float32(m, self.value, "x")
        highest = 127 + width - 1
        distance = wire(m, highest - x.exponent, "distance")
        s = pipe.cut(significand=x.significand, sign=x.sign, nan=x.is_nan, large=x.exponent > highest,
                     distance=Mux(x.exponent < highest - width - 1, width + 1, distance)[:6])

        # as many bits above the point as the integer has, and at least one below it
        below = max(24 - width, 1)
        word = Cat(Const(0, width + below - 24), s.significand)
        shifted, lost = shift_right(m, word, s.distance, "shifted")
        s = pipe.cut(kept=shifted[below - 1:], below=shifted[:below - 1].any() | lost, sign=s.sign, nan=s.nan,
                     large=s.large)

        whole, up = round_nearest_even(s.kept, [s.below])
        size = wire(m, whole + up, "size")
        limit = 1 << (width - 1)
        large = wire(m, s.large | (size >= limit), "saturates")
        result = Mux(large, Mux(s.sign, -limit, limit - 1), Mux(s.sign, -size, size))
        s = pipe.cut(result=Mux(s.nan, 0, result)[:width].as_signed())
        m.d.comb += self.result.eq(s.result)
        return m
