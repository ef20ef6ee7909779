"""FP16 or BF16 to float32, exact.

::

    value -> normalise subnormals -> pack -> result
                                  ^       ^
                                 (registers: `stages` of these two places)

FP16 subnormals are kept (they are normal in float32), BF16 subnormals become zeros, NaN becomes 0x7fc00000.

Latency: ``stages`` cycles. Throughput: one number a cycle. Back-pressure: see :mod:`rtl.parts.pipeline`.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed

from rtl.parts.float import Float32, leading_zeros, pack_float32
from rtl.parts.pipeline import Pipeline, pipeline_ports, wire
from rtl.unit import Unit
from sim_models.numerics.float32 import NAN
from sim_models.params.arith.half_to_float import HalfToFloatParams

__all__ = ["HalfToFloat"]


class HalfToFloat(Unit):
    """Converter from 16-bit codes to float32 codes.

    Members
    -------
    enable, i_valid, o_valid: See :func:`rtl.parts.pipeline.pipeline_ports`.
    value: In(16)
        The number, FP16 or BF16 code.
    result: Out(32)
        The same number, float32 code, exact.
    """

    block = "half_to_float"

    enable: Signal
    i_valid: Signal
    value: Signal
    o_valid: Signal
    result: Signal

    def __init__(self, params: HalfToFloatParams | None = None) -> None:
        p = params or HalfToFloatParams()
        self.p = p
        super().__init__(p, pipeline_ports({"value": 16}, {"result": 32}))

    def body(self, platform: Any) -> Module:
        m = Module()
        pipe = Pipeline(m, self, 2, self.p.stages)
        sign = self.value[15]
        if self.p.format == "bf16":
            x = Float32(m, Cat(Const(0, 16), self.value), "x")
            s = pipe.cut(body=Mux(x.is_zero, 0, self.value[:15]), sign=sign, nan=x.is_nan)
            result = Cat(Const(0, 16), s.body, s.sign)
        else:
            fraction, exponent = self.value[:10], self.value[10:15]
            low = wire(m, exponent == 0, "low")
            zeros = wire(m, leading_zeros(m, fraction, "zeros"), "leading")
            wide = Signal(signed(10))
            m.d.comb += wide.eq(Mux(low, 112 - zeros, exponent + 112))
            last, empty = exponent == 31, wire(m, fraction == 0, "empty")
            s = pipe.cut(significand=Mux(low, fraction << (zeros + 1), Cat(fraction, 1))[:11], exponent=wide,
                         zero=low & empty, infinite=last & empty, nan=last & ~empty, sign=sign)
            return self._finish(m, pipe, pack_float32(
                m, sign=s.sign, exponent=s.exponent, significand=s.significand, zero=s.zero,
                infinite=s.infinite), s.nan)
        return self._finish(m, pipe, result, s.nan)

    def _finish(self, m: Module, pipe: Pipeline, result: Any, nan: Any) -> Module:
        s = pipe.cut(result=Mux(nan, NAN, result))
        m.d.comb += self.result.eq(s.result)
        return m
