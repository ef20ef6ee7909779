"""Fill side of a double-buffered local memory: where the beats of a stream go, and which halves hold a block.

A block is a run of beats up to ``last``, all for the same half. It is written to word 0 and up of that half, which
is full from then on and takes nothing until it is released. A command that will release a half claims it when it is
issued, so that the next command waits for the next block. A block that is too long, or that names two halves, is
malformed: its surplus beats are dropped and its size reads 0, which no command asks for.

Latency: the half is full in the cycle after ``last``. Throughput: one beat a cycle.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from rtl.unit import Unit, in_reset
from sim_models.params.tile.engine.fill_control import FillControlParams

__all__ = ["FillControl"]


class FillControl(Unit):
    """Fill side of a double-buffered memory.

    Members
    -------
    valid, half, last: In(1)
        The beat offered, and the half that it is for.
    ready: Out(1)
        It is taken; depends on ``half``, since one half may be full while the other is not.
    blocked: In(1)
        No beat is taken.
    write_en, write_addr: Out
        Where the beat goes in a memory of 2 * depth words.
    available: Out(2)
        Halves that hold a block which no command has claimed.
    claimed: Out(2)
        Halves that are promised to a command.
    size: Out(ArrayLayout(range(depth + 1), 2))
        Words of the block in each half; 0 if malformed.
    claim: In(2)
        Halves that are promised to a command until ``free`` or ``store``. Strobe.
    free: In(2)
        Halves to be emptied. Strobe.
    store: In(2), store_size: In(range(depth + 1))
        Halves that hold a block of this size from now on, written from elsewhere. Strobe.
    """

    block = "fill_control"

    valid: Signal
    half: Signal
    last: Signal
    ready: Signal
    blocked: Signal
    write_en: Signal
    write_addr: Signal
    available: Signal
    claimed: Signal
    size: data.View
    claim: Signal
    free: Signal
    store: Signal
    store_size: Signal

    def __init__(self, params: FillControlParams | None = None) -> None:
        p = params or FillControlParams()
        self.p = p
        sizes = range(p.depth + 1)
        super().__init__(p, {
            "valid": In(1), "half": In(1), "last": In(1), "ready": Out(1), "blocked": In(1),
            "write_en": Out(1), "write_addr": Out(range(2 * p.depth)),
            "available": Out(2), "claimed": Out(2), "size": Out(data.ArrayLayout(sizes, 2)),
            "claim": In(2), "free": In(2), "store": In(2), "store_size": In(sizes),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        depth = self.p.depth
        count = Signal(range(depth + 1))         # depth: no room left
        active = Signal()
        first_half = Signal()
        malformed = Signal()

        block_half = Signal()
        full = Signal(2)
        m.d.comb += [
            self.available.eq(full & ~self.claimed),
            block_half.eq(Mux(active, first_half, self.half)),
            self.ready.eq(~(full | self.claimed).bit_select(block_half, 1) & ~self.blocked & ~in_reset()),
            self.write_en.eq(self.valid & self.ready & (count != depth)),
            self.write_addr.eq(Cat(count[:-1], block_half)),
        ]

        wrong = (count == depth) | (active & (self.half != first_half))
        for h in range(2):
            with m.If(self.claim[h]):
                m.d.sync += self.claimed[h].eq(1)
            with m.If(self.free[h]):
                m.d.sync += [full[h].eq(0), self.claimed[h].eq(0)]
            with m.If(self.store[h]):
                m.d.sync += [full[h].eq(1), self.claimed[h].eq(0), self.size[h].eq(self.store_size)]
        with m.If(self.valid & self.ready):
            m.d.sync += [active.eq(1), first_half.eq(block_half), malformed.eq(malformed | wrong)]
            with m.If(count != depth):
                m.d.sync += count.eq(count + 1)
            with m.If(self.last):
                m.d.sync += [active.eq(0), malformed.eq(0), count.eq(0)]
                for h in range(2):
                    with m.If(block_half == h):
                        m.d.sync += [full[h].eq(1), self.size[h].eq(Mux(malformed | wrong, 0, count + 1))]
        return m
