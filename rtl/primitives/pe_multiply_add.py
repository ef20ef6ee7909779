"""A PE in a DSP48 block of AMD: operands, product and sum, and the choice between the modes.

::

    above_weight --[weight]--+
                             +--(pre-adder)--(x)--[product]--(+)--[sum]
    bank_weight ----[bank]---+                |               |
    activation ------------------[operand]----+    sum or above_sum

The pre-adder of the block passes one of two weights, its wide multiplexer one of two addends: the second mode takes
no logic beside the block.

Latency: 3 cycles from the operands to ``sum``, 1 cycle from ``above_sum`` and ``add_above``. Throughput: one product
a cycle.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from rtl.primitives.dsp48 import A_ALONE, ADD_C, ADD_P, D_ALONE, dsp48
from rtl.unit import Unit, is_emitting
from sim_models.params.tile.engine.pe import PEParams

__all__ = ["PEMultiplyAdd", "pe_ports"]


def pe_ports(p: PEParams, operand: Any, acc: Any) -> dict[str, Any]:
    """Ports of a PE and of what multiplies and adds in it: those of a mode only where that mode is built.

    Parameters
    ----------
    operand, acc:
        Shapes of operands and sums.
    """
    ports: dict[str, Any] = {"activation": In(operand), "sum": Out(acc)}
    if p.systolic:
        ports |= {"above_weight": In(operand)}
    if p.vector:
        ports |= {"bank_weight": In(operand), "above_sum": In(acc)}
    if p.systolic and p.vector:
        ports |= {"load_bank": In(1), "add_above": In(1)}
    return ports


class PEMultiplyAdd(Unit):
    """Multiply-accumulate of a PE.

    Members
    -------
    activation: In(operand_width)
        Codes of signed numbers, as all operands and sums here; for the reason see
        :class:`rtl.primitives.pe_multiplier.PEMultiplier`.
    above_weight, bank_weight: In(operand_width)
    above_sum: In(acc_width)
    load_bank, add_above: In(1)
        As those of the PE; ports exist only where their mode is built.
    sum: Out(acc_width)
    """

    block = "pe_multiply_add"

    activation: Signal
    above_weight: Signal
    bank_weight: Signal
    above_sum: Signal
    load_bank: Signal
    add_above: Signal
    sum: Signal

    def __init__(self, params: PEParams) -> None:
        p = self.p = params
        super().__init__(p, pe_ports(p, p.operand_width, p.acc_width))

    def body(self, platform: Any) -> Module:
        m = Module()
        if is_emitting(platform):
            m.submodules.block = self._instance()
        else:
            self._registers(m)
        return m

    def _instance(self) -> Any:
        p = self.p
        if not p.vector:
            return dsp48(p.family, a=self.above_weight, b=self.activation, opmode=ADD_P, p=self.sum)
        if not p.systolic:
            return dsp48(p.family, a=self.bank_weight, b=self.activation, c=self.above_sum, opmode=ADD_C, p=self.sum)
        return dsp48(p.family, a=self.above_weight, d=self.bank_weight,
                     inmode=Mux(self.load_bank, D_ALONE, A_ALONE), b=self.activation, c=self.above_sum,
                     opmode=Mux(self.add_above, ADD_C, ADD_P), p=self.sum)

    def _registers(self, m: Module) -> None:
        p = self.p
        weight, operand = Signal(p.operand_width), Signal(p.operand_width)
        product = Signal(2 * p.operand_width)
        m.d.sync += [operand.eq(self.activation), weight.eq(self.above_weight if p.systolic else self.bank_weight)]
        multiplied, addend = weight, self.above_sum if p.vector else self.sum
        if p.systolic and p.vector:
            bank, from_bank = Signal(p.operand_width), Signal()
            m.d.sync += [bank.eq(self.bank_weight), from_bank.eq(self.load_bank)]
            multiplied, addend = Mux(from_bank, bank, weight), Mux(self.add_above, self.above_sum, self.sum)
        m.d.sync += [product.eq(operand.as_signed() * multiplied.as_signed()),
                     self.sum.eq(product.as_signed() + addend)]
