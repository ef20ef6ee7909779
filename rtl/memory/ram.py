"""The project's memory: one write port, one synchronous read port, for every FPGA's block RAM.

Reading and writing the same word in one cycle returns the old word; with ``read_old`` false, whatever the device
returns, and none spends logic on it. A read port that is not enabled holds its data. No block may rely on initial
contents.

Latency: 1 cycle from ``read_addr`` to ``read_data``. Throughput: one read and one write a cycle.
"""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.unit import Unit
from sim_models.params.memory.ram import RamParams

__all__ = ["ANY_ON_COLLISION", "Ram"]

#: attributes of a memory of which no word is used that was read while it was written
ANY_ON_COLLISION: dict[str, Any] = {"no_rw_check": 1}


class Ram(Unit):
    """Simple dual-port memory.

    Members
    -------
    write_en: In(1)
        A word is written in this cycle.
    write_addr: In(range(depth))
        Its number.
    write_data: In(width)
        Its new value.
    read_en: In(1)
        A word is read in this cycle; without it ``read_data`` holds.
    read_addr: In(range(depth))
        Its number.
    read_data: Out(width)
        The word that was read last, from the next cycle on.
    """

    block = "ram"

    write_en: Signal
    write_addr: Signal
    write_data: Signal
    read_en: Signal
    read_addr: Signal
    read_data: Signal

    def __init__(self, params: RamParams | None = None) -> None:
        p = params or RamParams()
        self.p = p
        super().__init__(p, {
            "write_en": In(1), "write_addr": In(range(p.depth)), "write_data": In(p.width),
            "read_en": In(1), "read_addr": In(range(p.depth)), "read_data": Out(p.width),
        })

    def answers(self) -> tuple[tuple[str, str, int], ...]:
        return (("read_addr", "read_data", 1),)

    def body(self, platform: Any) -> Module:
        m = Module()
        m.submodules.words = words = Memory(shape=self.p.width, depth=self.p.depth, init=[],
                                            attrs={} if self.p.read_old else ANY_ON_COLLISION)
        write, read = words.write_port(), words.read_port()
        m.d.comb += [
            write.en.eq(self.write_en), write.addr.eq(self.write_addr), write.data.eq(self.write_data),
            read.en.eq(self.read_en), read.addr.eq(self.read_addr), self.read_data.eq(read.data),
        ]
        return m
