"""Bench of the pseudo-channel: commands right and wrong against the golden model, in results and in cycles."""

from typing import Any

import numpy as np

from sim_models.golden.pim.channel.channel_commands import BANKS, GROUPS, REDUCES, SPREADS, Command, status, words
from sim_models.golden.pim.channel.pseudo_channel import PseudoChannel
from sim_models.params.pim.bank.dram_bank import TIMINGS
from tb.common import params
from tb.common.bench import bench_test
from tb.common.clock import cycles, engine, reset, rng, start
from tb.common.scenarios import every_scenario, play
from tb.common.scoreboard import compare
from tb.common.streams import Sink, Source, bursts, random
from tb.common.timings import same_at_every_timing
from tb.pim.channel.channel_host import ChannelCodecs, compare_responses
from tb.pim.channel.channel_sessions import Session, SessionMaker, fill, numbers

_SMALL = {"rows": 8, "columns": 4, "buffer_words": 32, "accumulators": 8}
VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "fast": {**TIMINGS["fast"], **_SMALL, "lanes": 1},
    "plain_int8": {**TIMINGS["fast"], **_SMALL, "lanes": 1, "format": "int8", "open_rows": 1},
}
#: what the simulator compiles once, and not sixteen times
ONCE = ("bank_pe",)
#: words of a bank, and of the buffer, that the bench fills and uses: all of a small one
USED = 32


class Host:
    """All drivers of the pseudo-channel, and its golden model."""

    def __init__(self, dut: Any, gen: np.random.Generator) -> None:
        self.dut, self.gen, self.p = dut, gen, params()
        self.codecs, self.model = ChannelCodecs(self.p), PseudoChannel(self.p)
        self.commands = Source(dut, "i_command", self.codecs.command, gen)
        self.data = Source(dut, "i_data", self.p.word_width, gen)
        self.responses = Sink(dut, "o_response", self.codecs.response, gen)
        self.sums = Sink(dut, "o_sums", self.codecs.sums, gen)
        self.sources, self.sinks = [self.commands, self.data], [self.responses, self.sums]
        self.maker = SessionMaker(self.p, gen, used=USED)

    def vary(self) -> None:
        """Another pace for every stream."""
        for driver in (*self.sources, *self.sinks):
            driver.rate([random(1.0), random(0.6), random(0.2), bursts(5, 9)][self.gen.integers(4)])

    def full(self) -> None:
        """Full pace."""
        for driver in (*self.sources, *self.sinks):
            driver.rate(1.0)

    async def restart(self, count: int = 1) -> None:
        """Reset in the middle of whatever it is."""
        await reset(self.dut, count)
        self.model.reset()
        self.maker.restart()

    def send(self, session: Session) -> None:
        """Queue all of it."""
        self.commands.send_packed(self.codecs.commands(session.commands))
        if len(session.data):
            self.data.send_packed(self.codecs.data(session.data))

    async def run(self, session: Session, name: str) -> list[np.ndarray]:
        """Queue a session and compare statuses and sums; returns the sums."""
        self.send(session)
        outcome = self.model.run(session.commands, session.data)
        payloads, _ = await self.responses.take_packed(len(session.commands))
        compare_responses(session.commands, self.codecs.responses(payloads), outcome.responses, name, exact=False)
        sums = []
        if outcome.beats:
            sums.append((await self.sums.take_packed(len(outcome.beats)))[0])
            compare(sums[0], self.codecs.beats(outcome), f"{name}: sums")
        compare(int(self.dut.error.value), 0, f"{name}: rule of DRAM that was broken")
        return sums

    async def fill(self) -> None:
        """Give all words that are used a value."""
        await self.run(fill(self.p, self.gen, USED), "fill")


@every_scenario
@bench_test(timeout_us=600)
async def scenarios(dut: Any, scenario: Any) -> None:
    """A product of as many words as the size says, from LOAD and WRITE to READ."""
    await start(dut)
    gen = rng()
    host = Host(dut, gen)
    p = host.p

    async def job(size: int) -> None:
        address, int8 = int(gen.integers(p.columns)), not p.fp16
        # a job before may have been cut off: every word that counts is written again
        session = [Command(op="load", count=size),
                   *[Command(op="write", address=address, count=size, group=g, bank=b)
                     for g in range(GROUPS) for b in range(BANKS)],
                   Command(op="mac", address=address, count=size, outputs=1, clear=True, int8=int8),
                   Command(op="read", outputs=1, reduce=str(gen.choice(REDUCES)), int8=int8)]
        await host.run(Session.at_once(session, numbers(p, gen, 17 * size)), f"{size} words")

    await play(dut, scenario, lanes=2, sources=host.sources, sinks=host.sinks, gen=gen, job=job)


@bench_test(timeout_us=4000)
async def same_sums_at_any_timing(dut: Any) -> None:
    """A product, a wrong command in it, with each stream held back, and ahead of the others.

    Refreshes fall at other places each time, and rows are hit or missed.
    """
    await start(dut)
    gen, p = rng(), params()
    host = Host(dut, gen)
    await host.fill()
    int8 = not p.fp16
    product = [Command(op="load", count=4), Command(op="write", address=1, count=4, group=1, bank=2),
               Command(op="mac", address=p.columns, count=0, outputs=1, clear=True, int8=int8),
               Command(op="mac", address=1, count=4, outputs=2, clear=True, int8=int8),
               Command(op="read", outputs=2, reduce="none", int8=int8),
               Command(op="read", outputs=2, reduce="all", int8=int8)]
    compare([status(p, c) != "ok" for c in product].count(True), 1, "commands that are wrong")
    session = Session.at_once(product, numbers(p, gen, sum(words(c) for c in product)))
    await same_at_every_timing(sources=host.sources, sinks=host.sinks, job=lambda: host.run(session, "product"))


@bench_test(timeout_us=1500)
async def random_sessions(dut: Any) -> None:
    """Commands of all kinds, right and wrong, at any pace, with resets in between that cut a session off."""
    await start(dut)
    gen = rng()
    host = Host(dut, gen)
    await host.fill()
    for number in range(6):
        host.vary()
        await host.run(host.maker.make(12), f"session {number}")
        host.send(host.maker.make(12))
        await cycles(int(gen.integers(1, 300)))
        await host.restart(int(gen.integers(1, 4)))
        host.full()
        await host.fill()


@bench_test(timeout_us=400)
async def exact_cycles(dut: Any) -> None:
    """At full pace every response and every beat comes in the cycle that the model says."""
    await start(dut)
    gen = rng()
    host = Host(dut, gen)
    await host.fill()
    for number in range(3):
        await host.restart()
        begin = engine().cycle + 1          # the first edge without reset is that of cycle 0
        session = host.maker.make(15)
        host.send(session)
        offered = await _first(host)
        outcome = host.model.run(session.commands, session.data, offered=[offered - begin] * len(session.commands),
                                 data_offered=[offered - begin] * len(session.data))
        payloads, stamps = await host.responses.take_packed(len(session.commands))
        compare_responses(session.commands, host.codecs.responses(payloads), outcome.responses, f"session {number}",
                          exact=True)
        compare(stamps - begin, outcome.response_times, "cycles of responses")
        if outcome.beats:
            beats, stamps = await host.sums.take_packed(len(outcome.beats))
            compare(beats, host.codecs.beats(outcome), "sums")
            compare(stamps - begin, outcome.beat_times, "cycles of sums")


async def _first(host: Host) -> int:
    """The cycle in which the first command is accepted."""
    monitor = host.commands.monitor
    seen = len(monitor.stamps)
    await engine().until(lambda: len(monitor.stamps) > seen)
    return monitor.stamps[seen]


@bench_test(timeout_us=300)
async def statuses(dut: Any) -> None:
    """Every reason to refuse, with nothing done; words of refused commands are dropped."""
    await start(dut)
    gen, p = rng(), params()
    host = Host(dut, gen)
    await host.fill()
    int8 = not p.fp16
    mac = Command(op="mac", count=1, outputs=1, clear=True, int8=int8)
    wrong: list[tuple[str, Command]] = [
        ("count", Command(op="load", count=0)), ("count", Command(op="write", count=0)),
        ("count", Command(op="mac", count=0, outputs=1)), ("count", Command(op="mac", count=1, outputs=0)),
        ("count", Command(op="read", outputs=0)),
        ("address", Command(op="write", address=p.words - 1, count=2)),
        ("address", Command(op="write", address=(1 << 24) - 1, count=1)),
        ("address", Command(op="mac", address=p.words - 5, count=3, outputs=2, int8=int8)),
        ("buffer", Command(op="load", base=p.buffer_words - 1, count=2)),
        ("buffer", Command(op="load", base=65535, count=1)),
        ("buffer", Command(op="mac", base=p.buffer_words - 1, count=2, outputs=1, int8=int8)),
        *[("buffer", Command(op="mac", base=p.buffer_words - 4, count=2, outputs=1, spread=s, int8=int8))
          for s in SPREADS[1:3]],
        *[("buffer", Command(op="mac", base=base, count=1, outputs=1, spread=s, int8=int8))
          for s in SPREADS[1:3] for base in (1, 2, 3)],
        ("accumulator", Command(op="read", first=p.half - 1, outputs=2, int8=int8)),
        ("accumulator", Command(op="read", first=p.accumulators - 1, outputs=2, int8=int8)),
        ("accumulator", Command(op="mac", count=1, first=p.half - 1, outputs=2, int8=int8)),
        ("accumulator", Command(op="mac", count=1, first=255, outputs=1, int8=int8)),
        ("format", Command(op="mac", count=1, outputs=1, spread="invalid", int8=int8)),
        *[("format", Command(op="mac", count=1, outputs=1, int8=True))] * (not p.int8),
        *[("format", Command(op=op, count=1, outputs=1, int8=False)) for op in ("mac", "read")] * (not p.fp16),
    ]
    for want, command in wrong:
        assert status(p, command) == want, command
        # what is behind it works, and finds the accumulator as it was
        session = [mac, command, Command(op="load", base=1, count=2),
                   Command(op="write", address=2, count=1), Command(op="read", outputs=1, reduce="all", int8=int8)]
        await host.run(Session.at_once(session, numbers(p, gen, sum(words(c) for c in session))), want)


@bench_test(timeout_us=100)
async def every_spread_and_reduction(dut: Any) -> None:
    """All pairs of them, one after the other."""
    await start(dut)
    gen, p = rng(), params()
    host = Host(dut, gen)
    await host.fill()
    session: list[Command] = []
    for spread in SPREADS[:3]:
        for k, reduce in enumerate(REDUCES):
            first = k % 2 * p.half
            session += [Command(op="mac", address=k, base=4, count=3, first=first, outputs=2, spread=spread,
                                clear=True, int8=not p.fp16),
                        Command(op="read", first=first, outputs=2, reduce=reduce, int8=not p.fp16)]
    await host.run(Session.at_once(session, numbers(p, gen, 0)), "spreads and reductions")


@bench_test(timeout_us=20)
async def takes_nothing_in_reset(dut: Any) -> None:
    """Known fault: ready is high during reset. The data stream is ready while a LOAD waits for its words."""
    await start(dut)
    host = Host(dut, rng())
    host.send(Session.at_once([Command(op="load", count=5)], numbers(host.p, host.gen, 0)))
    await cycles(12)
    compare([int(dut.i_command__ready.value), int(dut.i_data__ready.value)], [1, 1], "ready")
    dut.rst.value = 1
    await cycles(1)
    compare([int(dut.i_command__ready.value), int(dut.i_data__ready.value)], [0, 0], "ready in reset")
    dut.rst.value = 0
    await cycles(2)
