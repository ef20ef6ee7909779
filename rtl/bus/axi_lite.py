"""An AXI4-Lite slave as a plain port: one write and one read at a time, each answered in the cycle after.

::

    AW, W --> both there, and room for the answer --> write, write_address, write_data, write_strobe --> B
    AR -----> room for the answer ------------------> read, read_address --> read_data ----------------> R

What is behind the port answers in the same cycle: data, and whether the address was good; if not, the answer is
SLVERR, and no one should have been written.

Latency: 1 cycle from address and data to the answer. Throughput: a write and a read a cycle. Ready waits for valid,
which AXI allows; answers do not wait for ready. Protection bits are not looked at. Reference: AMBA AXI4, part B.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from rtl.unit import Unit, in_reset
from sim_models.params.bus.axi_lite import AxiLiteParams

__all__ = ["AxiLite", "axi_lite_members"]

_OKAY, _SLVERR = 0, 2


def axi_lite_members(p: AxiLiteParams) -> dict[str, Any]:
    """Members of a slave of 32 bits.

    Members
    -------
    s_axil_awaddr: Byte address of a write.
    s_axil_awprot: Protection bits of a write; not looked at.
    s_axil_awvalid: A write address is offered.
    s_axil_awready: It is taken in this cycle.
    s_axil_wdata: Word of a write.
    s_axil_wstrb: Bytes of the word that are written, a bit each.
    s_axil_wvalid: A word is offered.
    s_axil_wready: It is taken in this cycle.
    s_axil_bresp: Outcome of a write: 0 OKAY, 2 SLVERR.
    s_axil_bvalid: The outcome of a write is offered.
    s_axil_bready: It is taken in this cycle.
    s_axil_araddr: Byte address of a read.
    s_axil_arprot: Protection bits of a read; not looked at.
    s_axil_arvalid: A read address is offered.
    s_axil_arready: It is taken in this cycle.
    s_axil_rdata: Word that was read; 0 without one.
    s_axil_rresp: Outcome of a read: 0 OKAY, 2 SLVERR.
    s_axil_rvalid: The answer to a read is offered.
    s_axil_rready: It is taken in this cycle.
    """
    address = p.address_width
    members: dict[str, Any] = {"awaddr": In(address), "awprot": In(3), "awvalid": In(1), "awready": Out(1),
               "wdata": In(32), "wstrb": In(4), "wvalid": In(1), "wready": Out(1),
               "bresp": Out(2), "bvalid": Out(1), "bready": In(1),
               "araddr": In(address), "arprot": In(3), "arvalid": In(1), "arready": Out(1),
               "rdata": Out(32), "rresp": Out(2), "rvalid": Out(1), "rready": In(1)}
    return {f"s_axil_{name}": member for name, member in members.items()}


class AxiLite(Unit):
    """The slave's side of the bus.

    Members
    -------
    s_axil_*: See :func:`rtl.bus.axi_lite.axi_lite_members`.
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

    s_axil_awaddr: Signal
    s_axil_awvalid: Signal
    s_axil_awready: Signal
    s_axil_wdata: Signal
    s_axil_wstrb: Signal
    s_axil_wvalid: Signal
    s_axil_wready: Signal
    s_axil_bresp: Signal
    s_axil_bvalid: Signal
    s_axil_bready: Signal
    s_axil_araddr: Signal
    s_axil_arvalid: Signal
    s_axil_arready: Signal
    s_axil_rdata: Signal
    s_axil_rresp: Signal
    s_axil_rvalid: Signal
    s_axil_rready: Signal
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
            **axi_lite_members(p), "write": Out(1), "write_address": Out(words), "write_data": Out(32),
            "write_strobe": Out(4), "write_good": In(1), "read_address": Out(words), "read_data": In(32),
            "read_good": In(1),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        read = Signal()
        m.d.comb += [
            self.write.eq(self.s_axil_awvalid & self.s_axil_wvalid & (~self.s_axil_bvalid | self.s_axil_bready)
                          & ~in_reset()),
            self.s_axil_awready.eq(self.write), self.s_axil_wready.eq(self.write),
            self.write_address.eq(self.s_axil_awaddr[2:]), self.write_data.eq(self.s_axil_wdata),
            self.write_strobe.eq(self.s_axil_wstrb),
            read.eq(self.s_axil_arvalid & (~self.s_axil_rvalid | self.s_axil_rready) & ~in_reset()),
            self.s_axil_arready.eq(read), self.read_address.eq(self.s_axil_araddr[2:]),
        ]
        m.d.sync += [self.s_axil_bvalid.eq(self.write | (self.s_axil_bvalid & ~self.s_axil_bready)),
                     self.s_axil_rvalid.eq(read | (self.s_axil_rvalid & ~self.s_axil_rready))]
        with m.If(self.write):
            m.d.sync += self.s_axil_bresp.eq(Mux(self.write_good, _OKAY, _SLVERR))
        with m.If(read):
            m.d.sync += [self.s_axil_rresp.eq(Mux(self.read_good, _OKAY, _SLVERR)),
                         self.s_axil_rdata.eq(Mux(self.read_good, self.read_data, 0))]
        return m
