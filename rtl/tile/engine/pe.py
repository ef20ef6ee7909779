"""One processing element: a multiply-accumulate that serves both modes of the array (SPECTRA 2.2).

::

                 above_weight  above_sum
                      |            |
     bank_weight --> mux           |
                      |            |
                   weight --+      |
                            |      |
     activation -----------(x)     |
                            |      |
                         product   |
                            |      |
                           (+) <- mux <-+
                            |           |
                           sum ---------+

Systolic (output-stationary): the weight of the PE above; the sum adds to itself. It is never cleared: the array's
collector subtracts what it was when the tile began, exact modulo 2^acc_width. Vector-lane: the PE's own bank weight;
the product is added to the sum of the PE above. ``family`` names the multiplier block that the PE is written in.

Latency: 2 cycles from ``weight`` to ``sum`` and from ``activation``, 3 from one that the block registers. Throughput:
one product a cycle.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out

from rtl.primitives.pe_multiplier import PEMultiplier
from rtl.primitives.pe_multiply_add import PEMultiplyAdd, pe_ports
from rtl.unit import Unit
from sim_models.params.tile.engine.pe import DSP48_FAMILIES, PEParams

__all__ = ["PE"]


class PE(Unit):
    """Processing element.

    With the family ``generic`` it is plain Verilog for any device. With ``ecp5`` the multiplier block of Lattice
    registers activation, weight and product. With ``xc7`` and ``xcup`` a DSP48 of AMD holds the whole PE but the
    weight's register for the PE below, and takes the second mode without logic beside it.

    Members
    -------
    activation: In(signed(operand_width))
        Generic: registered outside, pairs with the current ``weight``. Other families: pairs with the next one.
    above_weight: In(signed(operand_width))
        Next weight in systolic mode.
    bank_weight: In(signed(operand_width))
        Next weight in vector-lane mode.
    above_sum: In(signed(acc_width))
        Addend in vector-lane mode.
    load_bank: In(1)
        Selects vector-lane mode at the weight register.
        It exists only where both modes are built, and the ports of a mode only where that mode is.
    add_above: In(1)
        Selects vector-lane mode at the adder, two cycles after ``load_bank``.
    weight: Out(signed(operand_width))
        The weight register: what is multiplied, and the next weight of the PE below. With two modes in a DSP48 it is
        the last one from above, whatever is multiplied.
    sum: Out(signed(acc_width))
        The accumulator, modulo 2^acc_width.
    """

    block = "pe"

    activation: Signal
    above_weight: Signal
    bank_weight: Signal
    above_sum: Signal
    load_bank: Signal
    add_above: Signal
    weight: Signal
    sum: Signal

    def __init__(self, params: PEParams | None = None) -> None:
        p = params or PEParams()
        self.p = p
        operand = signed(p.operand_width)
        first = {"activation": In(operand), "weight": Out(operand)}
        super().__init__(p, first | pe_ports(p, operand, signed(p.acc_width)))

    def answers(self) -> tuple[tuple[str, str, int], ...]:
        return (("activation", "sum", 2),)

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        if p.family in DSP48_FAMILIES:
            self._one_block(m)
            return m

        if not p.vector:
            next_weight, addend = self.above_weight, self.sum
        elif not p.systolic:
            next_weight, addend = self.bank_weight, self.above_sum
        else:
            next_weight = Mux(self.load_bank, self.bank_weight, self.above_weight)
            addend = Mux(self.add_above, self.above_sum, self.sum)

        m.d.sync += self.weight.eq(next_weight)

        product = Signal(signed(2 * p.operand_width))
        if p.family == "generic":
            m.d.sync += product.eq(self.activation * self.weight)
        else:
            m.submodules.multiplier = multiplier = PEMultiplier(p)
            m.d.comb += [multiplier.activation.eq(self.activation), multiplier.weight.eq(next_weight),
                         product.eq(multiplier.product)]

        m.d.sync += self.sum.eq(product + addend)
        return m

    def _one_block(self, m: Module) -> None:
        """A DSP48 holds everything but the weight's register for the PE below."""
        p = self.p
        m.submodules.multiply_add = block = PEMultiplyAdd(p)
        m.d.comb += [block.activation.eq(self.activation), self.sum.eq(block.sum)]
        if p.systolic:
            m.d.comb += block.above_weight.eq(self.above_weight)
        if p.vector:
            m.d.comb += [block.bank_weight.eq(self.bank_weight), block.above_sum.eq(self.above_sum)]
        if p.systolic and p.vector:
            m.d.comb += [block.load_bank.eq(self.load_bank), block.add_above.eq(self.add_above)]
        m.d.sync += self.weight.eq(self.above_weight if p.systolic else self.bank_weight)
