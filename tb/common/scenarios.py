"""What every stream block goes through: sizes, idle, back-pressure, pauses, resets, nothing left over.

A bench gives its drivers and a *job*, an async function ``job(size)`` that sends one piece of work of
``size`` elements, awaits all of its results and compares them::

    @every_scenario
    @bench_test(timeout_us=500)
    async def scenarios(dut, scenario): ...
        await play(dut, scenario, lanes=8, sources=[source], sinks=[sink], gen=gen, job=job)
"""

import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import cocotb
import numpy as np

from tb.common import bench_info
from tb.common.clock import cycles, engine, reset
from tb.common.patterns import Pattern, after_valid, always, bursts, late, random
from tb.common.scoreboard import compare
from tb.common.streams import Sink, Source

__all__ = ["SCENARIOS", "Leftover", "Scenario", "closed_in_reset", "every_scenario", "play"]

#: longer than any test
_FOREVER = 1 << 40


class Leftover(AssertionError):
    """After a complete job something was still in the device or in a driver."""


@dataclasses.dataclass(frozen=True)
class Scenario:
    """How a block is treated."""

    name: str
    source: Pattern = dataclasses.field(default_factory=always)
    sink: Pattern = dataclasses.field(default_factory=always)
    #: every size from 1 to 4 x lanes, instead of `runs` random ones
    every_size: bool = False
    #: jobs one after the other without a reset between them
    runs: int = 2
    #: jobs that are cut off by a reset at a random cycle first
    cut_off: int = 0
    #: sinks stop a while before the cut
    stall: bool = False


SCENARIOS: tuple[Scenario, ...] = (
    Scenario("sizes", every_size=True),
    Scenario("idle", source=random(0.2)),
    Scenario("back_pressure", sink=random(0.25)),
    Scenario("bursts", source=bursts(4, 4), sink=bursts(3, 6)),
    Scenario("polite_sink", sink=after_valid()),
    Scenario("random_reset", source=random(0.7), sink=random(0.7), cut_off=4),
    Scenario("pause_then_reset", cut_off=2, stall=True),
)

#: decorator: one test per scenario, passed as ``scenario``
every_scenario = cocotb.parametrize(scenario=[cocotb.Param(value=s, name=s.name) for s in SCENARIOS])


async def play(dut: Any, scenario: Scenario, *, lanes: int, sources: Sequence[Source], sinks: Sequence[Sink],
               gen: np.random.Generator, job: Callable[[int], Awaitable[None]]) -> None:
    """Run one scenario.

    Parameters
    ----------
    dut:
        A started device.
    lanes:
        Elements the block takes side by side; sizes go up to four times as many.
    sources, sinks:
        All drivers; their patterns are set here.
    gen:
        The test's generator.
    job:
        One piece of work, from sending to comparing.

    Raises
    ------
    Leftover
        A beat is left in a queue or offered by the device after a job and some idle cycles.
    """
    _treat(scenario, sources, sinks)
    if scenario.cut_off:
        # a complete job shows how long one takes, so that the others are cut while they are at work
        began = engine().cycle
        await job(4 * lanes)
        length = engine().cycle - began
        for _ in range(scenario.cut_off):
            await _cut(dut, scenario, sinks, gen, job(4 * lanes), int(gen.integers(1, length + 1)))
            _treat(scenario, sources, sinks)
    if scenario.every_size:
        sizes = list(range(1, 4 * lanes + 1))
    else:
        sizes = [int(n) for n in gen.integers(1, 4 * lanes + 1, scenario.runs)]
    for size in sizes:
        await job(size)
    await cycles(8)
    left = [f"{s.name}: {s.waiting} beats not accepted" for s in sources if s.waiting]
    left += [f"{s.name}: {s.available} extra beats" for s in sinks if s.available]
    left += [text for m in engine().monitors.values() if (text := m.debt())]
    if left:
        raise Leftover(f"scenario {scenario.name}: " + "; ".join(left))


def _treat(scenario: Scenario, sources: Sequence[Source], sinks: Sequence[Sink]) -> None:
    for source in sources:
        source.rate(scenario.source)
    for sink in sinks:
        sink.rate(scenario.sink)


async def _cut(dut: Any, scenario: Scenario, sinks: Sequence[Sink], gen: np.random.Generator,
               work: Awaitable[None], after: int) -> None:
    """Start a job, stop it after so many cycles and reset the device for a random time."""
    task = cocotb.start_soon(work, name="job to be cut off")
    await cycles(after)
    if scenario.stall:
        for sink in sinks:
            sink.rate(late(_FOREVER))
        await cycles(int(gen.integers(5, 20)))
    if not task.done():
        task.cancel()
    await reset(dut, int(gen.integers(1, 4)))


async def closed_in_reset(dut: Any, closed: Sequence[str] = ()) -> None:
    """While reset is held no input stream is ready, for a beat that is taken then is lost; afterwards all open.

    Call it on a device at rest, whose input streams are ready but for those of ``closed``.
    """
    names = [p.name.removesuffix("__ready") for p in bench_info().ports
             if p.direction == "out" and p.name.endswith("__ready")]
    for held in (0, 1, 0):
        dut.rst.value = held
        await cycles(1)
        compare([int(getattr(dut, f"{name}__ready").value) for name in names],
                [int(not held and name not in closed) for name in names],
                f"ready of {', '.join(names)}, reset {held}")
