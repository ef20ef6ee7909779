"""1/sqrt(x) in float32: a table of 2 x 64 linear segments, and one Newton step.

::

    x -> table -> slope x position -> guess -> x * guess -> round = root -> root * guess
               ^                   ^        ^            ^               ^               ^

      -> guess * error -> add, round, pack -> result
                       ^                   ^
        (registers: `stages` of these eight places)

Within 0.627 ulp; exact for powers of four. +0 gives infinity, -0 minus infinity, +infinity +0; negative numbers
and NaN give NaN. Four multipliers, each of which fits a DSP block.

Latency: ``stages`` cycles. Throughput: one root a cycle. Back-pressure: see :mod:`rtl.parts.pipeline`.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed

from rtl.parts.float import Float32, read_table
from rtl.parts.pipeline import Pipeline, pipeline_ports, wire
from rtl.unit import Unit
from sim_models.numerics.float32 import NAN
from sim_models.numerics.tables import RSQRT, rsqrt_table
from sim_models.params.arith.reciprocal_sqrt import ReciprocalSqrtParams

__all__ = ["ReciprocalSqrt"]


class ReciprocalSqrt(Unit):
    """Reciprocal square root of float32 codes.

    Members
    -------
    enable, i_valid, o_valid: See :func:`rtl.parts.pipeline.pipeline_ports`.
    x: In(32)
        Radicand, float32 code.
    result: Out(32)
        1 / sqrt(x), float32 code.
    """

    block = "reciprocal_sqrt"

    enable: Signal
    i_valid: Signal
    x: Signal
    o_valid: Signal
    result: Signal

    def __init__(self, params: ReciprocalSqrtParams | None = None) -> None:
        p = params or ReciprocalSqrtParams()
        self.p = p
        super().__init__(p, pipeline_ports({"x": 32}, {"result": 32}))

    def body(self, platform: Any) -> Module:
        m = Module()
        pipe = Pipeline(m, self, 8, self.p.stages)
        shape, table = RSQRT, rsqrt_table()

        # an odd exponent (biased: an even one) lends its one to the significand, which is from 1 to 4
        x = Float32(m, self.x, "parts")
        odd = ~x.exponent[0]
        index = Cat(x.mantissa[-(shape.index_bits - 1):], odd)
        halved = Signal(signed(9))
        m.d.comb += halved.eq(126 - ((x.exponent - 127) >> 1))
        s = pipe.cut(base=read_table(m, table.base, shape.base_bits, index, "base"),
                     slope=read_table(m, table.slope, shape.slope_bits, index, "slope"),
                     mantissa=x.mantissa, odd=odd, exponent=halved[:8], sign=x.sign, zero=x.is_inf,
                     infinite=x.is_zero, nan=x.is_nan | (x.sign & ~x.is_zero))
        rest = ("exponent", "sign", "zero", "infinite", "nan")

        def others(*more: str) -> dict[str, Any]:
            return {name: getattr(s, name) for name in (*more, *rest)}

        high = 23 - (shape.index_bits - 1)
        s = pipe.cut(base=s.base, fall=s.slope * s.mantissa[high - shape.position_bits:high],
                     **others("mantissa", "odd"))

        # 17 bits, from 1/2 to just below 1
        difference = wire(m, (s.base << shape.position_bits) - s.fall, "difference")
        s = pipe.cut(guess=difference[shape.position_bits + 2:shape.position_bits + 19],
                     **others("mantissa", "odd"))

        significand = Mux(s.odd, Cat(0, s.mantissa, 1), Cat(s.mantissa, 1))
        s = pipe.cut(root=significand * s.guess, **others("guess"))

        s = pipe.cut(root=(s.root + (1 << 14))[15:41], **others("guess"))

        s = pipe.cut(product=s.root * s.guess, **others("guess"))

        # 1 - root * guess is a small number of either sign: above it all bits are alike; its last bit does not
        # matter, so that the complement serves as the negative
        error = (~s.product)[11:29].as_signed()
        s = pipe.cut(correction=s.guess * error, **others("guess"))

        # half a unit is added in the zeros of the guess
        better = Cat(Const(32, 13), s.guess) + (s.correction >> 19)
        rounded = wire(m, better[6:31], "rounded")              # 2^24 for a power of four
        code = Cat(rounded[:23], (s.exponent + rounded[24])[:8])
        body = Mux(s.infinite, 0x7F800000, Mux(s.zero, 0, code))
        s = pipe.cut(result=Mux(s.nan, NAN, Cat(body[:31], s.sign & s.infinite)))
        m.d.comb += self.result.eq(s.result)
        return m
