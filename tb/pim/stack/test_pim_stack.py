"""Bench of the stack: random programs against the golden model, under every treatment of its streams."""

from typing import Any

import numpy as np

from rtl.sfu.layouts import sfu_response
from sim_models.golden.pim.stack.pim_stack import STATUSES, PimStack, Work, status
from sim_models.mapping.pim import Attention, Gemv
from sim_models.params.pim.bank.dram_bank import TIMINGS
from tb.common import params
from tb.common.bench import bench_test
from tb.common.clock import cycles, reset, rng, start
from tb.common.packing import Codec
from tb.common.patterns import bursts, random
from tb.common.scenarios import every_scenario, play
from tb.common.scoreboard import compare
from tb.common.streams import Sink, Source
from tb.common.timings import same_at_every_timing
from tb.pim.stack.stack_host import ONCE as ONCE
from tb.pim.stack.stack_host import StackCodecs, assemble
from tb.pim.stack.stack_sessions import Maker

_SMALL = {**TIMINGS["fast"], "lanes": 4, "rows": 64, "columns": 8, "accumulators": 8, "buffer_words": 64,
          "sfu_length": 256}
VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "fast": {**_SMALL, "pseudo_channels": 3},
    "one_int8": {**_SMALL, "pseudo_channels": 1, "format": "int8", "open_rows": 1},
}


class Host:
    """All drivers of the stack, and its golden model."""

    def __init__(self, dut: Any, gen: np.random.Generator) -> None:
        self.dut, self.gen, self.p = dut, gen, params()
        self.codecs, self.model = StackCodecs(self.p), PimStack(self.p)
        self.maker = Maker(self.p, gen)
        self.inputs = {
            "i_command": Source(dut, "i_command", self.codecs.command, gen),
            "i_data": Source(dut, "i_data", self.p.word_width, gen),
            "i_row": Source(dut, "i_row", self.codecs.beat, gen),
            "i_operands": Source(dut, "i_operands", self.codecs.operands, gen)}
        self.responses = Sink(dut, "o_response", self.codecs.response, gen)
        self.functions = Sink(dut, "o_sfu_response", Codec(sfu_response(self.p.sfu)), gen)
        self.results, self.rows = (Sink(dut, name, self.codecs.beat, gen) for name in ("o_result", "o_row"))
        self.sources = list(self.inputs.values())
        self.sinks = [self.responses, self.functions, self.results, self.rows]

    def vary(self) -> None:
        """Another pace for every stream."""
        for driver in (*self.sources, *self.sinks):
            driver.rate([random(1.0), random(0.6), random(0.2), bursts(5, 9)][self.gen.integers(4)])

    async def run(self, work: list[Work], name: str) -> list[np.ndarray]:
        """Carry out a program, and compare statuses and rows; returns the rows."""
        came = []
        for stream, beats in self.codecs.queues(work).items():
            self.inputs[stream].send_packed(beats)
        want = self.model.run(work)
        answers = self.codecs.responses((await self.responses.take_packed(len(work)))[0])
        compare([STATUSES.index(a.status) for a in answers],
                [STATUSES.index(status(self.p, one.command)) for one in work], f"{name}: statuses")
        for sink, rows, beats, what in ((self.results, want.results, self._beats(work), "results"),
                                        (self.rows, want.rows, want.row_beats, "rows of the SFU")):
            if beats:
                got = assemble((await sink.take(beats)), f"{name}: {what}", singles=what == "results")
                compare(len(got), len(rows), f"{name}: number of {what}")
                for at, (one, other) in enumerate(zip(got, rows, strict=True)):
                    compare(len(one), len(other), f"{name}: length of {what} {at}")
                    if len(other):
                        compare(one, other, f"{name}: {what} {at}")
                        came.append(one)
        functions = sum(one.command.op == "sfu" for one in work)
        if functions:
            fields = await self.functions.take(functions)
            compare(fields["error"], np.array([e.value for e in want.errors]), f"{name}: errors of the SFU")
        compare(int(self.dut.error.value), 0, f"{name}: rule of DRAM that was broken")
        return came

    def _beats(self, work: list[Work]) -> int:
        """Beats of results, of which those of ALL hold one number; a refused READ ends its row with an empty one."""
        reads = [c for c in (one.command for one in work) if c.op == "read" and not c.to_sfu]
        good = [c for c in reads if status(self.p, c) == "ok"]
        return (sum(c.values if c.reduce == "all" else -(-c.values // 4) for c in good)
                + sum(c.last for c in reads if c not in good))


@every_scenario
@bench_test(timeout_us=4000)
async def scenarios(dut: Any, scenario: Any) -> None:
    """Programs of any length; a reset leaves banks and buffers as they are."""
    gen = rng()
    await start(dut)
    host = Host(dut, gen)
    await host.run(host.maker.fill(), "fill")

    async def job(size: int) -> None:
        host.model.reset()
        await host.run(host.maker.program(size), f"{size} steps")

    await play(dut, scenario, lanes=1, sources=host.sources, sinks=host.sinks, gen=gen, job=job)


@bench_test(timeout_us=4000)
async def every_pace(dut: Any) -> None:
    """Streams at paces of their own."""
    await start(dut)
    host = Host(dut, rng())
    await host.run(host.maker.fill(), "fill")
    for number in range(2 if host.p.lanes > 4 else 6):
        host.vary()
        await host.run(host.maker.program(6), f"program {number}")


@bench_test(timeout_us=8000)
async def same_rows_at_any_timing(dut: Any) -> None:
    """Attention, or a product where there is no FP16, with each stream held back or ahead of the others."""
    await start(dut)
    gen = rng()
    host = Host(dut, gen)
    if host.p.fp16:
        head = Attention(host.p, 3, 5)
        q, k, v = (gen.standard_normal(shape).astype(np.float16) for shape in ((3,), (5, 3), (5, 3)))
        work = [*head.write(k, v), *head.run(q, 5), *head.run(-q, 4)]
    else:
        product = Gemv(host.p, gen.integers(-128, 128, (9, 5), np.int8))
        work = [*product.image(), *product.run(gen.integers(-128, 128, 9, np.int8))]
    await same_at_every_timing(sources=host.sources, sinks=host.sinks, job=lambda: host.run(work, "work"))


@bench_test(timeout_us=4000)
async def wrong_commands(dut: Any) -> None:
    """Refused commands do nothing but take their words; what comes behind them is carried out."""
    await start(dut)
    host = Host(dut, rng())
    await host.run(host.maker.fill(), "fill")
    wrong = [host.maker.wrong() for _ in range(30)]
    compare([status(host.p, one.command) != "ok" for one in wrong], [True] * len(wrong), "all are wrong")
    await host.run([*wrong, *host.maker.program(2)], "refused")


@bench_test(timeout_us=4000)
async def mapped_work(dut: Any) -> None:
    """A matrix, and attention where there is FP16, mapped onto the stack."""
    gen = rng()
    await start(dut)
    host = Host(dut, gen)
    kind = np.float16 if host.p.fp16 else np.int8
    w, x = (host.maker.words(64 * 40).view(kind).ravel()[:size] for size in (20 * 33, 20))
    product = Gemv(host.p, np.ascontiguousarray(w).reshape(20, 33))
    await host.run([*product.image(), *product.run(x)], "product")
    if host.p.fp16:
        attention = Attention(host.p, 5, 9)
        q, k, v = (gen.standard_normal(shape).astype(np.float16) for shape in ((5,), (9, 5), (9, 5)))
        await host.run([*attention.write(k, v), *attention.run(q, 9)], "attention")


@bench_test(timeout_us=100)
async def nothing_in_reset(dut: Any) -> None:
    """No stream takes a beat while reset is held; a bank is ready at once afterwards."""
    await start(dut)
    for held in (0, 1, 0):
        dut.rst.value = held
        await cycles(1)
        compare(int(dut.i_command__ready.value), 1 - held, f"i_command, reset {held}")
        compare([int(getattr(dut, f"{name}__ready").value) for name in ("i_data", "i_row")], [0, 0],
                "what no command asks for is not taken")
    await reset(dut, 2)
