"""The bench of a good design: everything it should do, it does."""

from tb.common.bench import bench_test
from tb.common.clock import cycles, reset, rng, start
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
