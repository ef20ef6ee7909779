"""The multiplier of a PE in a block of Lattice ECP5 that registers both operands and the product.

Latency: 2 cycles. Throughput: one product a cycle.
"""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from rtl.primitives.mult18x18d import mult18x18d
from rtl.unit import Unit, is_emitting
from sim_models.params.tile.engine.pe import PEParams

__all__ = ["PEMultiplier"]


class PEMultiplier(Unit):
    """Registered multiplier.

    Members
    -------
    activation, weight: In(operand_width)
        Codes of signed operands. The ports are unsigned, because Yosys 0.70 reads a module anew, and finds its
        children gone, where bits of a signed port are connected to a block with parameters.
    product: Out(2 * operand_width)
        Code of the product of the operands of two cycles ago.
    """

    block = "pe_multiplier"

    activation: Signal
    weight: Signal
    product: Signal

    def __init__(self, params: PEParams) -> None:
        p = self.p = params
        super().__init__(p, {"activation": In(p.operand_width), "weight": In(p.operand_width),
                             "product": Out(2 * p.operand_width)})

    def body(self, platform: Any) -> Module:
        m = Module()
        if is_emitting(platform):
            m.submodules.block = mult18x18d(self.activation, self.weight, self.product)
            return m
        activation, weight = Signal.like(self.activation), Signal.like(self.weight)
        m.d.sync += [activation.eq(self.activation), weight.eq(self.weight),
                     self.product.eq(activation.as_signed() * weight.as_signed())]
        return m
