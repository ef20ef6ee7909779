"""A signed integer to float32: round to nearest even.

::

    value -> size -> normalise -> round, pack -> result
                  ^            ^              ^
                 (registers: `stages` of these three places)

Exact up to 25 bits; 0 gives +0.

Latency: ``stages`` cycles. Throughput: one number a cycle. Back-pressure: see :mod:`rtl.parts.pipeline`.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed

from rtl.parts.float import leading_zeros, pack_float32
from rtl.parts.pipeline import Pipeline, pipeline_ports, wire
from rtl.unit import Unit
from sim_models.params.arith.int_to_float import IntToFloatParams

__all__ = ["IntToFloat"]


class IntToFloat(Unit):
    """Converter from integers to float32 codes.

    Members
    -------
    enable, i_valid, o_valid: See :func:`rtl.parts.pipeline.pipeline_ports`.
    value: In(signed(width))
        The number, an integer.
    result: Out(32)
        The same number, float32 code, rounded to nearest even.
    """

    block = "int_to_float"

    enable: Signal
    i_valid: Signal
    value: Signal
    o_valid: Signal
    result: Signal

    def __init__(self, params: IntToFloatParams | None = None) -> None:
        p = params or IntToFloatParams()
        self.p = p
        super().__init__(p, pipeline_ports({"value": signed(p.width)}, {"result": 32}))

    def body(self, platform: Any) -> Module:
        m = Module()
        width = self.p.width
        pipe = Pipeline(m, self, 3, self.p.stages)

        sign = self.value[-1]
        s = pipe.cut(size=Mux(sign, -self.value, self.value)[:width], sign=sign)

        zeros = wire(m, leading_zeros(m, s.size, "zeros"), "leading")
        exponent = Signal(signed(10))
        m.d.comb += exponent.eq(127 + width - 1 - zeros)
        s = pipe.cut(size=(s.size << zeros)[:width], zero=s.size == 0, exponent=exponent, sign=s.sign)

        below = [s.size[:width - 25].any()] if width > 25 else []
        significand = s.size[width - 25:] if width > 25 else Cat(Const(0, 25 - width), s.size)
        s = pipe.cut(result=pack_float32(m, sign=s.sign, exponent=s.exponent, significand=significand,
                                         below=below, zero=s.zero))
        m.d.comb += self.result.eq(s.result)
        return m
