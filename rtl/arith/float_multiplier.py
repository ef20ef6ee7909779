"""Float32 multiplier: round to nearest even, subnormals are zero, one NaN.

::

    a, b -> 24 x 24 bits -> normalise -> round, pack -> result
                         ^            ^               ^
                        (registers: `stages` of these three places)

0 x inf is NaN. A product is flushed if it is below 2^-126 after rounding to 24 bits.

Latency: ``stages`` cycles. Throughput: one product a cycle. Back-pressure: see :mod:`rtl.parts.pipeline`.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed

from rtl.parts.float import Float32, pack_float32
from rtl.parts.pipeline import Pipeline, pipeline_ports, wire
from rtl.unit import Unit
from sim_models.params.arith.float_multiplier import FloatMultiplierParams

__all__ = ["FloatMultiplier"]


class FloatMultiplier(Unit):
    """Multiplier of float32 codes.

    Members
    -------
    enable, i_valid, o_valid: See :func:`rtl.parts.pipeline.pipeline_ports`.
    a: In(32)
        First operand, float32 code.
    b: In(32)
        Second operand, float32 code.
    result: Out(32)
        ``a b``, float32 code.
    """

    block = "float_multiplier"

    enable: Signal
    i_valid: Signal
    a: Signal
    b: Signal
    o_valid: Signal
    result: Signal

    def __init__(self, params: FloatMultiplierParams | None = None) -> None:
        p = params or FloatMultiplierParams()
        self.p = p
        super().__init__(p, pipeline_ports({"a": 32, "b": 32}, {"result": 32}))

    def body(self, platform: Any) -> Module:
        m = Module()
        pipe = Pipeline(m, self, 3, self.p.stages)

        # a zero's significand need not be 0: the result is set to zero in the end, and the multiplier's
        # operands come straight from the ports
        a, b = Float32(m, self.a, "a"), Float32(m, self.b, "b")
        zero = wire(m, a.is_zero | b.is_zero, "zero")
        infinite = wire(m, a.is_inf | b.is_inf, "infinite")
        exponent = Signal(signed(10))
        m.d.comb += exponent.eq(a.exponent + b.exponent - 127)
        s = pipe.cut(product=Cat(a.mantissa, 1) * Cat(b.mantissa, 1), exponent=exponent, sign=a.sign ^ b.sign,
                     zero=zero, infinite=infinite, nan=a.is_nan | b.is_nan | (zero & infinite))

        high = s.product[47]
        s = pipe.cut(significand=Mux(high, s.product[23:], s.product[22:47]),
                     below=s.product[:22].any() | (high & s.product[22]),
                     exponent=(s.exponent + high)[:10].as_signed(), sign=s.sign, zero=s.zero,
                     infinite=s.infinite, nan=s.nan)

        s = pipe.cut(result=pack_float32(
            m, sign=s.sign, exponent=s.exponent, significand=s.significand, below=[s.below], zero=s.zero,
            infinite=s.infinite, nan=s.nan))
        m.d.comb += self.result.eq(s.result)
        return m
