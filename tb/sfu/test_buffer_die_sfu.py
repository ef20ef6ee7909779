"""Bench of the special function unit: every operation bit for bit under any pauses, edges, faults, cycles."""

from typing import Any

import numpy as np

from rtl.sfu.layouts import sfu_beat, sfu_command, sfu_operands, sfu_response
from sim_models.golden.sfu.buffer_die_sfu import sfu_cycles
from sim_models.numerics.float32 import bits
from sim_models.spec.sfu import SfuOp
from tb.common import params
from tb.common.bench import bench_test
from tb.common.clock import cycles, rng, start
from tb.common.scenarios import Scenario, every_scenario, play
from tb.common.scoreboard import compare
from tb.common.streams import Sink, Source, monitor
from tb.common.timings import same_at_every_timing
from tb.sfu.sfu_traffic import FAULTS, Job, check, job, pack, random_job

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "one_lane": {"lanes": 1, "max_length": 16},
    "eight_lanes": {"lanes": 8, "max_length": 64},
}
_INF, _NAN = np.inf, np.nan


class Play:
    """The device between sources of all it takes and sinks of all it gives."""

    def __init__(self, dut: Any) -> None:
        self.p, self.gen = params(), rng()
        self.command = Source(dut, "i_command", sfu_command, self.gen)
        self.row = Source(dut, "i_row", sfu_beat(self.p), self.gen)
        self.operands = Source(dut, "i_operands", sfu_operands(self.p), self.gen)
        self.result = Sink(dut, "o_row", sfu_beat(self.p), self.gen)
        self.response = Sink(dut, "o_response", sfu_response(self.p), self.gen)
        self.sources = [self.command, self.row, self.operands]
        self.sinks = [self.result, self.response]
        # some words, a number of times the lanes and a little more
        self.longest = min(self.p.max_length, 12 * self.p.lanes)

    def send(self, jobs: list[Job]) -> None:
        packed = pack(self.p, jobs)
        self.command.send_packed(packed.command)
        self.row.send_packed(packed.row)
        self.operands.send_packed(packed.operands)

    async def check(self, jobs: list[Job], what: str) -> list[np.ndarray]:
        """Send commands one behind the other and compare all that comes; returns it."""
        self.send(jobs)
        answers = [j.answer(self.p) for j in jobs]
        beats = await self.result.take(sum(len(a.data) for a in answers))
        responses = await self.response.take(len(jobs))
        check(self.p, answers, beats, responses, what)
        return [*beats.values(), *responses.values()]

    def any_job(self, faults: float = 0.0) -> Job:
        fault = str(self.gen.choice(FAULTS[2:])) if self.gen.random() < faults else None
        return random_job(self.p, self.gen, int(self.gen.integers(0, self.longest + 1)), fault=fault)


@every_scenario
@bench_test(timeout_us=3000)
async def scenarios(dut: Any, scenario: Scenario) -> None:
    """Lengths from 1, pauses on all sides, resets in the middle; every operation has its turn."""
    await start(dut)
    bench = Play(dut)
    turn = int(bench.gen.integers(len(SfuOp)))

    async def one(size: int) -> None:
        nonlocal turn
        turn += 1
        await bench.check([random_job(bench.p, bench.gen, size, op=turn % len(SfuOp))], f"length {size}")
    await play(dut, scenario, lanes=min(params().lanes, params().max_length // 4), sources=bench.sources,
               sinks=bench.sinks, gen=bench.gen, job=one)


@bench_test(timeout_us=4000)
async def anything(dut: Any) -> None:
    """Commands of all kinds back to back, with faults among them, under pauses that change."""
    await start(dut)
    bench = Play(dut)
    for offered, taken in ((1.0, 1.0), (0.3, 1.0), (1.0, 0.1), (0.5, 0.4)):
        for source in bench.sources:
            source.rate(offered)
        for sink in bench.sinks:
            sink.rate(taken)
        await bench.check([bench.any_job(0.2) for _ in range(12)], f"offered {offered:.0%}, taken {taken:.0%}")


@bench_test(timeout_us=8000)
async def same_results_at_any_timing(dut: Any) -> None:
    """Every operation, and faults among them, with each stream held back, and ahead of the others."""
    await start(dut)
    bench = Play(dut)
    jobs = [random_job(bench.p, bench.gen, bench.p.lanes + 1, op=op) for op in SfuOp]
    jobs += [bench.any_job(0.5) for _ in range(4)]
    await same_at_every_timing(sources=bench.sources, sinks=bench.sinks, job=lambda: bench.check(jobs, "operations"))


@bench_test(timeout_us=3000)
async def faults_are_refused(dut: Any) -> None:
    """Every fault with every operation: a response that names it, a result that ends, and the next row is right."""
    await start(dut)
    bench = Play(dut)
    lanes = bench.p.lanes
    jobs = []
    for fault in FAULTS[:1] * 8 + FAULTS[2:]:
        for op in SfuOp if fault != "op" else (0,):
            spoilt = random_job(bench.p, bench.gen, int(bench.gen.integers(lanes + 1, bench.longest)), op=op,
                                fault=fault)
            jobs += [spoilt, bench.any_job()]
    await bench.check(jobs, "faults")
    assert {int(j.answer(bench.p).error) for j in jobs} >= {0, 1, 3, 4}


@bench_test(timeout_us=4000)
async def the_longest_row_and_longer_ones(dut: Any) -> None:
    """A row of ``max_length`` numbers, one beat more, and what comes behind it."""
    await start(dut)
    bench = Play(dut)
    p = bench.p
    full = [random_job(p, bench.gen, p.max_length, op=op) for op in (SfuOp.SOFTMAX, SfuOp.GELU)]
    long = [random_job(p, bench.gen, 1, op=op, fault="long") for op in (SfuOp.COPY, SfuOp.LAYERNORM)]
    await bench.check([*full, *long, bench.any_job()], "long rows")
    compare([int(j.answer(p).error) for j in long], [2, 2], "errors")


@bench_test(timeout_us=2000)
async def edges(dut: Any) -> None:
    """Results that are defined and not computed: written down here, of hardware and model alike."""
    await start(dut)
    bench = Play(dut)
    p = bench.p

    def row(op: SfuOp, *values: float, scalar: float = 1.0, **more: Any) -> Job:
        return job(p, op, bits(np.array(values, np.float32)), scalar=scalar, **more)
    ones = bits(np.ones(3, np.float32))
    cases: list[tuple[Job, list[float], tuple[int, int]]] = [
        (row(SfuOp.SOFTMAX, -_INF, -_INF, -_INF), [0, 0, 0], (1, 0)),
        (row(SfuOp.SOFTMAX, -_INF), [0], (1, 0)),
        (row(SfuOp.SOFTMAX), [], (1, 0)),
        (row(SfuOp.SOFTMAX, -3e38, -_INF), [1, 0], (0, 0)),
        (row(SfuOp.SOFTMAX, 5), [1], (0, 0)),
        (row(SfuOp.SOFTMAX, 7, 7, -_INF, 7, 7), [0.25, 0.25, 0, 0.25, 0.25], (0, 0)),
        (row(SfuOp.SOFTMAX, 1, _NAN, 2), [_NAN] * 3, (0, 1)),
        (row(SfuOp.SOFTMAX, 1, _INF, 2), [_NAN] * 3, (0, 1)),
        (row(SfuOp.SOFTMAX, _NAN, _NAN), [_NAN] * 2, (0, 1)),
        (row(SfuOp.RMSNORM, 0, 0, 0, scalar=1e-5), [0, 0, 0], (0, 0)),
        (row(SfuOp.RMSNORM, 0, -0.0, 0, scalar=0), [0, 0, 0], (1, 0)),
        (row(SfuOp.RMSNORM, 0.25, -0.25, scalar=0), [1, -1], (0, 0)),
        # epsilon counts, as it is
        (row(SfuOp.RMSNORM, 0.5, 0.5, scalar=0.75), [0.5, 0.5], (0, 0)),
        (row(SfuOp.RMSNORM, 2, 2, scalar=0, weight=ones[:2] + (1 << 23), bias=ones[:2]), [2, 2], (0, 0)),
        (row(SfuOp.LAYERNORM, 1e6 + 1 / 3, 1e6 + 1 / 3, 1e6 + 1 / 3, scalar=1e-5), [0, 0, 0], (0, 0)),
        (row(SfuOp.LAYERNORM, 3e38, 3e38, 3e38, scalar=0), [0, 0, 0], (1, 0)),
        (row(SfuOp.LAYERNORM, 7, 7, 7, scalar=1e-5, weight=ones, bias=ones), [1, 1, 1], (0, 0)),
        (row(SfuOp.LAYERNORM, 3, 5, 3, 5, scalar=3), [-0.5, 0.5, -0.5, 0.5], (0, 0)),
        (row(SfuOp.LAYERNORM, 1, _INF), [_NAN] * 2, (0, 1)),
        (row(SfuOp.LAYERNORM, scalar=1e-5), [], (1, 0)),
        (row(SfuOp.ADD, 1, _INF, -1, bias=bits(np.array([2, -_INF, 1], np.float32))), [3, _NAN, 0], (0, 1)),
        (row(SfuOp.SILU, -_INF, _INF, 0, -1e30, 1e30), [-0.0, _INF, 0, -0.0, 1e30], (0, 0)),
        (row(SfuOp.GELU, -_INF, _INF, 0, -1e30, 1e30), [-0.0, _INF, 0, -0.0, 1e30], (0, 0)),
        (row(SfuOp.RELU, -_INF, _INF, -0.0, -1, 2), [0, _INF, 0, 0, 2], (0, 0)),
        (row(SfuOp.RELU, _NAN, -1), [_NAN, 0], (0, 1)),
        (row(SfuOp.COPY, -_INF, -0.0, 1e-40, 3), [-_INF, -0.0, 1e-40, 3], (0, 0)),
    ]
    for made, values, flags in cases:
        answer = made.answer(p)
        codes = bits(np.array(values, np.float32)).tolist()
        compare([*answer.data[answer.keep].tolist(), answer.zero, answer.nan], [*codes, *flags],
                f"the model, {SfuOp(made.op).name}: results, zero, nan")
    await bench.check([made for made, _, _ in cases], "cases")


@bench_test(timeout_us=3000)
async def cycles_are_as_promised(dut: Any) -> None:
    """Every operation: first and last beat, response and next command come when the closed form says."""
    await start(dut)
    bench = Play(dut)
    await cycles(3)
    p, lanes = bench.p, bench.p.lanes
    for op in SfuOp:
        for length in (0, 1, lanes + 1, bench.longest):
            jobs = [random_job(p, bench.gen, length, op=op) for _ in range(2)]
            seen = {name: len(monitor(name).stamps) for name in ("i_command", "o_row", "o_response")}
            await bench.check(jobs, f"{op.name}, length {length}")
            command, row, response = (monitor(name).stamps[count:] for name, count in seen.items())
            want = sfu_cycles(p, op, length)
            last = len(jobs[0].row.data) - 1
            compare([row[0], row[last], response[0], command[1]],
                    np.array([want.first, want.last, want.last - 1, want.period]) + command[0],
                    f"{op.name}, length {length}: first and last beat, response, next command")


@bench_test(timeout_us=1000)
async def nobody_takes_results(dut: Any) -> None:
    """The lanes stand still, nothing is lost, and no other command begins before a response is taken."""
    await start(dut)
    bench = Play(dut)
    jobs = [random_job(bench.p, bench.gen, bench.longest, op=op) for op in (SfuOp.SILU, SfuOp.SOFTMAX, SfuOp.COPY)]
    bench.result.rate(1e-9)
    bench.send(jobs)
    await cycles(200)
    compare(len(monitor("i_command").stamps), 1, "commands while results wait")
    bench.result.rate(1.0)
    bench.response.rate(1e-9)
    await cycles(400)
    compare(len(monitor("i_command").stamps), 1, "commands while a response waits")
    bench.response.rate(1.0)
    answers = [j.answer(bench.p) for j in jobs]
    beats = await bench.result.take(sum(len(a.data) for a in answers))
    check(bench.p, answers, beats, await bench.response.take(len(jobs)), "after the pause")


@bench_test(timeout_us=100)
async def no_stream_is_open_in_reset(dut: Any) -> None:
    """Known fault: ready is high during reset, and what is taken then is lost."""
    await start(dut)
    await cycles(3)
    dut.rst.value = 1
    await cycles(1)
    compare([int(getattr(dut, f"i_{name}__ready").value) for name in ("command", "row", "operands")], [0] * 3,
            "ready in reset")
    dut.rst.value = 0
    await cycles(1)
    compare(int(dut.i_command__ready.value), 1, "ready after reset")
