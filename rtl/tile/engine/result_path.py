"""From the array's results to the partial-sum and output memories.

::

    array result --(+)--> output memory      (two halves; drained by the output reader)
                    ^ \\-> partial-sum memory (two halves; filled by a stream or kept from an earlier command)
                    |            |
                    +------------+  accumulate

Group g of the columns works g cycles behind group 0; every group has its own slice of both memories, so the
results need no alignment.

Latency: a result is written in the cycle in which the array shows it. Throughput: one row of ``cols`` results a
cycle.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from rtl.memory.fifo import Fifo
from rtl.memory.ram import Ram
from rtl.parts.streams import joined
from rtl.tile.engine.layouts import result_tile
from rtl.unit import Unit
from sim_models.params.memory.fifo import FifoParams
from sim_models.params.memory.ram import RamParams
from sim_models.params.tile.engine.compute_engine import ComputeEngineParams

__all__ = ["ResultPath", "result_job"]


def result_job(p: ComputeEngineParams) -> data.StructLayout:
    """What all results of a command have in common."""
    return data.StructLayout({
        "n_tiles": range(p.psum_depth + 1), "size": range(p.psum_depth + 1),
        "accumulate": 1, "keep": 1, "activation_half": 1, "weight_half": 1, "psum_half": 1, "output_half": 1,
        "release_activation": 1, "release_weight": 1,
        "started": 32,                  # cycle in which the sequencer took the job
    })


class ResultPath(Unit):
    """Result side of the compute engine.

    Members
    -------
    i_job: In(stream of result_job), i_tile: In(stream of result_tile)
        What is to become of the results, in their order. ``i_tile.ready`` always holds.
    next_result: In(1), result: In(ArrayLayout(signed(acc_width), cols))
        From the array.
    now: In(32)
        Cycle counter.
    fill_en, fill_addr, fill_data: In
        Fill port of the partial-sum memory; must be idle while a command keeps its results.
    read_en, read_addr: In, read_data: Out
        Read port of the output memory.
    done: Out(1)
        Strobe: the command at the head of ``i_job`` has its last result in the next cycle, and in memory
        ``groups`` cycles after that.
    cycles: Out(32)
        Cycles from its first operand to its last result, with ``done``.
    """

    block = "result_path"

    i_job: Any
    i_tile: Any
    next_result: Signal
    result: data.View
    now: Signal
    fill_en: Signal
    fill_addr: Signal
    fill_data: data.View
    read_en: Signal
    read_addr: Signal
    read_data: data.View
    done: Signal
    cycles: Signal

    def __init__(self, params: ComputeEngineParams | None = None) -> None:
        p = params or ComputeEngineParams()
        self.p = p
        word = data.ArrayLayout(signed(p.psum_width), p.cols)
        addr = range(2 * p.psum_depth)
        super().__init__(p, {
            "i_job": In(stream.Signature(result_job(p))), "i_tile": In(stream.Signature(result_tile(p))),
            "next_result": In(1), "result": In(data.ArrayLayout(signed(p.acc_width), p.cols)), "now": In(32),
            "fill_en": In(1), "fill_addr": In(addr), "fill_data": In(word),
            "read_en": In(1), "read_addr": In(addr), "read_data": Out(word),
            "done": Out(1), "cycles": Out(32),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        # As many tiles as can lie between the sequencer and the results: one a cycle in vector-lane mode.
        depth = 1 << (p.rows + 8).bit_length()
        layout = result_tile(p)
        m.submodules.tiles = tiles = Fifo(FifoParams(width=layout.size, depth=depth))
        tile, job = data.View(layout, tiles.o.payload), self.i_job.payload
        m.d.comb += joined(self.i_tile, tiles.i)

        # The cycle before a result shows in group 0: where does it go?
        row = Signal(range(p.rows))
        addr = Signal(range(p.psum_depth))
        following = Signal(range(p.psum_depth))
        counts = Signal()
        finished = Signal()
        m.d.comb += [
            addr.eq(Mux(row == 0, tile.base, following)),
            counts.eq(self.next_result & (row < tile.rows)),
            finished.eq(counts & tile.end & (row == tile.rows - 1)),
            tiles.o.ready.eq(self.next_result & (~tile.systolic | (row == p.rows - 1))),
        ]
        with m.If(self.next_result):
            m.d.sync += [following.eq(addr + job.n_tiles), row.eq(row + 1)]
            with m.If(tiles.o.ready):
                m.d.sync += row.eq(0)

        # The array has the first operand 3 cycles after the job was taken; group 0 shows the last result in the
        # next cycle, the last group `groups - 1` cycles after that.
        m.d.comb += [self.done.eq(finished), self.i_job.ready.eq(finished),
                     self.cycles.eq(self.now - job.started + (p.groups - 2))]

        control: Any = Cat(counts, job.accumulate, job.keep, job.psum_half, job.output_half, addr)
        for group in range(p.groups):
            delayed = Signal(len(control), name=f"control_{group + 1}")
            m.d.sync += delayed.eq(control)
            self._group(m, group, read=control, write=delayed)
            control = delayed
        return m

    def _group(self, m: Module, group: int, *, read: Any, write: Any) -> None:
        """Both memories of one column group; ``write`` is ``read`` a cycle later."""
        p = self.p
        first = group * p.columns_per_hop
        columns = range(first, min(first + p.columns_per_hop, p.cols))
        ram = RamParams(width=len(columns) * p.psum_width, depth=2 * p.psum_depth, read_old=False)
        m.submodules[f"psum_{group}"] = psum = Ram(ram)
        m.submodules[f"output_{group}"] = output = Ram(ram)
        _, read_accumulate, _, read_psum_half, _ = read[:5]
        counts, accumulate, keep, psum_half, output_half = write[:5]
        m.d.comb += [
            psum.read_en.eq(read[0] & read_accumulate), psum.read_addr.eq(Cat(read[5:], read_psum_half)),
            output.read_en.eq(self.read_en), output.read_addr.eq(self.read_addr),
            output.write_en.eq(counts & ~keep), output.write_addr.eq(Cat(write[5:], output_half)),
            psum.write_en.eq((counts & keep) | self.fill_en),
            psum.write_addr.eq(Mux(self.fill_en, self.fill_addr, Cat(write[5:], psum_half))),
        ]
        word = data.ArrayLayout(signed(p.psum_width), len(columns))
        before, total = data.View(word, psum.read_data), Signal(word, name=f"total_{group}")
        fill = Cat(self.fill_data[j].as_unsigned() for j in columns)
        m.d.comb += [total[lane].eq(self.result[j] + Mux(accumulate, before[lane], 0))
                     for lane, j in enumerate(columns)]
        m.d.comb += [output.write_data.eq(total.as_value()),
                     psum.write_data.eq(Mux(self.fill_en, fill, total.as_value()))]
        m.d.comb += [self.read_data[j].eq(data.View(word, output.read_data)[lane])
                     for lane, j in enumerate(columns)]
