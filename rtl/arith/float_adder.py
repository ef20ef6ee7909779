"""Float32 adder: round to nearest even, subnormals are zero, one NaN.

::

    a, b -> larger and smaller -> align -> add or subtract -> count zeros -> shift -> round, pack -> result
                              ^         ^                  ^              ^        ^               ^
                             (registers: `stages` of these six places)

x + (-x) is +0, and -0 only comes from two of them; inf - inf is NaN.

Latency: ``stages`` cycles. Throughput: one sum a cycle. Back-pressure: see :mod:`rtl.parts.pipeline`.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal

from rtl.parts.float import Float32, leading_zeros, pack_float32, shift_right
from rtl.parts.pipeline import Pipeline, pipeline_ports, wire
from rtl.unit import Unit
from sim_models.params.arith.float_adder import FloatAdderParams

__all__ = ["FloatAdder"]


class FloatAdder(Unit):
    """Adder of float32 codes.

    Members
    -------
    enable, i_valid, o_valid: See :func:`rtl.parts.pipeline.pipeline_ports`.
    a: In(32)
        First operand, float32 code.
    b: In(32)
        Second operand, float32 code.
    result: Out(32)
        ``a + b``, float32 code; for a difference the parent inverts bit 31 of ``b``.
    """

    block = "float_adder"

    enable: Signal
    i_valid: Signal
    a: Signal
    b: Signal
    o_valid: Signal
    result: Signal

    def __init__(self, params: FloatAdderParams | None = None) -> None:
        p = params or FloatAdderParams()
        self.p = p
        super().__init__(p, pipeline_ports({"a": 32, "b": 32}, {"result": 32}))

    def body(self, platform: Any) -> Module:
        m = Module()
        pipe = Pipeline(m, self, 6, self.p.stages)

        # larger and smaller by magnitude
        a, b = Float32(m, self.a, "a"), Float32(m, self.b, "b")
        swap = wire(m, self.a[:31] < self.b[:31], "swap")
        subtract = wire(m, a.sign ^ b.sign, "subtract")
        exponent = wire(m, Mux(swap, b.exponent, a.exponent), "exponent")
        distance = wire(m, exponent - Mux(swap, a.exponent, b.exponent), "distance")
        s = pipe.cut(
            large=Mux(swap, b.significand, a.significand), small=Mux(swap, a.significand, b.significand),
            # beyond 26 places all that is left of the smaller number is that it is there
            exponent=exponent, distance=Mux(distance[:8] > 26, 26, distance[:5]), subtract=subtract,
            sign=Mux(swap, b.sign, a.sign), infinite=a.is_inf | b.is_inf,
            nan=a.is_nan | b.is_nan | (a.is_inf & b.is_inf & subtract))

        # two bits below the last place and one for everything further down
        small, lost = shift_right(m, Cat(Const(0, 2), s.small), s.distance, "aligned")
        s = pipe.cut(large=s.large, small=Cat(lost, small), exponent=s.exponent, subtract=s.subtract,
                     sign=s.sign, infinite=s.infinite, nan=s.nan)

        large = Cat(Const(0, 3), s.large)
        flip = s.subtract
        s = pipe.cut(total=(large + (s.small ^ flip.replicate(27)) + flip)[:28] & ~Cat(Const(0, 27), flip),
                     exponent=s.exponent, same=~flip, sign=s.sign, infinite=s.infinite, nan=s.nan)

        s = pipe.cut(zeros=leading_zeros(m, s.total, "zeros"), total=s.total, exponent=s.exponent, same=s.same,
                     sign=s.sign, infinite=s.infinite, nan=s.nan)

        # two zeros of one sign keep it, every other sum of zero is +0
        zero = wire(m, s.total == 0, "zero")
        s = pipe.cut(significand=(s.total << s.zeros)[:28], exponent=(s.exponent + 1 - s.zeros).as_signed(),
                     zero=zero, sign=s.sign & (s.same | ~zero), infinite=s.infinite, nan=s.nan)

        s = pipe.cut(result=pack_float32(
            m, sign=s.sign, exponent=s.exponent, significand=s.significand[3:], below=s.significand[:3],
            zero=s.zero, infinite=s.infinite, nan=s.nan))
        m.d.comb += self.result.eq(s.result)
        return m
