"""Bench of the AXI4-Lite slave: every pin in every cycle against the model, and a memory behind it."""

import dataclasses
from typing import Any

import numpy as np

from sim_models.golden.bus.axi_lite import OKAY, SLVERR, AxiLite, Inputs, Outputs
from tb.bus.axi_lite_rules import AxiLiteRules
from tb.common import params
from tb.common.bench import background, bench_test
from tb.common.clock import cycles, engine, reset, rng, start
from tb.common.scoreboard import compare

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "smallest": {"address_width": 3},
    "largest": {"address_width": 32},
}

#: how often the master offers an address, data, a read, and takes answers
RATES = ((0.5, 0.5, 0.5, 0.5), (1, 1, 1, 1), (1, 0.2, 1, 0.1), (0.2, 1, 0.3, 1), (1, 1, 1, 0.05), (0.1, 0.1, 0.1, 1))


@dataclasses.dataclass
class Words:
    """What is behind the port: words of 32 bits, of which every third is not there."""

    words: dict[int, int] = dataclasses.field(default_factory=dict)

    def good(self, address: int) -> bool:
        return address % 3 != 2

    def read(self, address: int) -> int:
        return self.words.get(address, 0x5EED0000 | (address & 0xFFFF))

    def write(self, address: int, data: int, strobe: int) -> None:
        if self.good(address):
            mask = sum(0xFF << 8 * n for n in range(4) if strobe >> n & 1)
            self.words[address] = (data & mask) | (self.read(address) & ~mask)


class Play:
    """The device, its model and what is behind, driven alike."""

    def __init__(self, dut: Any, gen: np.random.Generator) -> None:
        self.dut, self.gen = dut, gen
        self.model, self.behind = AxiLite(params()), Words()
        self.got: list[list[int]] = []
        self.want: list[list[int]] = []
        self.rules = AxiLiteRules(dut)
        engine().agents.append(self.rules)

    async def cycle(self, inputs: Inputs, in_reset: bool = False) -> Outputs:
        """A cycle with these inputs; what is behind the port answers by itself."""
        d = self.dut
        outputs = self.model.outputs
        address = outputs.write[0] if outputs.write else 0, outputs.read or 0
        inputs = dataclasses.replace(inputs, write_good=self.behind.good(address[0]),
                                     read_good=self.behind.good(address[1]), read_data=self.behind.read(address[1]))
        values = {
            "awvalid": inputs.aw is not None, "awaddr": inputs.aw or 0, "wvalid": inputs.w is not None,
            "wdata": inputs.w[0] if inputs.w else 0, "wstrb": inputs.w[1] if inputs.w else 0,
            "bready": inputs.b_ready, "arvalid": inputs.ar is not None, "araddr": inputs.ar or 0,
            "rready": inputs.r_ready}
        for name, value in values.items():
            getattr(d, f"s_axil_{name}").value = int(value)
        d.write_good.value, d.read_good.value = int(inputs.write_good), int(inputs.read_good)
        d.read_data.value = inputs.read_data
        await cycles(1)
        if in_reset:
            self.model.reset()
            return self.model.outputs
        if outputs.write:
            self.behind.write(*outputs.write)
        self._note(outputs)
        self.model.step(inputs)
        return outputs

    def _note(self, o: Outputs) -> None:
        """The pins, and what they should be; where a value means nothing, what came."""
        d = self.dut
        bus = {name: int(getattr(d, f"s_axil_{name}").value) for name in (
            "awready", "wready", "arready", "bvalid", "bresp", "rvalid", "rdata", "rresp")}
        ports = {name: int(getattr(d, name).value) for name in (
            "write", "write_address", "write_data", "write_strobe", "read_address")}
        want: dict[str, int] = {
            "awready": o.aw_ready, "wready": o.w_ready, "arready": o.ar_ready, "bvalid": o.b is not None,
            "rvalid": o.r is not None, "write": o.write is not None}
        if o.b is not None:
            want["bresp"] = o.b
        if o.r is not None:
            want["rdata"], want["rresp"] = o.r
        if o.write is not None:
            want["write_address"], want["write_data"], want["write_strobe"] = o.write
        if o.read is not None:
            want["read_address"] = o.read
        got = bus | ports
        self.got.append(list(got.values()))
        self.want.append([int(want.get(name, value)) for name, value in got.items()])

    async def restart(self, count: int) -> None:
        """Reset, with nothing offered."""
        for name in ("aw", "w", "ar"):
            getattr(self.dut, f"s_axil_{name}valid").value = 0
        await reset(self.dut, count)
        self.model.reset()

    async def finish(self) -> None:
        """Take what is left, and compare everything."""
        for _ in range(3):
            await self.cycle(Inputs(b_ready=True, r_ready=True))
        compare([self.rules.taken["b"], self.rules.taken["r"]], [self.rules.taken["aw"], self.rules.taken["ar"]],
                "answers, accesses")
        compare(np.array(self.got, object), np.array(self.want, object), "[cycle, pin]")

    def address(self) -> int:
        """Often one of a few, so that accesses meet; the lowest two bits may be anything."""
        width = params().address_width
        few = int(self.gen.integers(1 << min(width, 6)))
        return few if self.gen.random() < 0.8 else int(self.gen.integers(1 << width))

    async def write(self, address: int, data: int, strobe: int = 15, wait: int = 0) -> int:
        """Write, take the answer after some cycles: the response."""
        await self.offer(aw=address, w=(data, strobe))
        for _ in range(wait):
            await self.cycle(Inputs())
        return await self.answer("b")

    async def read(self, address: int) -> tuple[int, int]:
        """Read: data and response."""
        await self.offer(ar=address)
        return await self.answer("r")

    async def offer(self, **channels: Any) -> None:
        """Offer until all is taken."""
        while channels:
            outputs = await self.cycle(Inputs(**channels))
            channels = {n: payload for n, payload in channels.items() if not getattr(outputs, f"{n}_ready")}

    async def answer(self, name: str) -> Any:
        """Take the next answer."""
        taking = Inputs(b_ready=name == "b", r_ready=name == "r")
        while (found := getattr(await self.cycle(taking), name)) is None:
            pass
        return found


async def begin(dut: Any) -> Play:
    await start(dut)
    play = Play(dut, rng())
    background(play.rules.probe())
    return play


@bench_test(timeout_us=500)
async def random_traffic(dut: Any) -> None:
    """Anything in any cycle, with every mix of rates and resets in between."""
    play = await begin(dut)
    gen = play.gen
    for rates in RATES:
        held: dict[str, Any] = {}
        for _ in range(int(gen.integers(100, 300))):
            for name, rate, make in (("aw", rates[0], play.address), ("ar", rates[2], play.address),
                                     ("w", rates[1], lambda: (int(gen.integers(1 << 32)), int(gen.integers(16))))):
                if name not in held and gen.random() < rate:
                    held[name] = make()
            ready = gen.random(2) < rates[3]
            outputs = await play.cycle(Inputs(**held, b_ready=bool(ready[0]), r_ready=bool(ready[1])))
            for name in list(held):
                if getattr(outputs, f"{name}_ready"):
                    del held[name]
        await play.restart(int(gen.integers(1, 4)))
    await play.finish()


@bench_test(timeout_us=200)
async def strobes_and_errors(dut: Any) -> None:
    """Every strobe changes its bytes alone; an address that is not there answers SLVERR, and nothing changes."""
    play = await begin(dut)
    gen = play.gen
    top = 1 << params().address_width
    for strobe in range(16):
        old, new = int(gen.integers(1 << 32)), int(gen.integers(1 << 32))
        compare(await play.write(0, old), OKAY, "response")
        compare(await play.write(0, new, strobe, wait=int(gen.integers(3))), OKAY, "response")
        mask = sum(0xFF << 8 * n for n in range(4) if strobe >> n & 1)
        compare(list(await play.read(0)), [(new & mask) | (old & ~mask), OKAY], f"word after strobe {strobe:#x}")
    for address in {min(8, top - 4) + n for n in range(4)} if top > 8 else set():
        before = dict(play.behind.words)
        compare(await play.write(address, 0xFFFFFFFF), SLVERR, f"response at {address:#x}")
        compare(list(await play.read(address)), [0, SLVERR], f"word at {address:#x}")
        assert play.behind.words == before
    await play.finish()


@bench_test(timeout_us=200)
async def an_access_every_other_cycle(dut: Any) -> None:
    """Writes and reads run beside each other, one every 2 cycles, each answered 2 cycles after it."""
    play = await begin(dut)
    addresses = [play.address() for _ in range(50)]
    await play.cycle(Inputs())
    for n in range(len(addresses)):
        for half in range(2):
            at = n + half                               # what was not taken stays
            offer = Inputs(aw=addresses[at], w=(at, 15), ar=addresses[at]) if at < len(addresses) else Inputs()
            outputs = await play.cycle(dataclasses.replace(offer, b_ready=True, r_ready=True))
            compare([outputs.aw_ready, outputs.w_ready, outputs.ar_ready], [not half] * 3, f"access {n}, ready")
            answered = n > 0 and not half
            compare([outputs.b is not None, outputs.r is not None], [answered] * 2, f"access {n}, answers")
    compare([play.rules.taken[n] for n in ("aw", "w", "ar", "b", "r")], [50, 50, 50, 49, 49], "transfers")
    await play.finish()


@bench_test(timeout_us=200)
async def halves_of_a_write_in_any_order(dut: Any) -> None:
    """Address and data are taken separately, and nothing is written before both are there."""
    play = await begin(dut)
    gen = play.gen
    for n in range(20):
        first, second = gen.permutation(["aw", "w"])
        payload = {"aw": 0, "w": (n, 15)}
        before = dict(play.behind.words)
        await play.offer(**{first: payload[first]})
        for _ in range(int(gen.integers(1, 6))):
            outputs = await play.cycle(Inputs(b_ready=True))
            compare([outputs.b is None, play.behind.words == before], [True, True], "nothing before both came")
        await play.offer(**{second: payload[second]})
        compare(await play.answer("b"), OKAY, "response")
        compare(play.behind.words[0], n, "word")
    await play.finish()


@bench_test(timeout_us=200)
async def answers_wait(dut: Any) -> None:
    """Nobody takes an answer: it stands, one more access of each kind is taken and waits, and nothing else."""
    play = await begin(dut)
    await play.offer(aw=0, w=(1, 15), ar=0)
    await play.offer(aw=0, w=(2, 15), ar=4)
    for n in range(20):
        outputs = await play.cycle(Inputs(aw=0, w=(3, 15), ar=4))
        compare([outputs.b, outputs.aw_ready, outputs.w_ready, outputs.ar_ready], [OKAY, False, False, False],
                f"cycle {n}")
    compare(play.behind.words[0], 1, "word")
    await play.cycle(Inputs(aw=0, w=(3, 15), ar=4, b_ready=True, r_ready=True))
    outputs = await play.cycle(Inputs(aw=0, w=(3, 15), ar=4))
    compare([outputs.b is None, outputs.r is None, outputs.write is not None], [True] * 3, "the next one is done")
    compare(play.behind.words[0], 2, "word")
    await play.offer(aw=0, w=(3, 15), ar=4)
    for _ in range(2):
        compare([await play.answer("b"), (await play.answer("r"))[1]], [OKAY, OKAY], "responses")
    compare(play.behind.words[0], 3, "word")
    await play.finish()


@bench_test(timeout_us=500)
async def same_answers_at_any_timing(dut: Any) -> None:
    """The same accesses at random times, each channel late and early, give the same answers.

    Reads have addresses of their own, since writes and reads have no order between them.
    """
    play = await begin(dut)
    gen = play.gen
    top = 1 << params().address_width
    writes = [(int(gen.integers(top)) & ~4, (int(gen.integers(1 << 32)), int(gen.integers(16)))) for _ in range(30)]
    reads = [int(gen.integers(top)) | 4 for _ in range(30)]
    rates = [(1, 1, 1, 1, 1), (.02, 1, 1, 1, 1), (1, .02, 1, 1, 1), (1, 1, .02, 1, 1), (1, 1, 1, .02, 1),
             (1, 1, 1, 1, .02), (.5, .5, .5, .5, .5), (.02, .02, .02, 1, 1)]
    seen: list[Any] = []
    for rate in rates:
        play.behind.words.clear()
        left: dict[str, list[Any]] = {"aw": [a for a, _ in writes], "w": [w for _, w in writes], "ar": list(reads)}
        answers: dict[str, list[Any]] = {"b": [], "r": []}
        offered: dict[str, Any] = {}
        while any(left.values()) or len(answers["b"]) < len(writes) or len(answers["r"]) < len(reads):
            draws = gen.random(5) < rate
            offered |= {n: left[n][0] for n, draw in zip(("aw", "w", "ar"), draws, strict=False) if draw and left[n]}
            b_ready, r_ready = bool(draws[3]), bool(draws[4])
            outputs = await play.cycle(Inputs(**offered, b_ready=b_ready, r_ready=r_ready))
            for n in [n for n in offered if getattr(outputs, f"{n}_ready")]:
                del offered[n], left[n][0]
            answers["b"] += [outputs.b] if b_ready and outputs.b is not None else []
            answers["r"] += [outputs.r] if r_ready and outputs.r is not None else []
        seen.append((answers, dict(play.behind.words)))
        assert seen[-1] == seen[0], f"rates {rate}: {seen[-1]} came, {seen[0]} at the first"
    await play.finish()


@bench_test(timeout_us=200)
async def reset_in_the_middle(dut: Any) -> None:
    """Known fault: an access of before the reset, rejected or half offered, is done later; ready is high in reset."""
    play = await begin(dut)
    gen = play.gen
    top = 1 << params().address_width
    for n in range(12):
        address = 0 if n % 2 else min(8, top - 4)       # there, and (but for the smallest) not there
        await play.write(0, n)
        before = dict(play.behind.words)
        stage = n // 2 % 3
        if stage == 0:                                  # half a write
            await play.offer(aw=address)
        elif stage == 1:                                # an answer that nobody has taken
            await play.offer(aw=address, w=(before[0], 15), ar=address)
            while (await play.cycle(Inputs())).b is None:
                pass
        dut.rst.value = 1
        for _ in range(int(gen.integers(1, 4))):        # offered all the time while reset is held
            await play.cycle(Inputs(aw=address, w=(0xBAD, 15), ar=address, b_ready=True, r_ready=True), in_reset=True)
        dut.rst.value = 0
        for _ in range(4):
            outputs = await play.cycle(Inputs(b_ready=True, r_ready=True))
            compare([outputs.b, outputs.r, outputs.write], [None] * 3, "what is left of it")
        assert play.behind.words == before | ({2 if address == 8 else address // 4: before[0]} if stage == 1 and
                                              play.behind.good(address // 4) else {})
        compare((await play.read(0))[0], before[0], "word")
    await play.finish()
