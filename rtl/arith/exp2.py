"""2^x in float32 or FP16: range reduction and a table of 128 linear segments.

::

    x -> fixed point -> sign -> table -> slope x position -> add -> round, pack -> result
                     ^       ^        ^                   ^      ^              ^
                    (registers: `stages` of these six places; float32 does not round and has but five)

Float32: within 56 ulp (relative error 2^-18); results below 2^-126 are +0. FP16: within 0.505 ulp of FP16 for
every operand, subnormal operands and results included. Both are monotone, hence never swap two operands, and
exact for integers. Overflow gives infinity, NaN gives the one NaN. e^x is 2^(x log2(e)): the factor belongs to
the multiplication that scales x anyway.

Latency: ``stages`` cycles. Throughput: one power a cycle. Back-pressure: see :mod:`rtl.parts.pipeline`.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal

from rtl.parts.float import Float32, read_table, round_nearest_even, shift_right
from rtl.parts.pipeline import Pipeline, pipeline_ports, wire
from rtl.unit import Unit
from sim_models.numerics.tables import EXP2, exp2_table
from sim_models.params.arith.exp2 import Exp2Params

__all__ = ["Exp2"]


class Exp2(Unit):
    """Power of two.

    Members
    -------
    enable, i_valid, o_valid: See :func:`rtl.parts.pipeline.pipeline_ports`.
    x: In(32) or In(16)
        Exponent, float32 or FP16 code.
    result: Out(32) or Out(16)
        2^x, code of the same format.
    """

    block = "exp2"

    enable: Signal
    i_valid: Signal
    x: Signal
    o_valid: Signal
    result: Signal

    def __init__(self, params: Exp2Params | None = None) -> None:
        p = params or Exp2Params()
        self.p = p
        super().__init__(p, pipeline_ports({"x": p.width}, {"result": p.width}))

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        pipe = Pipeline(m, self, p.cuts, p.stages)

        # |x| with a table operand's fraction bits, the rest cut off; 0 where the exponent decides the result
        s = pipe.cut(**(self._fixed32(m) if p.format == "float32" else self._fixed16(m)))

        under = s.under
        if p.format == "fp16":
            # -26 and below
            under |= s.sign & (s.size[EXP2.operand_bits + 1:] > 12)
        s = pipe.cut(fixed=Mux(s.sign, -s.size, s.size)[:len(s.size) + 1], over=s.over, under=under, nan=s.nan)

        looked_up = self._look_up(m, s)
        s = pipe.cut(**looked_up)

        rest = [name for name in looked_up if name not in ("base", "slope", "position")]
        s = pipe.cut(base=s.base, rise=s.slope * s.position, **{name: getattr(s, name) for name in rest})

        # segments meet below 2: no carry
        fraction = (s.base + s.rise[EXP2.position_bits:])[:EXP2.base_bits]
        if p.format == "float32":
            nan = Cat(Const(0, EXP2.base_bits - 1), s.nan)
            s = pipe.cut(result=Cat(Const(0, 23 - EXP2.base_bits), fraction | nan, s.exponent))
        else:
            s = pipe.cut(fraction=fraction, **{name: getattr(s, name) for name in rest})
            shifted, lost = shift_right(m, Cat(s.fraction, 1), s.distance, "shifted")
            guard = EXP2.base_bits - 11
            kept, up = round_nearest_even(Cat(shifted[guard:-1], s.exponent), [shifted[:guard].any(), lost])
            s = pipe.cut(result=(kept + up)[:15] | (s.nan << 9))
        m.d.comb += self.result.eq(s.result)
        return m

    def _fixed32(self, m: Module) -> dict[str, Any]:
        x = Float32(m, self.x, "parts")
        # at 2^6 (exponent 133) the leading one is on top; beyond are 2^7 and what is below -126 = -2^6 * 63/32
        below = x.sign & (x.exponent == 133) & (x.mantissa[18:] == 31) & (x.mantissa[:18] != 0)
        large = wire(m, (x.exponent > 133) | below, "large")
        near = wire(m, x.exponent > 133 - 28, "near")
        distance = wire(m, 133 - x.exponent, "distance")
        word = Cat(Const(0, EXP2.operand_bits + 7 - 24), x.significand)
        return {"size": word >> wire(m, Mux(near & ~large, distance[:5], 31), "amount"), "sign": x.sign,
                "over": large & ~x.sign | x.is_nan, "under": large & x.sign & ~x.is_nan, "nan": x.is_nan}

    def _fixed16(self, m: Module) -> dict[str, Any]:
        fraction, exponent, sign = self.x[:10], self.x[10:15], self.x[15]
        low = wire(m, exponent == 0, "low")
        # at 2^4 (exponent 19) the leading one is on top; positive numbers give infinity from there on
        large = wire(m, exponent > Mux(sign, 19, 18), "large")
        word = Cat(Const(0, EXP2.operand_bits + 5 - 11), fraction, ~low)
        distance = wire(m, 19 - (exponent | low), "distance")
        nan = wire(m, (exponent == 31) & (fraction != 0), "nan")
        return {"size": word >> wire(m, distance[:5] | large.replicate(5), "amount"), "sign": sign,
                "over": large & ~sign | nan, "under": large & sign & ~nan, "nan": nan}

    def _look_up(self, m: Module, s: Any) -> dict[str, Any]:
        table = exp2_table()
        position, index = s.fixed[:EXP2.position_bits], s.fixed[EXP2.position_bits:EXP2.operand_bits]
        exponent = s.fixed[EXP2.operand_bits:].as_signed()
        bias = 127 if self.p.format == "float32" else 15
        last = 2 * bias + 1
        biased = Mux(s.over, last, Mux(s.under, 0, exponent + bias))[:last.bit_length()]
        parts = {
            "base": read_table(m, [v - (1 << EXP2.base_bits) for v in table.base], EXP2.base_bits, index, "base"),
            "slope": read_table(m, table.slope, EXP2.slope_bits, index, "slope"), "position": position,
            "exponent": biased, "nan": s.nan}
        if self.p.format == "fp16":
            # a subnormal moves to the right; at 12 not even the leading one is left
            subnormal = wire(m, exponent < 1 - bias, "subnormal")
            parts["exponent"] = Mux(subnormal, 0, biased)
            parts["distance"] = Mux(s.under, 12, Mux(subnormal, 1 - bias - exponent, 0))[:4]
        return parts
