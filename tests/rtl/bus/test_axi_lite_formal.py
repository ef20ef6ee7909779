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
        bus = u.s_axil
        self.inputs = [bus.awaddr, bus.awvalid, bus.wdata, bus.wstrb, bus.wvalid, bus.bready, bus.araddr, bus.arvalid,
                       bus.rready, u.write_good, u.read_data, u.read_good]

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.unit = u = self.unit
        bus, started, read = u.s_axil, Signal(), Signal()
        m.d.sync += started.eq(1)
        address = self._held(m, started, bus.awvalid, bus.awready, bus.awaddr, u.write)
        word = self._held(m, started, bus.wvalid, bus.wready, Cat(bus.wdata, bus.wstrb), u.write)
        asked = self._held(m, started, bus.arvalid, bus.arready, bus.araddr, read)
        # no access waits for ever: it is done unless an answer waits
        m.d.comb += [
            read.eq(asked[0] & ~bus.rvalid), Assert(u.write == (address[0] & word[0] & ~bus.bvalid)),
            Assert(~u.write | (Cat(u.write_data, u.write_strobe) == word[1])),
            Assert(~u.write | (u.write_address == address[1][2:])), Assert(~read | (u.read_address == asked[1][2:]))]
        self._answers(m, u.write, bus.bvalid, bus.bready, bus.bresp, u.write_good)
        self._answers(m, read, bus.rvalid, bus.rready, Cat(bus.rresp, bus.rdata), u.read_good, u.read_data)
        return m

    def _held(self, m: Module, started: Signal, valid: Any, ready: Any, payload: Any,
              used: Any) -> tuple[Signal, Signal]:
        """What was taken last, until it is used; the channel is open when there is nothing."""
        held, taken = Signal(), Signal(len(payload))
        with m.If(used):
            m.d.sync += held.eq(0)
        with m.If(valid & ready):
            m.d.sync += [held.eq(1), taken.eq(payload)]
        m.d.comb += Assert(ready == (started & ~held))
        return held, taken

    def _answers(self, m: Module, access: Any, valid: Any, ready: Any, answer: Any, good: Any,
                 data: Any = None) -> None:
        """One answer to each access, in the cycle after it and until it is taken."""
        owed, wanted = Signal(), Signal(len(answer))
        with m.If(valid & ready):
            m.d.sync += owed.eq(0)
        with m.If(access):
            m.d.sync += [owed.eq(1), wanted.eq(SLVERR)]
            with m.If(good):
                m.d.sync += wanted.eq(Cat(Const(OKAY, 2), *([] if data is None else [data])))
        m.d.comb += [Assert(valid == owed), Assert(~valid | (answer == wanted))]


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
    ("self.write.eq(address_held & data_held & ~bus.bvalid)", "self.write.eq(address_held & data_held)"),
    ("self.write.eq(address_held & data_held & ~bus.bvalid)", "self.write.eq(address_held & ~bus.bvalid)"),
    ("bus.bvalid.eq(self.write | (bus.bvalid & ~bus.bready))", "bus.bvalid.eq(self.write | bus.bvalid)"),
    ("(bus.rvalid & ~bus.rready)", "0"),
    ("ready.eq(~holds)", "ready.eq(1)"),
    ("ready.eq(~holds)", "ready.eq(~holds & ~used)"),
    ("& ~used)", ")"),
    ("with m.If(bus.awready):", "with m.If(1):"),
    ("with m.If(bus.wready):", "with m.If(bus.awready):"),
    ("Mux(self.write_good, _OKAY, _SLVERR)", "_OKAY"),
    ("Mux(self.read_good, self.read_data, 0)", "self.read_data"),
], ids=["overwritten", "half", "twice", "lost", "open", "slow", "again", "replaced", "crossed", "error", "data"])
def test_broken_slaves_are_noticed(change: tuple[str, str]) -> None:
    spec = slave(change)
    assert isinstance(check(spec, spec.inputs), Violated)
