"""One broken rule per test, seen by the monitor; every test here must fail."""

from tb.common.bench import bench_test
from tb.common.clock import cycles, reset, rng, start
from tb.common.patterns import after_valid
from tb.common.scoreboard import compare
from tb.common.streams import Sink, Source, random
from tests.designs.test_echo import beats
from tests.designs.units import BEAT, Fault


async def traffic(dut, fault, sink_rate, count=200):
    """Beats through a faulty echo."""
    await start(dut, fault=fault.value)
    gen = rng()
    source = Source(dut, "i_beat", BEAT, gen)
    sink = Sink(dut, "o_beat", BEAT, gen, sink_rate)
    source.send(beats(gen, count))
    await sink.take(count)
    compare(1, 1, "one")


@bench_test(timeout_us=100)
async def drops_valid(dut):
    await traffic(dut, Fault.DROPS_VALID, random(0.3))


@bench_test(timeout_us=100)
async def changes_payload(dut):
    await traffic(dut, Fault.CHANGES_PAYLOAD, random(0.3))


@bench_test(timeout_us=100)
async def valid_follows_ready(dut):
    await traffic(dut, Fault.VALID_FOLLOWS_READY, random(0.99))


@bench_test(timeout_us=100)
async def payload_follows_ready(dut):
    await traffic(dut, Fault.PAYLOAD_FOLLOWS_READY, 1.0)


@bench_test(timeout_us=20)
async def waits_for_ready(dut):
    await traffic(dut, Fault.WAITS_FOR_READY, after_valid())


@bench_test(timeout_us=20)
async def valid_in_reset(dut):
    await traffic(dut, Fault.VALID_IN_RESET, 1.0)


@bench_test(timeout_us=20)
async def keeps_beat_over_reset(dut):
    await start(dut, fault=Fault.KEEPS_BEAT_OVER_RESET.value)
    source = Source(dut, "i_beat", BEAT, rng())
    source.send(beats(rng(), 1))
    await source.drained()
    await reset(dut, 2)
    compare(1, 1, "one")


@bench_test(timeout_us=20)
async def bad_driver_drops_valid(dut):
    await start(dut)
    compare(1, 1, "one")
    await cycles(1)
    # fill the echo, then offer a beat that it cannot take and withdraw it
    dut.i_beat__valid.value = 1
    await cycles(4)
    dut.i_beat__valid.value = 0
    await cycles(4)
