"""A small queue in distributed memory; the word at its head is visible while it waits.

Streams: valid does not wait for ready, a word that is offered holds. Latency: 1 cycle. Throughput: one word a
cycle in and out, also when full to the last but one word.
"""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.unit import Unit, in_reset
from sim_models.params.memory.fifo import FifoParams

__all__ = ["Fifo"]


class Fifo(Unit):
    """First-in first-out queue.

    Members
    -------
    i: In(stream of width bits)
        Words that enter at the tail.
    o: Out(stream of width bits)
        The same words in the same order, from the head.
    """

    block = "fifo"

    i: Any
    o: Any

    def __init__(self, params: FifoParams | None = None) -> None:
        p = params or FifoParams()
        self.p = p
        super().__init__(p, {"i": In(stream.Signature(p.width)), "o": Out(stream.Signature(p.width))})

    def body(self, platform: Any) -> Module:
        m = Module()
        depth = self.p.depth
        # One bit more than an address: equal pointers mean empty, pointers a depth apart mean full.
        produce = Signal(range(2 * depth))
        consume = Signal(range(2 * depth))
        m.submodules.words = words = Memory(shape=self.p.width, depth=depth, init=[])
        write, read = words.write_port(), words.read_port(domain="comb")

        m.d.comb += [
            self.i.ready.eq(((produce ^ consume) != depth) & ~in_reset()),
            write.en.eq(self.i.valid & self.i.ready), write.addr.eq(produce[:-1]), write.data.eq(self.i.payload),
            self.o.valid.eq(produce != consume),
            read.addr.eq(consume[:-1]), self.o.payload.eq(read.data),
        ]
        with m.If(write.en):
            m.d.sync += produce.eq(produce + 1)
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += consume.eq(consume + 1)
        return m
