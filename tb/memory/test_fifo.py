"""Bench of the queue: every cycle against the golden model, capacity, latency, throughput, resets."""

from typing import Any

import numpy as np

from sim_models.golden.memory.fifo import Fifo
from tb.common import params
from tb.common.bench import bench_test
from tb.common.clock import cycles, engine, reset, rng, start
from tb.common.scenarios import closed_in_reset, every_scenario, play
from tb.common.scoreboard import compare
from tb.common.streams import Sink, Source, late, monitor, random
from tb.common.timings import same_at_every_timing

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "smallest": {"width": 1, "depth": 2},
    "deep": {"width": 18, "depth": 64},
    "wide": {"width": 256, "depth": 8},
}


def words(gen: np.random.Generator, count: int) -> np.ndarray:
    """Random words of the queue, Python integers (count,)."""
    width = params().width
    return np.array([int.from_bytes(gen.bytes(32), "little") & ((1 << width) - 1) for _ in range(count)], object)


@every_scenario
@bench_test(timeout_us=500)
async def scenarios(dut: Any, scenario: Any) -> None:
    await start(dut)
    gen, p = rng(), params()
    source = Source(dut, "i", p.width, gen)
    sink = Sink(dut, "o", p.width, gen)

    async def job(size: int) -> None:
        sent = words(gen, size)
        source.send(sent)
        compare((await sink.take(size)).astype(object), sent, f"{size} words")

    await play(dut, scenario, lanes=p.depth, sources=[source], sinks=[sink], gen=gen, job=job)


@bench_test(timeout_us=500)
async def same_words_at_any_timing(dut: Any) -> None:
    """Input and output held back in turn, longer than the queue is deep."""
    await start(dut)
    gen, p = rng(), params()
    source, sink = Source(dut, "i", p.width, gen), Sink(dut, "o", p.width, gen)
    sent = words(gen, 2 * p.depth + 3)

    async def job() -> np.ndarray:
        source.send(sent)
        came = (await sink.take(len(sent))).astype(object)
        compare(came, sent, "words")
        return came

    await same_at_every_timing(sources=[source], sinks=[sink], job=job)


@bench_test(timeout_us=500)
async def every_cycle(dut: Any) -> None:
    """Ready, valid and the head agree with the model in each cycle, in floods, droughts and after resets."""
    await start(dut)
    gen, p = rng(), params()
    model, seen = Fifo(p), []
    waiting: int | None = None
    await cycles(1)                                     # a source is still in the cycle after a reset
    for _ in range(24):
        offer, take = gen.choice([0.1, 0.5, 0.9, 1.0], 2)
        for _ in range(100):
            if waiting is None and gen.random() < offer:
                waiting = int(words(gen, 1)[0])
            waiting = await _cycle(dut, model, waiting, int(gen.random() < take), seen)
        if gen.random() < 0.5:
            dut.i__valid.value = dut.o__ready.value = 0
            await reset(dut, int(gen.integers(1, 3)))
            model.reset()
            waiting = None
            await cycles(1)
    # what is left is taken, so that nothing is owed at the end
    for _ in range(p.depth + 2):
        waiting = await _cycle(dut, model, waiting, 1, seen)
    compare(np.array([g for g, _ in seen], object), np.array([w for _, w in seen], object), "ready, valid, head")


async def _cycle(dut: Any, model: Fifo, waiting: int | None, take: int, seen: list[Any]) -> int | None:
    """One cycle with these inputs, noted in ``seen``; returns what still waits at the input."""
    dut.i__valid.value = int(waiting is not None)
    dut.i__payload.value = waiting or 0
    dut.o__ready.value = take
    await cycles(1)
    valid = int(dut.o__valid.value)
    seen.append(([int(dut.i__ready.value), valid, int(dut.o__payload.value) if valid else 0],
                 [int(model.ready), int(model.head is not None), model.head or 0]))
    accepted = model.ready
    model.step(offered=waiting, taken=bool(take))
    return None if accepted else waiting


@bench_test(timeout_us=200)
async def capacity_latency_throughput(dut: Any) -> None:
    """It takes exactly `depth` words, shows a word a cycle later, and moves one word a cycle."""
    await start(dut)
    gen, p = rng(), params()
    source = Source(dut, "i", p.width, gen)
    sink = Sink(dut, "o", p.width, gen, late(2 * p.depth + 20))
    first = words(gen, p.depth + 3)
    source.send(first)
    await cycles(2 * p.depth + 10)
    compare(monitor("i").rules.transfers, p.depth, "words taken while nobody takes any")
    compare((await sink.take(len(first))).astype(object), first, "words")
    await cycles(4)
    begin = engine().cycle
    second = words(gen, 100)
    source.send(second)
    came, stamps = await sink.take_packed(100)
    compare(np.array(sink.codec.to_ints(came), object), second, "words at full rate")
    sent = monitor("i").stamps[-100:]
    compare(stamps, np.array(sent) + 1, "each word shows in the next cycle")
    compare(np.diff(stamps), np.ones(99, np.int64), "a word a cycle")
    assert sent[0] > begin


@bench_test(timeout_us=200)
async def reset_empties(dut: Any) -> None:
    """Words of before a reset are gone, whatever the fill."""
    await start(dut)
    gen, p = rng(), params()
    source = Source(dut, "i", p.width, gen)
    sink = Sink(dut, "o", p.width, gen, random(0.5))
    for _ in range(6):
        source.send(words(gen, p.depth * 2))
        await cycles(int(gen.integers(1, 3 * p.depth)))
        await reset(dut, int(gen.integers(1, 4)))
        sent = words(gen, 5)
        source.send(sent)
        compare((await sink.take(5)).astype(object), sent, "words after a reset")


@bench_test(timeout_us=20)
async def takes_nothing_in_reset(dut: Any) -> None:
    """Known fault: ready is high during reset."""
    await start(dut)
    await cycles(1)
    await closed_in_reset(dut)
