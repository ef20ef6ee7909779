"""Power of a logit, e^x = 2^(x log2(e)): its band of exponents, its place there, and a significand.

::

    code -> SoftmaxExponent -> whole -------------------------------> band, place
                            -> fraction -> table -> slope -> add ---> significand
                                                 ^        ^       ^
                                                (registers)

The power is ``significand`` x 2^(16 band + place - 18). The table is that of :mod:`rtl.arith.exp2`.

Latency: ``power_cycles``. Throughput: a logit a cycle.
"""

from typing import Any

from amaranth.hdl import Const, Module, Signal, signed
from amaranth.lib.wiring import In, Out

from rtl.manager.softmax.softmax_exponent import SoftmaxExponent
from rtl.parts.float import read_table
from rtl.parts.pipeline import delay
from rtl.unit import Unit
from sim_models.numerics.tables import EXP2, exp2_table
from sim_models.params.manager.softmax.softmax_unit import (
    BAND_WIDTH,
    FRACTION_WIDTH,
    WHOLE_WIDTH,
    SoftmaxUnitParams,
)

__all__ = ["SoftmaxPower"]


class SoftmaxPower(Unit):
    """Power of a logit.

    Members
    -------
    code: In(32)
        A finite logit, float32 code.
    band: Out(signed)
        The exponent of two, in units of 16.
    place: Out(4)
        The exponent of two, modulo 16.
    significand: Out(19)
        From 1 to 2, in units of 2^-18.
    """

    block = "softmax_power"

    code: Signal
    band: Signal
    place: Signal
    significand: Signal

    def __init__(self, params: SoftmaxUnitParams | None = None) -> None:
        p = params or SoftmaxUnitParams()
        self.p = p
        super().__init__(p, {
            "code": In(32), "band": Out(signed(WHOLE_WIDTH - BAND_WIDTH)), "place": Out(BAND_WIDTH),
            "significand": Out(FRACTION_WIDTH + 1)})

    def body(self, platform: Any) -> Module:
        m = Module()
        m.submodules.exponent = exponent = SoftmaxExponent(self.p)
        m.d.comb += exponent.code.eq(self.code)
        table, index = exp2_table(), exponent.fraction[EXP2.position_bits:]
        base = read_table(m, [v - (1 << EXP2.base_bits) for v in table.base], EXP2.base_bits, index, "base")
        slope = read_table(m, table.slope, EXP2.slope_bits, index, "slope")
        base = delay(m, base, 2, "segment_base")
        rise = delay(m, delay(m, slope, 1, "segment_slope")
                     * delay(m, exponent.fraction[:EXP2.position_bits], 1, "position"), 1, "rise")
        # segments meet below 2: no carry
        fraction = (base + rise[EXP2.position_bits:])[EXP2.base_bits - FRACTION_WIDTH:EXP2.base_bits]
        later = self.p.power_cycles - self.p.exponent_cycles
        m.d.comb += [
            self.significand.eq(Const(1 << FRACTION_WIDTH) | delay(m, fraction, 1, "significand_fraction")),
            self.band.eq(delay(m, exponent.whole[BAND_WIDTH:], later, "power_band").as_signed()),
            self.place.eq(delay(m, exponent.whole[:BAND_WIDTH], later, "power_place")),
        ]
        return m
