"""Second part of the softmax unit: powers of the logits, and their sums by bands of exponents.

::

    values -> SoftmaxPower -> place in the band -> one of four sums -> add the lanes -> + sums -> sums
                                  bands -----------^                            clear ---^

A band is 16 exponents of two. There are four sums, of the band of the largest logit so far and the three below it:
band b goes to sum b mod 4. When the largest logit rises to another band, the sums of the bands that fall out, more
than 2^48 below the largest power, start afresh for the new ones. A term is an integer in units of its band and enters
its sum whole or not at all, so nothing is rounded, nothing is shifted, and sums depend on neither the order of the
logits nor the beats they come in.

Latency: ``power_cycles`` to the place in the band, which meets ``bands``; ``sum_cycles`` from there. Throughput: a
beat a cycle.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from rtl.manager.softmax.layouts import softmax_bands, softmax_sums
from rtl.manager.softmax.softmax_power import SoftmaxPower
from rtl.parts.pipeline import delay, wire
from rtl.unit import Unit
from sim_models.params.manager.softmax.softmax_unit import BANDS, SoftmaxUnitParams

__all__ = ["SoftmaxSum"]


class SoftmaxSum(Unit):
    """Sums of powers.

    Members
    -------
    values: In(ArrayLayout(32, lanes)), present: In(lanes), bands_valid: In(1), bands: In(softmax_bands)
        A beat as it comes from the scan.
    o_valid: Out(1)
        A vector is complete.
    sums: Out(softmax_sums)
    """

    block = "softmax_sum"

    values: Any
    present: Signal
    bands_valid: Signal
    bands: Any
    o_valid: Signal
    sums: Any

    def __init__(self, params: SoftmaxUnitParams | None = None) -> None:
        p = params or SoftmaxUnitParams()
        self.p = p
        super().__init__(p, {
            "values": In(data.ArrayLayout(32, p.lanes)), "present": In(p.lanes), "bands_valid": In(1),
            "bands": In(softmax_bands()), "o_valid": Out(1), "sums": Out(softmax_sums(p)),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p, bands = self.p, self.bands
        # Each term in its band, and for which sum it is
        terms, into = [], []
        for k in range(p.lanes):
            m.submodules[f"power{k}"] = power = SoftmaxPower(p)
            m.d.comb += power.code.eq(self.values[k])
            counts = wire(m, self.present[k] & (power.band > bands.limit), f"counts{k}")
            terms.append(delay(m, (power.significand << power.place)[:p.term_width], 1, f"term{k}"))
            into.append([delay(m, counts & (power.band[:2] == band), 1, f"into{k}_{band}") for band in range(BANDS)])

        totals = [self._add(m, [Mux(to[band], term, 0) for term, to in zip(terms, into, strict=True)], band)
                  for band in range(BANDS)]
        # a sum starts afresh if its band is among those by which the top rose
        afresh = delay(m, bands.first | bands.rise[2:].any(), 1, "afresh")
        rise = delay(m, bands.rise[:2], 1, "rise")
        top = delay(m, bands.top[:2], 1, "top")
        clear = [delay(m, afresh | ((top - band)[:2] < rise), p.sum_cycles - 2, f"clear{band}")
                 for band in range(BANDS)]
        top = delay(m, top, p.sum_cycles - 2, "sum_top")
        last = delay(m, bands.last, p.sum_cycles - 1, "last")
        valid = delay(m, self.bands_valid, p.sum_cycles - 1, "valid", valid=True)

        # The loop of one cycle
        sums = Signal(softmax_sums(p), reset_less=True)
        m.d.sync += [self.o_valid.eq(valid & last), sums.top.eq(top)]
        with m.If(valid):
            m.d.sync += [sums.bands[band].eq(Mux(clear[band], 0, sums.bands[band]) + totals[band])
                         for band in range(BANDS)]
        m.d.comb += self.sums.eq(sums)
        return m

    def _add(self, m: Module, terms: list[Any], band: int) -> Any:
        """Sum of the lanes, a cycle a level of the tree; at least one."""
        level = 0
        while True:
            if len(terms) > 1:
                terms = [a + b for a, b in zip(terms[::2], terms[1::2], strict=True)]
            terms = [delay(m, term, 1, f"sum{band}_{level}_{k}") for k, term in enumerate(terms)]
            level += 1
            if len(terms) == 1:
                return terms[0]
