"""Benches that take the simulator down, or never let it go on."""

import os
import signal
import time

from tb.common.bench import bench_test
from tb.common.clock import cycles, start
from tb.common.scoreboard import compare

HELD = []


@bench_test(timeout_us=20)
async def crashes(dut):
    await start(dut)
    compare(1, 1, "one")
    os.kill(os.getpid(), signal.SIGSEGV)


@bench_test(timeout_us=20)
async def blocks(dut):
    await start(dut)
    compare(1, 1, "one")
    time.sleep(60)


@bench_test(timeout_us=20)
async def forgets_await_and_keeps_it(dut):
    """The forgotten coroutine is not collected while the test runs."""
    await start(dut)
    compare(1, 1, "one")
    HELD.append(cycles(1))
