"""Benches that deceive, one fault each; every test here must fail."""

import contextlib

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge, Timer

from tb.common.bench import bench_test
from tb.common.clock import cycles, rng, start
from tb.common.scenarios import Scenario, play
from tb.common.scoreboard import Scoreboard, compare
from tb.common.streams import Sink, Source, random
from tests.designs.test_echo import beats
from tests.designs.units import BEAT, Fault


@bench_test(timeout_us=20)
async def compares_nothing(dut):
    await start(dut)
    await cycles(5)


@cocotb.test(timeout_time=20, timeout_unit="us")
async def plain_cocotb_test(dut):
    await Timer(1, "ns")


@bench_test(timeout_us=20)
async def forgets_await(dut):
    await start(dut)
    compare(1, 1, "one")
    cycles(5)


@bench_test(timeout_us=20)
async def checker_still_waiting(dut):
    await start(dut)
    compare(1, 1, "one")
    sink = Sink(dut, "o_beat", BEAT, rng())

    async def checker():
        compare((await sink.take(1))["half"], [1], "half")
    cocotb.start_soon(checker(), name="checker")
    await cycles(5)


@bench_test(timeout_us=20)
async def got_is_empty(dut):
    await start(dut)
    compare([], [1, 2, 3], "beats")


@bench_test(timeout_us=20)
async def both_are_empty(dut):
    await start(dut)
    compare([], [], "beats")


@bench_test(timeout_us=20)
async def background_task_raises(dut):
    await start(dut)
    compare(1, 1, "one")

    async def checker():
        await cycles(2)
        compare(1, 2, "checker's value")
    cocotb.start_soon(checker(), name="checker")
    await cycles(10)


@bench_test(timeout_us=20)
async def background_task_is_swallowed(dut):
    await start(dut)
    compare(1, 1, "one")

    async def checker():
        await cycles(2)
        raise ValueError("nobody hears me")
    # waiting for the end alone does not fetch the exception
    await cocotb.start_soon(checker(), name="checker").complete


@bench_test(timeout_us=20)
async def violation_is_swallowed(dut):
    await start(dut)
    compare(1, 1, "one")
    board = Scoreboard("board")
    board.expect(1)
    with contextlib.suppress(AssertionError):
        board.got(2)


@bench_test(timeout_us=20)
async def reference_is_nan(dut):
    await start(dut)
    compare(np.float32(1.5), np.float32(np.nan), "softmax")


@bench_test(timeout_us=20)
async def scoreboard_pending(dut):
    await start(dut, fault=Fault.LOSES_LAST.value)
    gen = rng()
    board = Scoreboard("o_beat")
    source = Source(dut, "i_beat", BEAT, gen)
    Sink(dut, "o_beat", BEAT, gen, scoreboard=board)
    sent = beats(gen, 5)
    board.expect(*({"data": row} for row in sent["data"]))
    source.send(sent)
    await source.drained()


@bench_test(timeout_us=20)
async def extra_output(dut):
    await start(dut, fault=Fault.REPEATS_LAST.value)
    gen = rng()
    source = Source(dut, "i_beat", BEAT, gen)
    sink = Sink(dut, "o_beat", BEAT, gen, random(0.5))
    sent = beats(gen, 5)
    source.send(sent)
    compare((await sink.take(5))["data"], sent["data"], "data")


@bench_test(timeout_us=20)
async def extra_output_on_scoreboard(dut):
    await start(dut, fault=Fault.REPEATS_LAST.value)
    gen = rng()
    board = Scoreboard("o_beat")
    source = Source(dut, "i_beat", BEAT, gen)
    Sink(dut, "o_beat", BEAT, gen, scoreboard=board)
    sent = beats(gen, 5)
    board.expect(*({"data": row} for row in sent["data"]))
    source.send(sent)
    await source.drained()


@bench_test(timeout_us=20)
async def output_nobody_takes(dut):
    await start(dut)
    compare(1, 1, "one")
    source = Source(dut, "i_beat", BEAT, rng())
    source.send(beats(rng(), 1))
    await source.drained()


@bench_test(timeout_us=20)
async def source_not_drained(dut):
    await start(dut)
    compare(1, 1, "one")
    source = Source(dut, "i_beat", BEAT, rng())
    source.send(beats(rng(), 3))


@bench_test(timeout_us=20)
async def wrong_lane(dut):
    await start(dut, fault=Fault.WRONG_LANE.value)
    gen = rng()
    source = Source(dut, "i_beat", BEAT, gen)
    sink = Sink(dut, "o_beat", BEAT, gen)
    source.send(data=np.full((3, 8), 3), half=0, last=0)
    compare((await sink.take(3))["data"], np.full((3, 8), 3), "data")


@bench_test(timeout_us=5)
async def never_ends(dut):
    await start(dut)
    compare(1, 1, "one")
    while True:
        await RisingEdge(dut.clk)


@cocotb.skipif(True)
@bench_test(timeout_us=20)
async def skips(dut):
    compare(1, 1, "one")


async def one_scenario(dut, scenario):
    gen = rng()
    source = Source(dut, "i_beat", BEAT, gen)
    sink = Sink(dut, "o_beat", BEAT, gen)

    async def job(size):
        source.send(beats(gen, size))
        compare(len((await sink.take(size))["last"]), size, "beats")
    await play(dut, scenario, lanes=1, sources=[source], sinks=[sink], gen=gen, job=job)


@bench_test(timeout_us=20)
async def scenario_leaves_a_beat(dut):
    await start(dut, fault=Fault.REPEATS_LAST.value)
    await one_scenario(dut, Scenario("twice"))


@bench_test(timeout_us=20)
async def scenario_resets_a_stalled_beat(dut):
    await start(dut, fault=Fault.KEEPS_BEAT_OVER_RESET.value)
    await one_scenario(dut, Scenario("pause_then_reset", cut_off=3, stall=True))
