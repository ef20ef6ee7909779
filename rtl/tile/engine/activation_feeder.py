"""Activation memory and the registers that give every array row its operands in time.

::

    fill --> RAM (words of `rows` operands) --> [mask] --+--> row 0:  [0][1][2] .. --> activation 0
                                                         +--> row 1:  [0][1][2] .. --> activation 1
                                                         +--> ..        shift towards [0] every cycle

One word is read a cycle. Systolic: the words of rows 0, 1, .. of a pass are read in turn, each fills the whole
register of its row and is shifted out in the ``rows`` cycles until that row's next word: the wavefront's delay
of one cycle per row comes of itself. Vector-lane: every cycle, operand i of the word enters register i at
position i, from where it takes i cycles more: the same delay. So both modes share the registers.

Latency: 2 cycles from ``step`` to ``activation`` of row 0. Throughput: one step a cycle.
"""

from typing import Any

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from rtl.memory.ram import Ram
from rtl.tile.engine.layouts import array_step
from rtl.unit import Unit
from sim_models.params.memory.ram import RamParams
from sim_models.params.tile.engine.compute_engine import ComputeEngineParams

__all__ = ["ActivationFeeder"]


class ActivationFeeder(Unit):
    """Activation side of the compute engine.

    Members
    -------
    write_en, write_addr, write_data: In
        Fill port of the memory (both halves).
    step: In(array_step)
    activation: Out(ArrayLayout(signed(operand_width), rows))
        As the array wants it: element i is i cycles behind element 0, zero where there is no step.
    """

    block = "activation_feeder"

    write_en: Signal
    write_addr: Signal
    write_data: data.View
    step: data.View
    activation: data.View

    def __init__(self, params: ComputeEngineParams | None = None) -> None:
        p = params or ComputeEngineParams()
        self.p = p
        word = data.ArrayLayout(signed(p.operand_width), p.rows)
        super().__init__(p, {
            "write_en": In(1), "write_addr": In(range(2 * p.activation_depth)), "write_data": In(word),
            "step": In(array_step(p)), "activation": Out(word),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        m.submodules.ram = ram = Ram(RamParams(width=p.rows * p.operand_width, depth=2 * p.activation_depth,
                                               read_old=False))
        m.d.comb += [
            ram.write_en.eq(self.write_en), ram.write_addr.eq(self.write_addr),
            ram.write_data.eq(self.write_data.as_value()),
            ram.read_en.eq(self.step.valid), ram.read_addr.eq(self.step.activation_addr),
        ]

        # The word read for last cycle's step, without what lies beyond K or M (memory there is undefined).
        loaded = Signal()
        systolic = Signal()
        row = Signal.like(self.step.row)
        mask = Signal.like(self.step.mask)
        m.d.sync += [loaded.eq(self.step.valid), systolic.eq(self.step.systolic), row.eq(self.step.row),
                     mask.eq(self.step.mask)]
        word = data.View(self.activation.shape(), ram.read_data)
        operands = []
        for position in range(p.rows):
            operand = Signal(signed(p.operand_width), name=f"operand_{position}")
            with m.If(mask[position]):
                m.d.comb += operand.eq(word[position])
            operands.append(operand)

        for i in range(p.rows):
            fill, enter = Signal(name=f"fill_{i}"), Signal(name=f"enter_{i}")
            if p.systolic:
                m.d.comb += fill.eq(loaded & (systolic if p.vector else 1) & (row == i))
            if p.vector:
                m.d.comb += enter.eq(loaded & ~systolic if p.systolic else loaded)
            after: Any = 0
            # A vector-lane-only row needs no positions beyond the one where its operand enters.
            for position in reversed(range(p.rows if p.systolic else i + 1)):
                register = Signal(signed(p.operand_width), name=f"row_{i}_{position}")
                m.d.sync += register.eq(after)
                with m.If(fill | enter if position == i else fill):
                    m.d.sync += register.eq(operands[position])
                after = register
            m.d.comb += self.activation[i].eq(after)
        return m
