"""The dual-mode array joins rows x cols PEs, wavefront control and collectors (SPECTRA 2.2).

::

                 weight row 0   (row 0 serves both modes; rows 1.. are read in vector-lane mode only)
                   |  |    |  |
    activation 0 -[R]PE PE[R]PE PE ..      one activation register per column group: a group of
    activation 1 -[R]PE PE[R]PE PE ..      `columns_per_hop` columns works in the same cycle,
        ..            |  |    |  |         the next group one cycle later
                   |  |    |  |
                collector per column:  result = sum of a PE - that sum one tile ago    (systolic)
                                       result = bottom sum + result                    (vector-lane)

A *step* is what enters in one cycle at row 0, group 0; it reaches row i, group g after i + g cycles (the wavefront).
docs/compute_engine.md says how tiles and sub-tiles are made of steps. A systolic step must not follow a vector-lane
step directly: give one idle cycle.

Latency: 5 cycles from the step that ends a tile to its row 0, see
:func:`sim_models.golden.tile.engine.pe_array.latency`. Throughput: one step a cycle.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.memory.ram import ANY_ON_COLLISION
from rtl.parts.pick import pick
from rtl.tile.engine.pe import PE
from rtl.unit import Unit
from sim_models.params.tile.engine.pe_array import PEArrayParams

__all__ = ["PEArray"]

#: cycles from a step to the addition of its products at row 0, group 0: hop and product registers
SUM_DELAY = 2


class PEArray(Unit):
    """Array of processing elements with both modes, control and drain.

    Members
    -------
    valid: In(1)
        There is a step in this cycle.
    systolic: In(1)
        The step is in systolic mode, otherwise in vector-lane mode. It exists only where both modes are built.
    first: In(1)
        The step is the first of its dot product (vector-lane). It exists only where that mode is built.
    last: In(1)
        The step is the last of its tile (systolic) or dot product (vector-lane).
    activation: In(ArrayLayout(signed(operand_width), rows))
        Element i belongs to the step i cycles ago; zero where there was no step.
    weight: In(ArrayLayout(signed(operand_width), rows * cols)), row-major; row 0 alone if systolic only
        Element (i, j), row-major, belongs to the step i + j // columns_per_hop cycles ago.
    next_result: Out(1)
        In the next cycle column group 0 has a result.
    result_valid: Out(1)
        Group 0 has a result in this cycle; group g has the one of g cycles ago.
    result: Out(ArrayLayout(signed(acc_width), cols))
        Systolic: rows 0 to rows - 1 of a tile in turn; vector-lane: one row.
    """

    block = "pe_array"

    valid: Signal
    systolic: Signal
    first: Signal
    last: Signal
    activation: data.View
    weight: data.View
    next_result: Signal
    result_valid: Signal
    result: data.View

    def __init__(self, params: PEArrayParams | None = None) -> None:
        p = params or PEArrayParams()
        operand = signed(p.operand_width)
        ports: dict[str, Any] = {
            "valid": In(1), "last": In(1),
            "activation": In(data.ArrayLayout(operand, p.rows)),
            "weight": In(data.ArrayLayout(operand, (p.rows if p.vector else 1) * p.cols)),
            "next_result": Out(1), "result_valid": Out(1),
            "result": Out(data.ArrayLayout(signed(p.acc_width), p.cols)),
        }
        if p.vector:
            ports["first"] = In(1)
        if p.systolic and p.vector:
            ports["systolic"] = In(1)
        self.p = p
        super().__init__(p, ports)

    def answers(self) -> tuple[tuple[str, str, int], ...]:
        return (("next_result", "result_valid", 1),)

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p

        # The step's flags; element d of a wave is the flag of the step d cycles ago.
        systolic_step = Signal()
        vector_step = Signal()
        if p.systolic and p.vector:
            m.d.comb += [systolic_step.eq(self.valid & self.systolic), vector_step.eq(self.valid & ~self.systolic)]
        else:
            m.d.comb += (systolic_step if p.systolic else vector_step).eq(self.valid)

        sums = self._grid(m, systolic_step)
        self._collect(m, sums, systolic_step, vector_step)
        return m

    def _grid(self, m: Module, systolic_step: Signal) -> list[list[Signal]]:
        """PEs and the activation registers; returns the sums, indexed [row][column]."""
        p = self.p
        vector = None
        if p.systolic and p.vector:
            # Idle cycles count as vector-lane: their zero products wash the sums.
            vector = _wave(m, "vector", ~systolic_step, p.rows + p.groups - 1 + SUM_DELAY)

        sums: list[list[Signal]] = []
        above: list[PE] = []
        for i in range(p.rows):
            activation: Any = self.activation[i]
            operand = activation
            row: list[PE] = []
            for j in range(p.cols):
                group = j // p.columns_per_hop
                if j % p.columns_per_hop == 0:
                    hop = Signal(signed(p.operand_width), name=f"hop_{i}_{group}")
                    m.d.sync += hop.eq(activation)
                    operand = activation if p.registers_activation else hop
                    activation = hop
                m.submodules[f"pe_{i}_{j}"] = pe = PE(p.pe)
                m.d.comb += pe.activation.eq(operand)
                if p.systolic:
                    m.d.comb += pe.above_weight.eq(above[j].weight if i else self.weight[j])
                if p.vector:
                    m.d.comb += [pe.bank_weight.eq(self.weight[i * p.cols + j]),
                                 pe.above_sum.eq(above[j].sum if i else 0)]
                if vector is not None:
                    m.d.comb += [pe.load_bank.eq(vector[i + group]), pe.add_above.eq(vector[i + group + SUM_DELAY])]
                row.append(pe)
            sums.append([pe.sum for pe in row])
            above = row
        return sums

    def _collect(self, m: Module, sums: list[list[Signal]], systolic_step: Signal, vector_step: Signal) -> None:
        """One collector a column; group g does what group 0 did g cycles ago."""
        p = self.p
        draining = Signal()             # systolic results are passing
        row = Signal(range(p.rows), init=p.rows - 1)      # rests on the bottom row, vector-lane's result
        keep = Signal()                 # add the second operand (else: the sum alone)
        tile_fresh = Signal()           # the tile that is drained began with sums of zero

        if p.systolic:
            ended = Signal()
            stepped = Signal()
            fresh = Signal(init=1)
            m.d.comb += ended.eq(_wave(m, "last_step", systolic_step & self.last, SUM_DELAY + 1)[-1])
            m.d.comb += stepped.eq(_wave(m, "systolic_step", systolic_step, SUM_DELAY + 1)[-1])
            with m.If(ended):
                m.d.sync += [row.eq(0), draining.eq(1), tile_fresh.eq(fresh), fresh.eq(0)]
            with m.Elif(row != p.rows - 1):
                m.d.sync += row.eq(row + 1)
            with m.Else():
                m.d.sync += draining.eq(0)
            if p.vector:
                with m.If(~stepped):
                    m.d.sync += fresh.eq(1)      # the sums were washed: nothing to subtract
            m.d.comb += keep.eq(~tile_fresh)
        summed = Signal()
        if p.vector:
            length = p.rows + SUM_DELAY + 1
            first = _wave(m, "first_step", vector_step & self.first, length)[-1]
            m.d.comb += summed.eq(_wave(m, "last_sum", vector_step & self.last, length)[-1])
            m.d.comb += keep.eq(Mux(draining, ~tile_fresh, ~first) if p.systolic else ~first)

        m.d.sync += [self.next_result.eq(draining | summed), self.result_valid.eq(self.next_result)]
        control: Any = Cat(draining, keep, row)
        for group in range(p.groups):
            delayed = Signal(len(control), name=f"control_{group + 1}")
            m.d.sync += delayed.eq(control)
            _collector_group(self, m, group, sums, first=control, then=delayed)
            control = delayed


def _collector_group(array: PEArray, m: Module, group: int, sums: list[list[Signal]], *, first: Any,
                     then: Any) -> None:
    """The collectors of one column group; ``first`` is {draining, keep, row}, ``then`` the same a cycle later.

    In the first cycle a sum is picked, and what it was one tile ago; in the next the result is formed.
    """
    p = array.p
    columns = range(group * p.columns_per_hop, min((group + 1) * p.columns_per_hop, p.cols))
    draining, keep = then[0], then[1]
    acc = unsigned(p.acc_width)
    old: Any = None
    write: Any = None
    if p.systolic:
        # The sums one tile ago. A tile has at least two rows, so that none is read in the cycle that writes it, but
        # for the row on which the counter rests, which nothing uses.
        m.submodules[f"before_{group}"] = memory = Memory(
            shape=data.ArrayLayout(acc, len(columns)), depth=p.rows, init=[], attrs=ANY_ON_COLLISION)
        read, write = memory.read_port(), memory.write_port()
        m.d.comb += [read.addr.eq(first[2:]), write.addr.eq(then[2:]), write.en.eq(draining)]
        old = read.data
    for lane, j in enumerate(columns):
        seen = Signal(acc, name=f"seen_{j}")
        result = array.result[j]
        if p.systolic:
            m.d.sync += seen.eq(pick([r[j] for r in sums], first[2:]))
            m.d.comb += write.data[lane].eq(seen)
        else:
            m.d.sync += seen.eq(sums[-1][j])
        # seen + result, seen - old = seen + ~old + 1, or seen alone: one adder, whose lowest bit is the carry in.
        second = Signal(acc, name=f"second_{j}")
        if not p.vector:
            m.d.comb += second.eq(Mux(keep, ~old[lane], 0))
        elif not p.systolic:
            m.d.comb += second.eq(Mux(keep, result, 0))
        else:
            m.d.comb += second.eq(Mux(keep, Mux(draining, ~old[lane], result), 0))
        m.d.sync += result.eq((Cat(1, seen) + Cat(draining & keep, second))[1:])


def _wave(m: Module, name: str, flag: Any, length: int) -> list[Any]:
    """``flag`` now and in the ``length - 1`` cycles before."""
    wave = [flag]
    for d in range(1, length):
        delayed = Signal(name=f"{name}_{d}")
        m.d.sync += delayed.eq(wave[-1])
        wave.append(delayed)
    return wave
