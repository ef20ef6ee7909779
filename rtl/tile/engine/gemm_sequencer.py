"""Turns a job into steps: one word of activations, and where needed a sub-tile of weights, a cycle.

Systolic passes come first, then the remaining rows one by one in vector-lane mode::

    for pass in groups:  for tile in n_tiles:  for word in k_words:  for row in rows:  step
    for row in singles:  for tile in n_tiles:  for word in k_words:                    step

so every pass and every row takes the weights in the order in which they lie in memory. Jobs follow each other
without a gap, except that a systolic pass does not follow a vector-lane step directly (one idle cycle, in which
the array washes its sums).

Latency: the first step comes in the cycle after the job is taken. Throughput: one step a cycle.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from rtl.tile.engine.layouts import array_step, gemm_job, result_tile
from rtl.unit import Unit
from sim_models.params.tile.engine.compute_engine import ComputeEngineParams

__all__ = ["GemmSequencer"]


class GemmSequencer(Unit):
    """Step generator of the compute engine.

    Members
    -------
    i_job: In(stream of gemm_job)
        Taken when the last step of the job before is issued.
    go: In(1)
        There is room for the results of one more job.
    step: Out(array_step)
    tile: Out(result_tile), tile_valid: Out(1)
        With the last step of a tile: what becomes of its results.
    """

    block = "gemm_sequencer"

    i_job: Any
    go: Signal
    step: data.View
    tile: data.View
    tile_valid: Signal

    def __init__(self, params: ComputeEngineParams | None = None) -> None:
        p = params or ComputeEngineParams()
        self.p = p
        super().__init__(p, {
            "i_job": In(stream.Signature(gemm_job(p))), "go": In(1),
            "step": Out(array_step(p)), "tile": Out(result_tile(p)), "tile_valid": Out(1),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        job = Signal(gemm_job(p))
        active = Signal()
        systolic = Signal()

        # Loop counters and where they stand in the operand and result memories.
        groups = Signal.like(job.groups)
        singles = Signal.like(job.singles)
        tile_number = Signal.like(job.n_tiles)
        word = Signal.like(job.k_words)
        row = Signal(range(p.rows))
        addr_type = range(p.activation_depth)
        base = Signal(addr_type)
        word_addr = Signal(addr_type)
        row_addr = Signal(addr_type)
        weight_addr = Signal(range(p.weight_depth))
        result_base = Signal(range(p.psum_depth))

        row_end, word_end, tile_end, pass_end, job_end = (Signal(name=n) for n in (
            "row_end", "word_end", "tile_end", "pass_end", "job_end"))
        m.d.comb += [
            row_end.eq(~systolic | (row == p.rows - 1)),
            word_end.eq(row_end & (word == job.k_words - 1)),
            tile_end.eq(word_end & (tile_number == job.n_tiles - 1)),
            pass_end.eq(Mux(systolic, groups == 1, singles == 1)),
            job_end.eq(tile_end & pass_end & (~systolic | (singles == 0))),
        ]

        row_bits = p.rows.bit_length() - 1
        next_base = Signal(addr_type)
        next_word = Signal(addr_type)
        m.d.comb += next_base.eq(base + Mux(systolic, job.k_words << row_bits, job.k_words))
        m.d.comb += next_word.eq(Mux(tile_end, next_base, Mux(word_end, base, word_addr + 1)))
        with m.If(active):
            m.d.sync += [row.eq(row + 1), row_addr.eq(row_addr + job.k_words)]
            with m.If(row_end):
                m.d.sync += [row.eq(0), word.eq(word + 1), word_addr.eq(next_word), row_addr.eq(next_word),
                             weight_addr.eq(weight_addr + 1)]
            with m.If(word_end):
                m.d.sync += [word.eq(0), tile_number.eq(tile_number + 1)]
            with m.If(tile_end):
                m.d.sync += [tile_number.eq(0), base.eq(next_base), weight_addr.eq(0),
                             result_base.eq(result_base + Mux(systolic, job.n_tiles << row_bits, job.n_tiles))]
                with m.If(systolic):
                    m.d.sync += [groups.eq(groups - 1), systolic.eq(groups != 1)]
                with m.Else():
                    m.d.sync += singles.eq(singles - 1)
            with m.If(job_end):
                m.d.sync += active.eq(0)

        new = self.i_job.payload
        # Only a dual-mode array has a vector-lane step before a systolic one.
        gap = active & ~systolic & (new.groups != 0)
        m.d.comb += self.i_job.ready.eq(self.go & (~active | job_end) & ~gap)
        with m.If(self.i_job.valid & self.i_job.ready):
            m.d.sync += [
                job.eq(new), active.eq(1), systolic.eq(new.groups != 0), groups.eq(new.groups),
                singles.eq(new.singles), tile_number.eq(0), word.eq(0), row.eq(0), base.eq(0), word_addr.eq(0),
                row_addr.eq(0), weight_addr.eq(0), result_base.eq(0),
            ]

        rows = Signal(range(p.rows + 1))
        m.d.comb += rows.eq(Mux(~systolic, 1, Mux(groups == 1, job.rows_last, p.rows)))
        m.d.comb += [
            self.step.valid.eq(active), self.step.systolic.eq(systolic),
            self.step.first.eq(word == 0), self.step.last.eq(word_end), self.step.row.eq(row),
            self.step.activation_addr.eq(Cat(row_addr, job.activation_half)),
            self.step.mask.eq(Mux(word == job.k_words - 1, job.k_tail, -1)
                              & (~systolic | (row < rows)).replicate(p.rows)),
            self.step.weight_en.eq(active & (~systolic | (row == 0))),
            self.step.weight_addr.eq(Cat(weight_addr, job.weight_half)),
            self.tile_valid.eq(active & word_end),
            self.tile.base.eq(result_base + tile_number), self.tile.systolic.eq(systolic), self.tile.rows.eq(rows),
            self.tile.end.eq(job_end),
        ]
        return m
