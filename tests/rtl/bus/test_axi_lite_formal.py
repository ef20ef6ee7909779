"""The AXI4-Lite slave keeps the bus's rules whatever comes in: proven for all cycles; controls break it."""

import inspect
from typing import Any

import pytest
from amaranth.hdl import Assert, Cat, Const, Elaboratable, Module, Signal

from rtl.bus import axi_lite
from sim_models.golden.bus.axi_lite import OKAY, SLVERR
from sim_models.params.bus.axi_lite import AxiLiteParams
from tests.formal_tools import Proven, Violated, check


class Specification(Elaboratable):
    """A slave with any master and anything behind it."""

    def __init__(self, unit: Any) -> None:
        self.unit = u = unit
        self.inputs = [
            u.s_axil_awaddr, u.s_axil_awvalid, u.s_axil_wdata, u.s_axil_wstrb, u.s_axil_wvalid, u.s_axil_bready,
            u.s_axil_araddr, u.s_axil_arvalid, u.s_axil_rready, u.write_good, u.read_data, u.read_good]

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.unit = u = self.unit
        write, read = u.s_axil_awvalid & u.s_axil_awready, u.s_axil_arvalid & u.s_axil_arready
        # address and data go together, and with them the word
        m.d.comb += [
            Assert(write == (u.s_axil_wvalid & u.s_axil_wready)), Assert(write == u.write),
            Assert(~u.write | (Cat(u.write_address, u.write_data, u.write_strobe)
                               == Cat(u.s_axil_awaddr[2:], u.s_axil_wdata, u.s_axil_wstrb))),
            Assert(~read | (u.read_address == u.s_axil_araddr[2:]))]
        self._answers(m, write, u.s_axil_bvalid, u.s_axil_bready, u.s_axil_bresp, u.write_good,
                      u.s_axil_awvalid & u.s_axil_wvalid)
        self._answers(m, read, u.s_axil_rvalid, u.s_axil_rready, Cat(u.s_axil_rresp, u.s_axil_rdata), u.read_good,
                      u.s_axil_arvalid, u.read_data)
        return m

    def _answers(self, m: Module, access: Any, valid: Any, ready: Any, answer: Any, good: Any, offered: Any,
                 data: Any = None) -> None:
        """One answer to each access, in the cycle after it and until it is taken; and no access waits for ever."""
        owed, wanted = Signal(), Signal(len(answer))
        with m.If(valid & ready):
            m.d.sync += owed.eq(0)
        with m.If(access):
            m.d.sync += [owed.eq(1), wanted.eq(SLVERR)]
            with m.If(good):
                m.d.sync += wanted.eq(Cat(Const(OKAY, 2), *([] if data is None else [data])))
        m.d.comb += [Assert(valid == owed), Assert(~valid | (answer == wanted)),
                     Assert(access == (offered & (~valid | ready)))]


def slave(*changes: tuple[str, str]) -> Specification:
    """The slave, or one with other code."""
    text = inspect.getsource(axi_lite)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    space: dict[str, Any] = {"__name__": axi_lite.__name__}
    exec(compile(text, axi_lite.__file__, "exec"), space)
    return Specification(space["AxiLite"](AxiLiteParams(address_width=4)))


def test_every_access_has_its_answer() -> None:
    spec = slave()
    assert isinstance(check(spec, spec.inputs), Proven)


@pytest.mark.parametrize("change", [
    ("(~self.s_axil_bvalid | self.s_axil_bready)", "1"),
    ("self.s_axil_bvalid.eq(self.write | (self.s_axil_bvalid & ~self.s_axil_bready))",
     "self.s_axil_bvalid.eq(self.write | self.s_axil_bvalid)"),
    ("(self.s_axil_rvalid & ~self.s_axil_rready)", "0"),
    ("(~self.s_axil_rvalid | self.s_axil_rready)", "~self.s_axil_rvalid"),
    ("self.s_axil_awvalid & self.s_axil_wvalid", "self.s_axil_awvalid"),
    ("Mux(self.write_good, _OKAY, _SLVERR)", "_OKAY"),
    ("Mux(self.read_good, self.read_data, 0)", "self.read_data"),
    ("self.s_axil_wready.eq(self.write)", "self.s_axil_wready.eq(self.s_axil_wvalid)"),
], ids=["overwritten", "twice", "lost", "slow", "half", "error", "data", "early"])
def test_broken_slaves_are_noticed(change: tuple[str, str]) -> None:
    spec = slave(change)
    assert isinstance(check(spec, spec.inputs), Violated)
