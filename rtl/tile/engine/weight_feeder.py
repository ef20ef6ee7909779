"""Weight memory: rows x cols banks, read along the array's wavefront.

::

    step --> [wave 0] --> [wave 1] --> ..    address and enable, one stage a cycle
                |            |
             bank (0, 0)  bank (1, 0), bank (0, columns_per_hop), ..
                          bank (i, j): stage i + j // columns_per_hop

Bank (i, j) holds the weights of operand i and lane j of every sub-tile. Vector-lane: all banks are read every
cycle, each gives its weight to its own PE. Systolic: they are read once in ``rows`` cycles; the bank of row i
has its weight ready just when the wavefront wants weight i at the top of the column, and holds it. So weight
row 0 comes from a multiplexer over the banks of a column, the others straight from their banks.

Latency: 2 cycles from ``step`` to ``weight`` of row 0. Throughput: one step a cycle.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from rtl.memory.ram import Ram
from rtl.parts.pick import pick
from rtl.tile.engine.layouts import array_step
from rtl.unit import Unit
from sim_models.params.memory.ram import RamParams
from sim_models.params.tile.engine.compute_engine import ComputeEngineParams

__all__ = ["WeightFeeder"]


class WeightFeeder(Unit):
    """Weight side of the compute engine.

    Members
    -------
    write_en, write_addr, write_data: In
        Fill port of the memory (both halves): a whole sub-tile.
    step: In(array_step)
    weight: Out(ArrayLayout(signed(operand_width), rows * cols)), or cols alone if systolic only
        As the array wants it: element (i, j) is i + j // columns_per_hop cycles behind element (0, 0).
    """

    block = "weight_feeder"

    write_en: Signal
    write_addr: Signal
    write_data: data.View
    step: data.View
    weight: data.View

    def __init__(self, params: ComputeEngineParams | None = None) -> None:
        p = params or ComputeEngineParams()
        self.p = p
        operand = signed(p.operand_width)
        super().__init__(p, {
            "write_en": In(1), "write_addr": In(range(2 * p.weight_depth)),
            "write_data": In(data.ArrayLayout(operand, p.rows * p.cols)),
            "step": In(array_step(p)),
            "weight": Out(data.ArrayLayout(operand, (p.rows if p.vector else 1) * p.cols)),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p

        wave: list[Any] = [Cat(self.step.weight_en, self.step.weight_addr)]
        for stage in range(p.rows + p.groups - 1):
            delayed = Signal(len(wave[0]), name=f"wave_{stage}")
            m.d.sync += delayed.eq(wave[-1])
            wave.append(delayed)

        ram = RamParams(width=p.operand_width, depth=2 * p.weight_depth, read_old=False)
        banks = [[Ram(ram) for _ in range(p.cols)] for _ in range(p.rows)]
        for i in range(p.rows):
            for j in range(p.cols):
                m.submodules[f"bank_{i}_{j}"] = bank = banks[i][j]
                here = wave[1 + i + j // p.columns_per_hop]
                m.d.comb += [
                    bank.write_en.eq(self.write_en), bank.write_addr.eq(self.write_addr),
                    bank.write_data.eq(self.write_data[i * p.cols + j]),
                    bank.read_en.eq(here[0]), bank.read_addr.eq(here[1:]),
                ]

        # Which bank is due at the top of each group: vector-lane always takes row 0.
        tops: list[Any] = []
        due: Any = Mux(self.step.systolic, self.step.row, 0) if p.vector else self.step.row
        for delay in range(p.groups + 1):
            delayed = Signal(range(p.rows), name=f"due_{delay}")
            m.d.sync += delayed.eq(due)
            due = delayed
            if delay:
                group = (delay - 1) * p.columns_per_hop
                for j in range(group, min(group + p.columns_per_hop, p.cols)):
                    top = [banks[i][j].read_data for i in range(p.rows)]
                    tops.append(pick(top, due) if p.systolic else top[0])
        below = [bank.read_data for row in banks[1:] for bank in row] if p.vector else []
        # One statement: Amaranth looks at every bit of what a statement drives a part of.
        m.d.comb += self.weight.as_value().eq(Cat(*tops, *below))
        return m
