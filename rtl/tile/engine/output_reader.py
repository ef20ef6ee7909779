"""Hands out the halves of the output memory in turn, and drains them in that order into a stream.

Latency: 2 cycles from ``written`` to the first beat. Throughput: one beat a cycle; the memory's own output
register holds a beat that has to wait.
"""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from rtl.tile.engine.layouts import result_beat
from rtl.unit import Unit
from sim_models.params.tile.engine.compute_engine import ComputeEngineParams

__all__ = ["OutputReader", "output_block"]


def output_block(p: ComputeEngineParams) -> data.StructLayout:
    """Shape of a block in half the output memory: rows of ``cols`` results, tiles per row, lanes of the last."""
    return data.StructLayout({"size": range(p.psum_depth + 1), "n_tiles": range(p.psum_depth + 1),
                              "n_tail": p.cols})


class OutputReader(Unit):
    """Output side of the compute engine.

    Members
    -------
    half: Out(1), room: Out(1)
        The half that is next in turn, and whether it is free.
    reserve: In(1), block_shape: In(output_block)
        Strobe, only with ``room``: the half is taken for a block of this shape.
    written: In(2)
        Strobe: the half holds its block.
    read_en, read_addr: Out, read_data: In
        Read port of the output memory.
    o_result: Out(stream of result_beat)
    """

    block = "output_reader"

    half: Signal
    room: Signal
    reserve: Signal
    block_shape: data.View
    written: Signal
    read_en: Signal
    read_addr: Signal
    read_data: data.View
    o_result: Any

    def __init__(self, params: ComputeEngineParams | None = None) -> None:
        p = params or ComputeEngineParams()
        self.p = p
        super().__init__(p, {
            "half": Out(1), "room": Out(1), "reserve": In(1), "block_shape": In(output_block(p)),
            "written": In(2), "read_en": Out(1), "read_addr": Out(range(2 * p.psum_depth)),
            "read_data": In(data.ArrayLayout(signed(p.psum_width), p.cols)),
            "o_result": Out(stream.Signature(result_beat(p))),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        busy = Signal(2)
        full = Signal(2)
        shapes = [Signal(output_block(p), name=f"shape_{h}") for h in range(2)]
        m.d.comb += self.room.eq(~busy.bit_select(self.half, 1))

        # Drain: the word read last waits in the memory's output register.
        drain_half = Signal()
        shape = Signal(output_block(p))
        count = Signal(range(p.psum_depth))
        tile = Signal(range(p.psum_depth))
        keep = Signal(p.cols)
        last = Signal()
        out = self.o_result
        advance = Signal()
        tile_last = Signal()
        word_last = Signal()
        drained = Signal(2)
        m.d.comb += [
            shape.eq(Mux(drain_half, shapes[1], shapes[0])),
            advance.eq(~out.valid | out.ready),
            tile_last.eq(tile == shape.n_tiles - 1), word_last.eq(count == shape.size - 1),
            self.read_en.eq(advance & Array(full)[drain_half]), self.read_addr.eq(Cat(count, drain_half)),
            drained.eq((self.read_en & word_last) << drain_half),
            out.payload.data.eq(self.read_data), out.payload.keep.eq(keep), out.payload.last.eq(last),
        ]
        with m.If(advance):
            m.d.sync += out.valid.eq(self.read_en)
        with m.If(self.read_en):
            m.d.sync += [count.eq(count + 1), tile.eq(Mux(tile_last, 0, tile + 1)),
                         keep.eq(Mux(tile_last, shape.n_tail, -1)), last.eq(word_last)]
            with m.If(word_last):
                m.d.sync += [count.eq(0), drain_half.eq(~drain_half)]

        m.d.sync += [full.eq((full | self.written) & ~drained),
                     busy.eq((busy & ~drained) | (self.reserve << self.half))]
        with m.If(self.reserve):
            m.d.sync += self.half.eq(~self.half)
            for h in range(2):
                with m.If(self.half == h):
                    m.d.sync += shapes[h].eq(self.block_shape)
        return m
