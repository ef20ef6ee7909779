"""Exact product of two FP16 or two BF16 numbers, in float32.

::

    a, b -> multiply -> normalise -> pack -> result
                     ^            ^       ^
                    (registers: `stages` of these three places)

FP16: subnormals count, and the product is exact whatever the operands (22 bits, 2^-48 to 2^32). BF16: subnormals
are zero; exact but for overflow to infinity and products below 2^-126, which are flushed. 0 x inf is NaN.

Latency: ``stages`` cycles. Throughput: one product a cycle. Back-pressure: see :mod:`rtl.parts.pipeline`.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed

from rtl.parts.float import leading_zeros, pack_float32
from rtl.parts.pipeline import Pipeline, pipeline_ports, wire
from rtl.unit import Unit
from sim_models.params.arith.exact_product import ExactProductParams

__all__ = ["ExactProduct"]


class ExactProduct(Unit):
    """Multiplier of 16-bit codes.

    Members
    -------
    enable, i_valid, o_valid: See :func:`rtl.parts.pipeline.pipeline_ports`.
    a: In(16)
        First operand, FP16 or BF16 code.
    b: In(16)
        Second operand, FP16 or BF16 code.
    result: Out(32)
        ``a b``, float32 code.
    """

    block = "exact_product"

    enable: Signal
    i_valid: Signal
    a: Signal
    b: Signal
    o_valid: Signal
    result: Signal

    def __init__(self, params: ExactProductParams | None = None) -> None:
        p = params or ExactProductParams()
        self.p = p
        super().__init__(p, pipeline_ports({"a": 16, "b": 16}, {"result": 32}))

    def body(self, platform: Any) -> Module:
        m = Module()
        pipe = Pipeline(m, self, 3, self.p.stages)
        subnormals = self.p.format == "fp16"
        fraction = 10 if subnormals else 7              # bits
        top = 31 if subnormals else 255                 # exponent of infinities and NaNs

        exponents, significands, zeros, infinities, nans = [], [], [], [], []
        for name, code in (("a", self.a), ("b", self.b)):
            exponent = code[fraction:15]
            low = wire(m, exponent == 0, f"{name}_low")
            last = wire(m, exponent == top, f"{name}_last_exponent")
            nonzero = wire(m, code[:fraction] != 0, f"{name}_has_fraction")
            exponents.append(exponent | low if subnormals else exponent)
            significands.append(Cat(code[:fraction], ~low))
            zeros.append(low & ~nonzero if subnormals else low)
            infinities.append(last & ~nonzero)
            nans.append(last & nonzero)
        zero = wire(m, zeros[0] | zeros[1], "zero")
        infinite = wire(m, infinities[0] | infinities[1], "infinite")
        # what float32's exponent is when the product's highest bit is its leading one
        bias = 127 - 2 * 15 + 1 if subnormals else 1 - 127
        exponent = Signal(signed(10))
        m.d.comb += exponent.eq(exponents[0] + exponents[1] + bias)
        s = pipe.cut(product=significands[0] * significands[1], exponent=exponent,
                     sign=self.a[15] ^ self.b[15], zero=zero, infinite=infinite,
                     nan=nans[0] | nans[1] | (zero & infinite))

        width = 2 * fraction + 2
        if subnormals:
            zeros_above = wire(m, leading_zeros(m, s.product, "zeros"), "zeros_above")
            significand = (s.product << zeros_above)[:width]
        else:
            zeros_above = ~s.product[-1]
            significand = Mux(zeros_above, s.product << 1, s.product)[:width]
        s = pipe.cut(significand=significand, exponent=(s.exponent - zeros_above)[:10].as_signed(), sign=s.sign,
                     zero=s.zero, infinite=s.infinite, nan=s.nan)

        s = pipe.cut(result=pack_float32(m, sign=s.sign, exponent=s.exponent, significand=s.significand,
                                         zero=s.zero, infinite=s.infinite, nan=s.nan))
        m.d.comb += self.result.eq(s.result)
        return m
