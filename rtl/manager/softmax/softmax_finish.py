"""Last part of the softmax unit: from the sums of a vector to a probability.

::

    sums -> in order of bands -> join -> normalise -> reciprocal -> x power -> shift -> round -> probability
    chosen -> SoftmaxPower -> distance from the top -> delay ---------^

The sums of the bands are joined in units of the last place of the band below the top, and cut off to 24 bits. The
product with their reciprocal is exact, and rounded once; 1.0 is the most.

Latency: ``finish_cycles`` from the sums. Throughput: a vector a cycle.
"""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out

from rtl.arith.reciprocal import Reciprocal
from rtl.manager.softmax.layouts import softmax_sums
from rtl.manager.softmax.softmax_power import SoftmaxPower
from rtl.parts.float import leading_zeros
from rtl.parts.pipeline import delay, wire
from rtl.unit import Unit
from sim_models.params.manager.pools.pool import H_WIDTH
from sim_models.params.manager.softmax.softmax_unit import (
    BAND_WIDTH,
    BANDS,
    FRACTION_WIDTH,
    WHOLE_WIDTH,
    SoftmaxUnitParams,
)

__all__ = ["SoftmaxFinish"]

#: bits of the reciprocal's significand that are multiplied apart
_LOW = 6
#: float32 exponent of a power at place 0 of the top band, in units of 2^-15 of the last place of the band below
_POWER_EXPONENT = 127 + FRACTION_WIDTH + (1 << BAND_WIDTH) + H_WIDTH - 1
#: sum of the exponents of a power and a reciprocal whose significands stand for 1.0 and more
_ONE_EXPONENT = 2 * 127 + H_WIDTH - 1


class SoftmaxFinish(Unit):
    """Division of the chosen token's power by the sum of all.

    Members
    -------
    chosen: In(32)
        Logit of the wanted token, float32 code.
    counts: In(1)
        There is one; both as in the vector, ``maximum_cycles`` behind its last beat.
    top: In(signed)
        Band of the largest logit, ``band_cycles`` behind the last beat.
    i_valid: In(1)
        There are sums of a vector.
    sums: In(softmax_sums)
        ``sum_cycles`` behind ``top``.
    o_valid: Out(1)
        There is a probability.
    probability: Out(16)
        Probability, UQ1.15; 0 without a wanted token.
    """

    block = "softmax_finish"

    chosen: Signal
    counts: Signal
    top: Signal
    i_valid: Signal
    sums: Any
    o_valid: Signal
    probability: Signal

    def __init__(self, params: SoftmaxUnitParams | None = None) -> None:
        p = params or SoftmaxUnitParams()
        self.p = p
        super().__init__(p, {
            "chosen": In(32), "counts": In(1), "top": In(signed(WHOLE_WIDTH - BAND_WIDTH)), "i_valid": In(1),
            "sums": In(softmax_sums(p)), "o_valid": Out(1), "probability": Out(H_WIDTH),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        m.submodules.reciprocal = reciprocal = Reciprocal(p.reciprocal)
        m.d.comb += [
            reciprocal.x.eq(self._join(m)),
            self.o_valid.eq(delay(m, self.i_valid, p.finish_cycles, "done", valid=True)),
        ]
        significand, exponent, near = self._power(m, p.total_cycles + p.reciprocal.stages)
        inverse = Cat(reciprocal.result[:23], 1)

        # the product in three parts, since a factor of a DSP block has 18 bits; how far it is from 1.0
        high = delay(m, inverse[_LOW:] * significand[:FRACTION_WIDTH], 1, "high")
        low = delay(m, inverse[:_LOW] * significand[:FRACTION_WIDTH], 1, "low")
        inverse = delay(m, inverse, 2, "inverse")
        below = delay(m, (_ONE_EXPONENT - exponent) - reciprocal.result[23:31], 1, "below")
        near = delay(m, near, 1, "is_near")
        fraction = delay(m, (high << _LOW) + low, 1, "fraction")
        amount = delay(m, Mux(near & ~below[5:].any(), below[:5], 31), 1, "amount")
        product = delay(m, ((inverse << FRACTION_WIDTH) + fraction)[:24 + FRACTION_WIDTH + 1], 1, "product")
        # twice the probability in UQ1.15, cut off, then rounded
        twice = delay(m, product[-H_WIDTH - 2:] >> delay(m, amount, 1, "places"), 1, "twice")
        rounded, one = wire(m, (twice + 1)[1:], "rounded"), 1 << (H_WIDTH - 1)
        m.d.comb += self.probability.eq(delay(m, Mux(rounded > one, one, rounded)[:H_WIDTH], 1, "probability"))
        return m

    def _join(self, m: Module) -> Any:
        """Float32 code of the sum of all bands, cut off to 24 bits; ``total_cycles``."""
        band = 1 << BAND_WIDTH
        words = Array(self.sums.bands[k] for k in range(BANDS))
        one, two, three, four = (delay(m, words[(self.sums.top - k)[:2]], 1, f"band{k}") for k in range(BANDS))
        upper = delay(m, (one << band) + two, 1, "upper")
        lower = delay(m, three[band:] + four[2 * band:], 1, "lower")
        total = delay(m, (upper + lower)[:self.p.total_width], 1, "total")
        # zeros above the leading one, first by bytes and then by bits
        width = -(-len(total) // 8) * 8
        total = Cat(Const(0, width - len(total)), total)
        used = delay(m, Cat(total[at:at + 8].any() for at in range(0, width, 8)), 1, "used_bytes")
        eights = delay(m, leading_zeros(m, used, "zero_bytes"), 1, "zero_bytes")
        total = delay(m, delay(m, total, 2, "counted") << Cat(Const(0, 3), eights), 1, "coarse")[:width]
        zeros = delay(m, leading_zeros(m, total[-8:], "zero_bits"), 1, "zero_bits")
        shifted = delay(m, (delay(m, total, 1, "fine") << zeros)[:width], 1, "shifted")
        # the padding below is of no account
        highest = 127 + self.p.total_width - 1
        exponent = delay(m, delay(m, highest - Cat(Const(0, 3), eights), 2, "coarse_exponent") - zeros, 1, "exponent")
        return Cat(shifted[-24:-1], exponent[:8], Const(0, 1))

    def _power(self, m: Module, wait: int) -> tuple[Any, Any, Any]:
        """Significand and exponent of the wanted token's power, when it is needed, and whether it counts.

        The exponent is float32's, in units of 2^-15 of the joined sums; what is below all bands does not count.
        """
        p = self.p
        m.submodules.power = power = SoftmaxPower(p)
        m.d.comb += power.code.eq(self.chosen)
        # the power comes so many cycles behind the top
        behind = p.maximum_cycles + p.power_cycles - p.band_cycles
        top = delay(m, self.top, behind, "late_top")
        counts = delay(m, self.counts, p.power_cycles, "power_counts")
        distance = delay(m, (top.as_signed() - power.band)[:len(self.top)], 1, "distance")
        near = delay(m, counts, 1, "near_counts") & ~distance[2:].any()
        # a place is a unit of the exponent, a band 16 of them: nothing carries
        lowest = _POWER_EXPONENT - 3 * (1 << BAND_WIDTH)
        assert lowest % (1 << BAND_WIDTH) == 0
        exponent = Cat(delay(m, power.place, 1, "exponent_place"),
                       ((lowest >> BAND_WIDTH) + 3 - distance[:2])[:8 - BAND_WIDTH])
        later = delay(m, Cat(delay(m, power.significand, 1, "power_significand"), exponent, near),
                      p.sum_cycles - behind + wait - 1, "power_code")
        return later[:FRACTION_WIDTH + 1], later[FRACTION_WIDTH + 1:-1], later[-1]
