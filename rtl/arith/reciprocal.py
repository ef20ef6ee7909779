"""1/x in float32: a table of 128 linear segments, and one Newton step.

::

    x -> table -> slope x position -> guess -> x * guess -> guess * error -> add, round, pack -> result
               ^                   ^        ^            ^                ^                   ^
              (registers: `stages` of these six places)

Within 0.509 ulp; exact for powers of two; falls as 1/x does. Zeros give infinities, infinities zeros, both of
their sign, as do results below 2^-126. Three multipliers, each of which fits a DSP block.

Latency: ``stages`` cycles. Throughput: one reciprocal a cycle. Back-pressure: see :mod:`rtl.parts.pipeline`.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed

from rtl.parts.float import Float32, read_table
from rtl.parts.pipeline import Pipeline, pipeline_ports, wire
from rtl.unit import Unit
from sim_models.numerics.float32 import NAN
from sim_models.numerics.tables import RECIPROCAL, reciprocal_table
from sim_models.params.arith.reciprocal import ReciprocalParams

__all__ = ["Reciprocal"]


class Reciprocal(Unit):
    """Reciprocal of float32 codes.

    Members
    -------
    enable, i_valid, o_valid: See :func:`rtl.parts.pipeline.pipeline_ports`.
    x: In(32)
        Divisor, float32 code.
    result: Out(32)
        1 / x, float32 code.
    """

    block = "reciprocal"

    enable: Signal
    i_valid: Signal
    x: Signal
    o_valid: Signal
    result: Signal

    def __init__(self, params: ReciprocalParams | None = None) -> None:
        p = params or ReciprocalParams()
        self.p = p
        super().__init__(p, pipeline_ports({"x": 32}, {"result": 32}))

    def body(self, platform: Any) -> Module:
        m = Module()
        pipe = Pipeline(m, self, 6, self.p.stages)
        shape, table = RECIPROCAL, reciprocal_table()

        x = Float32(m, self.x, "parts")
        index = x.mantissa[-shape.index_bits:]
        result_exponent = Signal(signed(9))
        m.d.comb += result_exponent.eq(253 - x.exponent)
        s = pipe.cut(base=read_table(m, table.base, shape.base_bits, index, "base"),
                     slope=read_table(m, table.slope, shape.slope_bits, index, "slope"),
                     mantissa=x.mantissa, exponent=result_exponent, sign=x.sign, zero=x.is_inf,
                     infinite=x.is_zero, nan=x.is_nan)
        rest = ("mantissa", "exponent", "sign", "zero", "infinite", "nan")

        def others() -> dict[str, Any]:
            return {name: getattr(s, name) for name in rest}

        position = s.mantissa[23 - shape.index_bits - shape.position_bits:23 - shape.index_bits]
        s = pipe.cut(base=s.base, fall=s.slope * position, **others())

        # 17 bits, from 1/2 to just below 1
        difference = wire(m, (s.base << shape.position_bits) - s.fall, "difference")
        s = pipe.cut(guess=difference[shape.position_bits + 2:shape.position_bits + 19], **others())

        s = pipe.cut(guess=s.guess, product=Cat(s.mantissa, 1) * s.guess, **others())

        # 1 - x * guess is a small number of either sign: above it all bits are alike; its last bit does not matter,
        # so that the complement serves as the negative
        error = (~s.product)[9:27].as_signed()
        s = pipe.cut(guess=s.guess, correction=s.guess * error, **others())

        # half a unit is added in the zeros of the guess
        better = Cat(Const(32, 13), s.guess) + (s.correction >> 18)
        rounded = wire(m, better[6:31], "rounded")              # 2^24 for a power of two
        exponent = wire(m, s.exponent + rounded[24], "exponent")
        flushed = s.zero | (exponent <= 0)
        body = Mux(s.infinite, 0x7F800000, Mux(flushed, 0, Cat(rounded[:23], exponent[:8])))
        s = pipe.cut(result=Mux(s.nan, NAN, Cat(body[:31], s.sign)))
        m.d.comb += self.result.eq(s.result)
        return m
