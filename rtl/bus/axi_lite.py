"""An AXI4-Lite slave as a plain port: writes and reads side by side, one of each at a time.

::

    AW --> address -----+--> write, write_address, write_data, write_strobe --> B
    W ---> data, strobe-+
    AR --> address --------> read_address --> read_data ----------------------> R

What is behind the port answers in the cycle in which it is asked: data, and whether the address was good. If it was
not, the answer is SLVERR, and nothing may have been written.

Every output is a register: no input, reset included, reaches an output within a cycle (AMBA AXI4, A3.1.1). So the two
halves of a write are taken separately, in any order, and the next access is taken while an answer waits. Protection
bits are not looked at.

Latency: 2 cycles from the handshake of address and data to the answer. Throughput: a write and a read every 2 cycles.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.unit import Unit
from sim_models.params.bus.axi_lite import AxiLiteParams

__all__ = ["AxiLite", "AxiLiteSignature"]

_OKAY, _SLVERR = 0, 2


class AxiLiteSignature(wiring.Signature):
    """AXI4-Lite with 32 bits of data, as the master sees it: a slave's port is ``In``.

    Parameters
    ----------
    address_width:
        Bits of a byte address.

    Members
    -------
    awaddr: Byte address of a write.
    awprot: Protection bits of a write; not looked at.
    awvalid: A write address is offered.
    awready: It is taken if it is offered in this cycle.
    wdata: Word of a write.
    wstrb: Bytes of the word that are written, a bit each.
    wvalid: A word is offered.
    wready: It is taken if it is offered in this cycle.
    bresp: Outcome of a write: 0 OKAY, 2 SLVERR.
    bvalid: The outcome of a write is offered.
    bready: It is taken if it is offered in this cycle.
    araddr: Byte address of a read.
    arprot: Protection bits of a read; not looked at.
    arvalid: A read address is offered.
    arready: It is taken if it is offered in this cycle.
    rdata: Word that was read; 0 without one.
    rresp: Outcome of a read: 0 OKAY, 2 SLVERR.
    rvalid: The answer to a read is offered.
    rready: It is taken if it is offered in this cycle.
    """

    #: ports are called ``s_axil_awaddr`` and so on, as the bus has it
    separator = "_"

    def __init__(self, address_width: int) -> None:
        self.address_width = address_width
        super().__init__({
            "awaddr": Out(address_width), "awprot": Out(3), "awvalid": Out(1), "awready": In(1),
            "wdata": Out(32), "wstrb": Out(4), "wvalid": Out(1), "wready": In(1),
            "bresp": In(2), "bvalid": In(1), "bready": Out(1),
            "araddr": Out(address_width), "arprot": Out(3), "arvalid": Out(1), "arready": In(1),
            "rdata": In(32), "rresp": In(2), "rvalid": In(1), "rready": Out(1)})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AxiLiteSignature) and self.address_width == other.address_width

    def __hash__(self) -> int:
        return hash((AxiLiteSignature, self.address_width))

    def __repr__(self) -> str:
        return f"AxiLiteSignature({self.address_width})"


class AxiLite(Unit):
    """The slave's side of the bus.

    Members
    -------
    s_axil: In(AxiLiteSignature)
        The bus.
    write: Out(1)
        A word is written in this cycle.
    write_address: Out(address_width - 2)
        Number of the word that is written.
    write_data: Out(32)
        Its value.
    write_strobe: Out(4)
        Its bytes that are written, a bit each.
    write_good: In(1)
        There is such a word; answered in the same cycle.
    read_address: Out(address_width - 2)
        Number of the word that is read.
    read_data: In(32)
        Its value, answered in the same cycle.
    read_good: In(1)
        There is such a word; answered in the same cycle.
    """

    block = "axi_lite"

    s_axil: Any
    write: Signal
    write_address: Signal
    write_data: Signal
    write_strobe: Signal
    write_good: Signal
    read_address: Signal
    read_data: Signal
    read_good: Signal

    def __init__(self, params: AxiLiteParams | None = None) -> None:
        p = params or AxiLiteParams()
        self.p = p
        words = p.address_width - 2
        super().__init__(p, {
            "s_axil": In(AxiLiteSignature(p.address_width)), "write": Out(1), "write_address": Out(words),
            "write_data": Out(32), "write_strobe": Out(4), "write_good": In(1), "read_address": Out(words),
            "read_data": In(32), "read_good": In(1),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        bus = self.s_axil
        read, address_held, data_held, read_held = (Signal(name=n) for n in (
            "read", "address_held", "data_held", "read_held"))

        # A channel is open while it holds nothing: ready is the complement of held, but low after a reset, too.
        for held, valid, ready, used in ((address_held, bus.awvalid, bus.awready, self.write),
                                         (data_held, bus.wvalid, bus.wready, self.write),
                                         (read_held, bus.arvalid, bus.arready, read)):
            holds = Signal(name=f"{held.name}_next")
            m.d.comb += holds.eq((held | (valid & ready)) & ~used)
            m.d.sync += [held.eq(holds), ready.eq(~holds)]
        with m.If(bus.awready):
            m.d.sync += self.write_address.eq(bus.awaddr[2:])
        with m.If(bus.wready):
            m.d.sync += [self.write_data.eq(bus.wdata), self.write_strobe.eq(bus.wstrb)]
        with m.If(bus.arready):
            m.d.sync += self.read_address.eq(bus.araddr[2:])

        m.d.comb += [self.write.eq(address_held & data_held & ~bus.bvalid), read.eq(read_held & ~bus.rvalid)]
        m.d.sync += [bus.bvalid.eq(self.write | (bus.bvalid & ~bus.bready)),
                     bus.rvalid.eq(read | (bus.rvalid & ~bus.rready))]
        with m.If(self.write):
            m.d.sync += bus.bresp.eq(Mux(self.write_good, _OKAY, _SLVERR))
        with m.If(read):
            m.d.sync += [bus.rresp.eq(Mux(self.read_good, _OKAY, _SLVERR)),
                         bus.rdata.eq(Mux(self.read_good, self.read_data, 0))]
        return m
