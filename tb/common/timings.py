"""The same streams at other timings: all early, all late, one held back, random; the answers must be the same.

A timing says which streams stand still until everything else has come to rest, and how often the others move. Every
input is held back alone, and comes alone before all others; outputs are held back alone and together. Native runs
take beats from arrays (:func:`at_every_timing`), benches their drivers (:func:`same_at_every_timing`).
"""

import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tb.common.clock import cycles, engine
from tb.common.native import NativeSim
from tb.common.patterns import always, late, random
from tb.common.scoreboard import compare
from tb.common.streams import Sink, Source

__all__ = ["Timing", "at_every_timing", "same_at_every_timing", "timings"]

#: cycles that a device at rest is given to show a beat too many
_REST = 40


@dataclasses.dataclass(frozen=True)
class Timing:
    """When streams move.

    Members
    -------
    held: frozenset of str
        Streams that stand still at first.
    rate: float
        Chance of a move of the others in each cycle, and of all afterwards.
    """

    name: str
    held: frozenset[str] = frozenset()
    rate: float = 1.0


def timings(inputs: Sequence[str], outputs: Sequence[str]) -> tuple[Timing, ...]:
    """All timings of a device with these streams; the first has everything as early as can be."""
    found = {frozenset(): "early"}
    for name in inputs:
        found.setdefault(frozenset({name}), f"{name} late")
    for name in inputs:
        found.setdefault(frozenset(inputs) - {name}, f"{name} first")
    for name in outputs:
        found.setdefault(frozenset({name}), f"{name} late")
    found.setdefault(frozenset(outputs), "all outputs late")
    return (*(Timing(name, held) for held, name in found.items()), Timing("random", rate=0.5),
            Timing("slow", rate=0.15))


def at_every_timing(sim: NativeSim, beats: Mapping[str, np.ndarray], outputs: Mapping[str, int],
                    check: Callable[[dict[str, np.ndarray]], None], *, limit: int) -> int:
    """Run a Verilated device on the same streams at every timing, one run after the other without a reset.

    Parameters
    ----------
    sim:
        A device that each run leaves as it found it.
    beats:
        Payloads for each input stream, uint8 (n, bytes).
    outputs:
        Beats that each output stream must give.
    check:
        Takes the payloads of each output stream and raises when they are wrong; called once per timing.
    limit:
        Cycles after which a run hangs.

    Returns
    -------
    int
        Timings.

    Raises
    ------
    AssertionError
        ``check`` raised, or an output gave a beat too many; the message names the timing.
    NativeTimeout
        A run did not end.
    """
    done = timings(list(beats), list(outputs))
    length = 0
    for timing in done:
        target = {name: sim.total(name) + count for name, count in outputs.items()}
        for name in (*beats, *outputs):
            sim.rate(name, 0 if name in timing.held else timing.rate)
        for name, payloads in beats.items():
            sim.push(name, payloads)
        if timing.held:
            sim.step(length + _REST)
            for name in timing.held:
                sim.rate(name, timing.rate)
        began = sim.cycle
        sim.run(target, limit)
        length = length or sim.cycle - began
        sim.step(_REST)
        try:
            compare([sim.total(name) for name in outputs], list(target.values()), "beats of the outputs")
            check({name: sim.take(name)[0] for name in outputs})
        except AssertionError as error:
            raise AssertionError(f"timing {timing.name}: {error}") from error
    return len(done)


async def same_at_every_timing(*, sources: Sequence[Source], sinks: Sequence[Sink],
                               job: Callable[[], Awaitable[Any]]) -> None:
    """Run a bench's job at every timing, one after the other without a reset, and compare what it returns.

    Parameters
    ----------
    sources, sinks:
        All drivers; their patterns are set here.
    job:
        Sends the same beats each time, awaits all that comes and returns it: an array, or arrays in a sequence.

    Raises
    ------
    AssertionError
        A timing gives something else than the first one; the message names it.
    """
    length, first = 0, None
    for timing in timings([s.name for s in sources], [s.name for s in sinks]):
        pattern = always() if timing.rate == 1 else random(timing.rate)
        for driver in (*sources, *sinks):
            driver.rate(late(length + _REST) if driver.name in timing.held else pattern)
        began = engine().cycle
        answers = await job()
        length = length or engine().cycle - began
        await cycles(_REST)
        try:
            left = [f"{s.name}: {s.waiting} beats not accepted" for s in sources if s.waiting]
            left += [f"{s.name}: {s.available} extra beats" for s in sinks if s.available]
            assert not left, "; ".join(left)
            if first is None:
                first = answers
            _compare(answers, first)
        except AssertionError as error:
            raise AssertionError(f"timing {timing.name}: {error}") from error


def _compare(answers: Any, first: Any) -> None:
    if isinstance(answers, (list, tuple)):
        assert len(answers) == len(first), f"{len(answers)} answers came, {len(first)} at the first timing"
        for got, want in zip(answers, first, strict=True):
            compare(got, want, "answers")
    else:
        compare(answers, first, "answers")
