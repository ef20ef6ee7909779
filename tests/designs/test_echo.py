"""The bench of a good design: everything it should do, it does."""

import cocotb

from tb.common.bench import background, bench_test
from tb.common.clock import cycles, reset, rng, start
from tb.common.scenarios import every_scenario, play
from tb.common.scoreboard import Scoreboard, compare
from tb.common.streams import Sink, Source, after_valid, bursts, monitor, random
from tests.designs.units import BEAT

VARIANTS: dict[str, dict[str, object]] = {"default": {}}


def beats(gen, n):
    return {"data": gen.integers(-128, 128, (n, 8)), "half": gen.integers(0, 2, n),
            "last": [0] * (n - 1) + [1]}


@bench_test(timeout_us=50)
async def passes_on(dut):
    await start(dut)
    gen = rng()
    source = Source(dut, "i_beat", BEAT, gen, random(0.6))
    sink = Sink(dut, "o_beat", BEAT, gen, bursts(3, 3))
    sent = beats(gen, 200)
    source.send(sent)
    came = await sink.take(200)
    for field in ("data", "half", "last"):
        compare(came[field], sent[field], field)
    assert monitor("o_beat").rules.transfers == 200


@bench_test(timeout_us=50)
async def polite_sink(dut):
    await start(dut)
    gen = rng()
    board = Scoreboard("o_beat")
    source = Source(dut, "i_beat", BEAT, gen)
    Sink(dut, "o_beat", BEAT, gen, after_valid(), board)
    sent = beats(gen, 50)
    board.expect(*({"data": sent["data"][i], "last": sent["last"][i]} for i in range(50)))
    source.send(sent)
    await source.drained()


@bench_test(timeout_us=50)
async def reset_in_the_middle(dut):
    await start(dut)
    gen = rng()
    source = Source(dut, "i_beat", BEAT, gen, random(0.5))
    sink = Sink(dut, "o_beat", BEAT, gen, random(0.5))
    source.send(beats(gen, 30))
    await cycles(int(gen.integers(1, 20)))
    await reset(dut, int(gen.integers(1, 4)))
    compare(dut.o_count.value.to_unsigned(), 0, "count after reset")
    sent = beats(gen, 10)
    source.send(sent)
    compare((await sink.take(10))["data"], sent["data"], "data")


@every_scenario
@bench_test(timeout_us=200)
async def scenarios(dut, scenario):
    await start(dut)
    gen = rng()
    source = Source(dut, "i_beat", BEAT, gen)
    sink = Sink(dut, "o_beat", BEAT, gen)

    async def job(size):
        sent = beats(gen, -(-size // 8))
        source.send(sent)
        compare((await sink.take(len(sent["last"])))["data"], sent["data"], f"{size} elements")

    await play(dut, scenario, lanes=8, sources=[source], sinks=[sink], gen=gen, job=job)


@bench_test(timeout_us=50)
async def made_while_reset_is_high(dut):
    """Drivers need no edge of reset: made under reset, they wait for its end and lose nothing."""
    engine = await start(dut)
    await cycles(3)
    dut.rst.value = 1
    await cycles(2)
    gen = rng()
    source = Source(dut, "i_beat", BEAT, gen)
    sink = Sink(dut, "o_beat", BEAT, gen)
    sent = beats(gen, 6)
    source.send(sent)
    await cycles(3)
    compare([engine.in_reset, monitor("i_beat").rules.transfers, int(dut.i_beat__valid.value)], [1, 0, 0],
            "reset, transfers, valid under reset")
    dut.rst.value = 0
    compare((await sink.take(6))["data"], sent["data"], "data")


@bench_test(timeout_us=50)
async def waits_for_background_work(dut):
    """A task that ends before the test, and one declared endless, are both fine."""
    await start(dut)
    seen = []

    async def watch():
        while True:
            await cycles(1)
            seen.append(1)

    async def work():
        await cycles(5)
        return 7
    background(watch())
    compare(await cocotb.start_soon(work()), 7, "result")
    compare(len(seen) >= 5, True, "watched")


@bench_test(timeout_us=50)
async def takes_blocks(dut):
    """Beats up to the one marked last belong together."""
    await start(dut)
    gen = rng()
    source = Source(dut, "i_beat", BEAT, gen, random(0.5))
    sink = Sink(dut, "o_beat", BEAT, gen, random(0.5))
    blocks = [beats(gen, n) for n in (3, 1, 7)]
    for block in blocks:
        source.send(block)
    for block in blocks:
        compare((await sink.take_block())["data"], block["data"], "block")


@bench_test(timeout_us=50)
async def unwritten_memory_is_random(dut):
    """A design that relies on initial contents of a memory does not get zeros."""
    await start(dut)
    await cycles(2)
    compare(int(dut.stale.value) != 0, True, "a word nobody wrote")
