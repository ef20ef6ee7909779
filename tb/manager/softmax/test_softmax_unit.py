"""Bench of the softmax unit: results bit for bit under any pauses, edges, latency and throughput."""

from typing import Any

import numpy as np

from rtl.manager.softmax.layouts import logits_beat, softmax_result
from sim_models.numerics.float32 import bits
from tb.common import params
from tb.common.bench import bench_test
from tb.common.clock import cycles, engine, rng, start
from tb.common.scenarios import Scenario, every_scenario, play
from tb.common.scoreboard import compare
from tb.common.streams import Sink, Source, monitor
from tb.manager.softmax.logits import FIELDS, Vector, beats, expected, random_vector

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "one_lane": {"lanes": 1, "token_width": 10},
    "two_lanes": {"lanes": 2, "token_width": 5},
    "widest": {"lanes": 64, "token_width": 20},
}


class Play:
    """The device between a source of beats and a sink of results."""

    def __init__(self, dut: Any) -> None:
        self.p, self.gen = params(), rng()
        self.source = Source(dut, "i", logits_beat(self.p), self.gen)
        self.sink = Sink(dut, "o", softmax_result(self.p), self.gen)

    def send(self, *vectors: Vector) -> None:
        for vector in vectors:
            self.source.send(**beats(self.p, vector))

    async def check(self, vectors: list[Vector], what: str) -> None:
        """Send vectors one behind the other and compare all results."""
        self.send(*vectors)
        got = await self.sink.take(len(vectors))
        compare(np.stack([got[name] for name in FIELDS], axis=1), expected(self.p, vectors),
                f"{what} [vector, {{{', '.join(FIELDS)}}}]")

    def random(self, length: int) -> Vector:
        return random_vector(self.gen, length, self.p.token_width)


@every_scenario
@bench_test(timeout_us=3000)
async def scenarios(dut: Any, scenario: Scenario) -> None:
    """Lengths from 1, pauses on both sides, resets in the middle."""
    await start(dut)
    bench = Play(dut)

    async def job(size: int) -> None:
        await bench.check([bench.random(size), bench.random(max(1, size // 2))], f"length {size}")
    await play(dut, scenario, lanes=params().lanes, sources=[bench.source], sinks=[bench.sink], gen=bench.gen,
               job=job)


@bench_test(timeout_us=4000)
async def anything(dut: Any) -> None:
    """Vectors of all kinds back to back, under pauses that change."""
    await start(dut)
    bench = Play(dut)
    longest = min(1 << bench.p.token_width, 40 * bench.p.lanes)
    for offered, taken in ((1.0, 1.0), (0.3, 1.0), (1.0, 0.02), (0.6, 0.1)):
        bench.source.rate(offered)
        bench.sink.rate(taken)
        await bench.check([bench.random(int(bench.gen.integers(1, longest + 1))) for _ in range(40)],
                          f"offered {offered:.0%}, taken {taken:.0%}")


@bench_test(timeout_us=1000)
async def edges(dut: Any) -> None:
    """What is defined for vectors that have no ordinary distribution, and the ends of the scale."""
    await start(dut)
    bench = Play(dut)
    lanes = bench.p.lanes

    def vector(*values: Any, keep: Any = True, given: int = -1) -> Vector:
        codes = bits(np.array(values, np.float32))
        return Vector(codes, np.broadcast_to(keep, codes.shape), given)
    inf, nan, biggest = np.inf, np.nan, float(np.finfo(np.float32).max)
    cases = [
        (vector(-5), [0, 0, 0x8000, 0, 0]), (vector(-inf), [0, 0, 0, 1, 0]), (vector(nan), [0, 0, 0, 1, 1]),
        (vector(3, keep=False), [0, 0, 0, 1, 0]), (vector(nan, keep=False), [0, 0, 0, 1, 0]),
        (vector(-inf, -inf, given=1), [1, 0, 0, 1, 0]), (vector(-inf, -biggest), [1, 1, 0x8000, 0, 0]),
        (vector(nan, -3e38, -inf), [1, 1, 0x8000, 0, 1]), (vector(2, 2), [0, 0, 0x4000, 0, 0]),
        (vector(2, 2, given=1), [1, 0, 0x4000, 0, 0]), (vector(0.0, -0.0, 1e-40), [0, 0, 0x2AAB, 0, 0]),
        (vector(-0.0, 0.0, 0.0, -0.0), [0, 0, 0x2000, 0, 0]), (vector(0, inf), [1, 1, 0x8000, 0, 0]),
        (vector(inf, biggest), [0, 0, 0x4000, 0, 0]), (vector(biggest, -biggest), [0, 0, 0x8000, 0, 0]),
        (vector(biggest, -biggest, given=1), [1, 0, 0, 0, 0]), (vector(1, 2, given=2), [2, 1, 0, 0, 0]),
        (vector(1, 1, keep=[False, True], given=0), [0, 1, 0, 0, 0]),
        # what is masked does not move the others, whole beats of it included
        (vector(*[9.0] * 3 * lanes, 1.0, keep=[*[False] * 3 * lanes, True]), [3 * lanes, 3 * lanes, 0x8000, 0, 0]),
        (vector(*[-inf] * 2 * lanes, 5, -inf, 5), [2 * lanes, 2 * lanes, 0x4000, 0, 0]),
        (vector(*[1.0] * 32), [0, 0, 0x0400, 0, 0]),
        # each far above the one before: only the last counts; in several bands: all do
        (vector(*np.repeat(np.arange(4) * 100.0, lanes), given=0), [0, 3 * lanes, 0, 0, 0]),
        (vector(0, *[-inf] * (lanes - 1), 32, *[-inf] * (lanes - 1), 32.5, 32.5), [2 * lanes, 2 * lanes, None, 0, 0]),
    ]
    cases = [(v, want) for v, want in cases if len(v.codes) <= 1 << bench.p.token_width]
    model = expected(bench.p, [v for v, _ in cases])
    want = [[m if w is None else w for m, w in zip(row, wanted, strict=True)]
            for row, (_, wanted) in zip(model.tolist(), cases, strict=True)]
    bench.send(*(v for v, _ in cases))
    got = await bench.sink.take(len(cases))
    compare(np.stack([got[name] for name in FIELDS], axis=1), want, f"[case, {{{', '.join(FIELDS)}}}]")
    compare(model, want, "the model")


@bench_test(timeout_us=1000)
async def new_bands(dut: Any) -> None:
    """Levels that rise by a part of a band, by several, and by more than are summed: all have weight before."""
    await start(dut)
    bench = Play(dut)
    gen, lanes = bench.gen, bench.p.lanes
    vectors = []
    for steps in ((11, 0.2), (11.1, 11.1, 11.1, 11.1), (22, 11.5, 0.4), (33.2, 0.4), (44.5, 5), (5, 40, 0)):
        level = np.concatenate([[0.0], np.cumsum(steps)]).repeat(lanes)[:1 << bench.p.token_width]
        for _ in range(8):
            codes = bits((level + gen.uniform(-0.3, 0.3, len(level)) + gen.choice([0, -1e3])).astype(np.float32))
            token = int(gen.integers(-1, len(level)))
            vectors.append(Vector(codes, np.ones(len(level), bool), token))
    await bench.check(vectors, "levels")


@bench_test(timeout_us=1000)
async def latency_and_throughput(dut: Any) -> None:
    """A result ``latency`` cycles behind its last beat; a beat a cycle, but only so many vectors at a time."""
    await start(dut)
    bench = Play(dut)
    p = bench.p
    await cycles(3)
    for length in (1, 20):
        await bench.check([bench.random(length)], f"alone, length {length}")
        stamps = monitor("i").stamps[-1], monitor("o").stamps[-1]
        compare(stamps[1] - stamps[0], p.latency, f"cycles from the last beat to the result, length {length}")
    count = p.results
    short = -(-(p.latency + 1) // count)
    before = len(monitor("i").stamps)
    await bench.check([bench.random(p.lanes * (short + k % 3)) for k in range(3 * count)], "vectors of a few beats")
    stamps = monitor("i").stamps[before:]
    compare(stamps[-1] - stamps[0], len(stamps) - 1, "cycles of the beats of vectors of a few beats")
    before = len(monitor("i").stamps)
    await bench.check([bench.random(1 + k % p.lanes) for k in range(3 * count)], "vectors of a beat")
    stamps = np.array(monitor("i").stamps[before:])
    compare(np.diff(stamps[:count]), [1] * (count - 1), "cycles between the first vectors of a beat")
    compare(stamps[count:] - stamps[:-count], [p.latency + 1] * 2 * count, "cycles for so many vectors of a beat")
    assert engine().cycle > 0


@bench_test(timeout_us=2000)
async def a_result_waits_and_nothing_is_lost(dut: Any) -> None:
    """Nobody takes results: beats stop being taken, and go on afterwards."""
    await start(dut)
    bench = Play(dut)
    bench.sink.rate(1e-9)
    vectors = [bench.random(1 + n % bench.p.lanes) for n in range(bench.p.results + 3)]
    bench.send(*vectors)
    await cycles(3 * bench.p.latency)
    compare([len(monitor(name).stamps) for name in ("i", "o")], [bench.p.results, 0], "beats and results taken")
    bench.sink.rate(1.0)
    got = await bench.sink.take(len(vectors))
    compare(np.stack([got[name] for name in FIELDS], axis=1), expected(bench.p, vectors), "results")


@bench_test(timeout_us=100)
async def nothing_is_taken_in_reset(dut: Any) -> None:
    """Known fault: ready is high during reset, and what is taken then is lost."""
    await start(dut)
    await cycles(3)
    dut.rst.value = 1
    await cycles(1)
    compare(int(dut.i__ready.value), 0, "ready in reset")
    dut.rst.value = 0
    await cycles(1)
    compare(int(dut.i__ready.value), 1, "ready after reset")
