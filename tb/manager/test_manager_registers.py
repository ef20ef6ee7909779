"""Bench of the Manager's registers: every answer and every setting against the golden model."""

from typing import Any

import numpy as np

from rtl.bus.registers import Field, Register
from rtl.manager.layouts import manager_counters, manager_settings
from rtl.manager.registers import registers
from sim_models.golden.bus.axi_lite import OKAY, SLVERR
from sim_models.golden.manager.manager_registers import Bits, ManagerRegisters
from tb.bus.axi_lite_master import AxiLiteMaster
from tb.common import params
from tb.common.bench import bench_test
from tb.common.clock import cycles, reset, rng, start
from tb.common.scoreboard import compare

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "smallest": {"request_width": 1, "lane_width": 0, "entries": 1, "draft_width": 1, "token_width": 1},
    "largest": {"request_width": 8, "lane_width": 4, "entries": 4096, "draft_width": 6, "token_width": 32},
}


def _bits(register: Register) -> tuple[Bits, ...]:
    """The fields of a register, for the model."""
    def bits(f: Field) -> Bits:
        top = (1 << f.width) - 1 if f.highest is None else f.highest
        below = next((other for other in register.fields if other.name == f.not_below), None)
        return Bits(f.low, f.width, f.reset, range(f.lowest, top + 1), below and bits(below))
    return tuple(map(bits, register.fields))


#: fields that are no settings
OWN = ("interrupt", "acknowledged", "error_interrupt", "errors_acknowledged")


class Play:
    """A master on the bus, and the model."""

    def __init__(self, dut: Any, gen: np.random.Generator) -> None:
        self.dut, self.gen, self.p, self.bus = dut, gen, params(), AxiLiteMaster(dut, gen)
        self.table = registers(self.p)
        self.model = ManagerRegisters(
            {r.address: _bits(r) for r in self.table if r.writable},
            frozenset(r.address for r in self.table if not r.writable))
        self.shown: dict[int, int] = {}
        self.words: dict[str, int] = {}

    async def begin(self) -> None:
        """Quiet inputs, a reset, and random things to be shown."""
        d, gen = self.dut, self.gen
        self.bus.quiet()
        self.words = words = {str(name): int(gen.integers(1 << 32)) for name, _ in manager_counters()}
        self.count()
        self.count(illegal=int(gen.integers(2)))
        flags = {name: int(gen.integers(2)) for name in ("busy", "dlm_fc", "tlm_attention")}
        for name, value in flags.items():
            getattr(d, name).value = value
        sizes = {"requests_log2": self.p.request_width, "lanes_log2": self.p.lane_width, "entries": self.p.entries}
        values = words | flags | {"error": 0}
        for r in self.table:
            if not r.writable:
                source = sizes if r.name == "sizes" else values
                self.shown[r.address] = sum(source[f.name] << f.low for f in r.fields)
        await reset(d, 2)
        self.model.reset()

    def count(self, **words: int) -> None:
        """Show the counters, some of them changed."""
        self.words |= words
        self.dut.counters.value = sum(self.words[str(name)] << field.offset for name, field in manager_counters())

    async def write(self, address: int, data: int, strobe: int = 15) -> None:
        response = await self.bus.write(address, data, strobe)
        compare(response, self.model.write(address, data, strobe), f"response at {address:#x}")
        self.settings()

    async def read(self, address: int) -> None:
        at = {r.name: r for r in self.table}
        wrong = self.words["illegal"] != self.model.words[at["acknowledge_errors"].address]
        error = next(f for f in at["status"].fields if f.name == "error")
        status = self.shown[at["status"].address] & ~(1 << error.low) | wrong << error.low
        got = await self.bus.read(address)
        compare(list(got), list(self.model.read(address, self.shown | {at["status"].address: status})),
                f"word at {address:#x}")

    def word(self, address: int) -> int:
        """Anything, or values at the ends of the fields' ranges and just beyond."""
        gen, word = self.gen, 0
        register = next((r for r in self.table if r.address == address and r.writable), None)
        if register is None or gen.random() < 0.2:
            return int(gen.integers(1 << 32))
        for f in register.fields:
            top = (1 << f.width) - 1 if f.highest is None else f.highest
            values = [f.lowest, top, min(f.lowest + 1, top), top // 2]
            if gen.random() < 0.1:
                values = [top + 1, max(f.lowest - 1, 0)]
            word |= int(gen.choice([*values, f.reset])) << f.low & 0xFFFF_FFFF
        return word ^ (int(gen.random() < 0.1) << int(gen.integers(32)))

    def settings(self) -> None:
        """Every setting is what its register says."""
        got, layout = int(self.dut.settings.value), manager_settings(self.p)
        for r in self.table:
            for f in r.fields if r.writable else ():
                if f.name in OWN:
                    continue
                field = layout[f.name]
                ones = (1 << f.width) - 1
                compare(got >> field.offset & ones, self.model.words[r.address] >> f.low & ones, f.name)
                compare(f.width, field.width, f"bits of {f.name}")


@bench_test(timeout_us=500)
async def random_accesses(dut: Any) -> None:
    """Any address, data and strobes; resets in between."""
    await start(dut)
    play = Play(dut, rng())
    gen = play.gen
    for _ in range(4):
        await play.begin()
        play.settings()
        for r in play.table:
            await play.read(r.address)
        for _ in range(120):
            known = gen.random() < 0.8
            address = int(gen.choice([r.address for r in play.table])) if known else int(gen.integers(256))
            if gen.random() < 0.6:
                await play.write(address, play.word(address), int(gen.choice([15, int(gen.integers(16))])))
            else:
                await play.read(address)


@bench_test(timeout_us=200)
async def what_a_field_cannot_have_is_refused(dut: Any) -> None:
    """SLVERR, and the setting stays, for the value beyond each end of a range, and for bits without a field."""
    await start(dut)
    play = Play(dut, rng())
    await play.begin()
    p, refused = play.p, 0
    at = {f.name: (r, f) for r in play.table if r.writable for f in r.fields}
    bad = {"policy": 3, "tau": 0x8001, "tau_5": 0xFFFF, "max_draft": (1 << p.draft_width) + 1,
           "capacity": p.entries + p.requests + 1, "start": 0, "engines": p.lanes + 1, "dlm_fc_low": 1 << 15}
    for name, value in bad.items():
        register, field = at[name]
        word = play.model.words[register.address] & ~(((1 << field.width) - 1) << field.low)
        compare(play.model.write(register.address, word | value << field.low, 15), SLVERR, f"the model on {name}")
        await play.write(register.address, word | value << field.low)
        await play.read(register.address)
        refused += 1
    for register in play.table:
        named = sum(((1 << f.width) - 1) << f.low for f in register.fields)
        if register.writable and named != 0xFFFF_FFFF:
            bit = next(n for n in range(32) if not named >> n & 1)
            compare(play.model.write(register.address, play.model.words[register.address] | 1 << bit, 15), SLVERR,
                    f"the model on bit {bit} of {register.name}")
            await play.write(register.address, play.model.words[register.address] | 1 << bit)
            await play.read(register.address)
            refused += 1
    compare(refused >= len(bad) + 4, True, "writes that were refused")
    # a threshold that is not below the other one, in either order of writing
    register, low = at["tlm_attention_low"]
    high = at["tlm_attention_high"][1]
    for first, second, answer in ((3, 5, OKAY), (5, 5, OKAY), (6, 5, SLVERR)):
        word = first << low.low | second << high.low
        compare(play.model.write(register.address, word, 15), answer, f"the model on {first}, {second}")
        await play.write(register.address, word)
        await play.read(register.address)


@bench_test(timeout_us=100)
async def errors_until_they_are_acknowledged(dut: Any) -> None:
    """High while enabled and an illegal beat is not acknowledged, whatever is complete."""
    await start(dut)
    play = Play(dut, rng())
    await play.begin()
    control, acknowledge = (next(r for r in play.table if r.name == name)
                            for name in ("control", "acknowledge_errors"))
    bit = 1 << next(f.low for f in control.fields if f.name == "error_interrupt")
    play.count(completed=0, illegal=7)
    await play.write(control.address, bit)
    await cycles(3)
    compare(int(dut.irq.value), 1, "seven errors")
    await play.write(acknowledge.address, 6)
    await cycles(3)
    compare(int(dut.irq.value), 1, "six of them acknowledged")
    await play.write(acknowledge.address, 7)
    await cycles(3)
    compare(int(dut.irq.value), 0, "all acknowledged")
    play.count(completed=1, illegal=7)
    await cycles(3)
    compare(int(dut.irq.value), 0, "a completion, whose interrupt is not enabled")
    play.count(completed=1, illegal=8)
    await cycles(3)
    compare(int(dut.irq.value), 1, "another error")
    await play.write(control.address, 0)
    await cycles(3)
    compare(int(dut.irq.value), 0, "not enabled")


@bench_test(timeout_us=100)
async def interrupt_until_all_is_acknowledged(dut: Any) -> None:
    """High while enabled and a completion is not acknowledged; none is lost that comes on the way."""
    await start(dut)
    play = Play(dut, rng())
    await play.begin()
    control, acknowledge = (next(r for r in play.table if r.name == name) for name in ("control", "acknowledge"))
    bit = 1 << next(f.low for f in control.fields if f.name == "interrupt")

    async def irq(want: bool, what: str) -> None:
        await cycles(2)
        compare(int(dut.irq.value), want, what)

    for completed in (1, 0xFFFF_FFFF, int(play.gen.integers(2, 1 << 32))):
        play.count(completed=completed)
        await play.write(acknowledge.address, completed)
        await play.write(control.address, bit)
        await irq(False, "all acknowledged")
        play.count(completed=(completed + 1) % (1 << 32))
        await irq(True, "one more")
        seen = (completed + 1) % (1 << 32)
        play.count(completed=(completed + 2) % (1 << 32))
        await play.write(acknowledge.address, seen)
        await irq(True, "another came meanwhile")
        await play.write(control.address, 0)
        await irq(False, "not enabled")
        await play.write(control.address, bit)
        await irq(True, "enabled again")
        await play.write(acknowledge.address, (completed + 2) % (1 << 32))
        await irq(False, "acknowledged")


@bench_test(timeout_us=100)
async def an_access_during_reset_is_lost(dut: Any) -> None:
    """What is offered while reset is held is neither taken nor done later; ready falls with the first edge of it."""
    await start(dut)
    play = Play(dut, rng())
    await play.begin()
    await play.write(4, 3)
    dut.s_axil_awaddr.value, dut.s_axil_wdata.value, dut.s_axil_wstrb.value, dut.rst.value = 4, 1, 15, 1
    dut.s_axil_awvalid.value = dut.s_axil_wvalid.value = dut.s_axil_arvalid.value = 1
    await cycles(1)
    for _ in range(3):
        await cycles(1)
        compare([int(getattr(dut, f"s_axil_{n}ready").value) for n in ("aw", "w", "ar")], [0, 0, 0], "ready")
    dut.s_axil_awvalid.value = dut.s_axil_wvalid.value = dut.s_axil_arvalid.value = 0
    dut.rst.value = 0
    play.model.reset()
    await cycles(2)
    compare([int(dut.s_axil_bvalid.value), int(dut.s_axil_rvalid.value)], [0, 0], "answers")
    await play.read(4)
