"""The pseudo-channel by the thousand: every response and every sum in the cycle that the golden model says."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from rtl.pim.bank.dram_bank import DramBank
from rtl.pim.channel.pseudo_channel import PseudoChannel
from sim_models.golden.pim.bank import dram_bank
from sim_models.golden.pim.channel.channel_commands import Command, words
from sim_models.params.pim.bank.dram_bank import TIMINGS, DramBankParams
from sim_models.params.pim.channel.pseudo_channel import PseudoChannelParams
from tb.common.native import NativeLibrary, NativeSim
from tb.pim.bank.bank_traffic import OUTPUTS, BankCodecs, expected, random_inputs
from tb.pim.channel.channel_host import ChannelHost
from tb.pim.channel.channel_sessions import Session, SessionMaker, fill, numbers
from tests.conftest import Extent
from tests.designs.run import BUILDS

P = PseudoChannelParams
SMALL: dict[str, Any] = {"rows": 8, "columns": 4, "buffer_words": 32, "accumulators": 8, "lanes": 1}
LARGE: dict[str, Any] = {"rows": 64, "buffer_words": 64, "lanes": 1, "format": "int8"}
#: both presets with one and two open rows; the processing elements have a bench of their own
CHANNELS = {
    "fast": P(**TIMINGS["fast"], **SMALL),
    "fast_plain": P(**TIMINGS["fast"], **{**SMALL, "format": "int8"}, open_rows=1),
    "hbm3": P(**TIMINGS["hbm3"], **LARGE),
    "hbm3_plain": P(**TIMINGS["hbm3"], **LARGE, open_rows=1),
}
PACES = [1.0, 1.0, 0.7, 0.3, 0.1]
#: words of the banks that random commands keep to: rows enough to meet and to miss
USED = 256


@pytest.fixture(scope="module", params=[
    "hbm3", "fast_plain", *(pytest.param(name, marks=pytest.mark.long) for name in ("fast", "hbm3_plain"))])
def compiled(request: pytest.FixtureRequest) -> tuple[PseudoChannelParams, NativeLibrary]:
    p = CHANNELS[request.param]
    return p, NativeSim(PseudoChannel(p), BUILDS).library


@pytest.fixture
def host(compiled: tuple[PseudoChannelParams, NativeLibrary]) -> ChannelHost:
    """A pseudo-channel whose memories are filled."""
    p, library = compiled
    host = ChannelHost(NativeSim(library), p)
    host.run(fill(p, np.random.default_rng(0), USED), "fill")
    return host


def _sessions(host: ChannelHost, gen: np.random.Generator, count: int, commands: int = 40) -> Iterator[Session]:
    maker = SessionMaker(host.p, gen, used=USED, wrong=0.2)
    for number in range(count):
        yield maker.make(commands, pauses=0.2 * (number % 2))


def test_every_cycle_is_that_of_the_model(host: ChannelHost, extent: Extent) -> None:
    """Hundreds of commands right and wrong, that come at once or with their words after any pause."""
    seen: set[str] = set()
    hits = misses = 0
    for number, session in enumerate(_sessions(host, extent.generator(1), extent.count(14, 300))):
        responses = host.run(session, f"session {number}").responses
        seen |= {r.status for r in responses}
        hits, misses = hits + sum(r.hits for r in responses), misses + sum(r.misses for r in responses)
    assert seen == {"ok", "count", "format", "address", "buffer", "accumulator"}
    assert min(hits, misses) > 100


def test_results_do_not_depend_on_the_pace(host: ChannelHost, extent: Extent) -> None:
    """Streams that pause at random, each in its own way: the same statuses, accesses and sums."""
    gen = extent.generator(2)
    for number, session in enumerate(_sessions(host, gen, extent.count(14, 300))):
        host.rate(*(float(rate) for rate in gen.choice(PACES, len(host.sim.streams))))
        host.run(session, f"session {number}", exact=False)


def test_reset_at_any_cycle(host: ChannelHost, extent: Extent) -> None:
    """What was under way is forgotten, in every unit; the next session comes out as if it were the first."""
    gen = extent.generator(3)
    for number in range(extent.count(10, 300)):
        maker = SessionMaker(host.p, gen, used=USED)
        host.rate(*(float(rate) for rate in gen.choice(PACES, len(host.sim.streams))))
        # no WRITE or LOAD, of which one could not say how far it came
        session = maker.make(30)
        kept = [c for c in session.commands if not words(c)]
        host.send(Session.at_once(kept, session.data[:0]))
        host.sim.step(int(gen.integers(1, 400)))
        assert host.sim.get("error") == 0
        host.restart(int(gen.integers(1, 4)))
        maker.restart()
        host.run(maker.make(12), f"session after reset {number}")


def test_refresh_at_every_offset_of_a_command(host: ChannelHost) -> None:
    """Known fault: a refresh in the middle of a command. It falls before, into and behind each part of one."""
    p, int8 = host.p, host.p.format == "int8"
    mac = Command(op="mac", address=p.columns - 2, count=2, outputs=2, clear=True, int8=int8)
    session = Session.at_once([mac, Command(op="read", outputs=2, reduce="none", int8=int8)], np.zeros((0, 1)))
    lasts = p.rcd + 4 * p.ccd + 20
    first, last = p.refi - lasts - p.ras, p.refi + 20
    # HBM3 has to wait for long until a refresh is due: every third offset will do
    found = set()
    for start in range(first, last, 1 if p.refi < 1000 else 3):
        host.restart()
        host.sim.step(start)
        found.add(host.run(session, f"from cycle {start}").responses[0].misses)
    # 2 rows, of which one is opened again
    assert found >= {2, 3}


def test_units_overlap(host: ChannelHost) -> None:
    """READ and LOAD of the other halves cost a stream of MACs nothing at all."""
    p, int8 = host.p, host.p.format == "int8"
    count, outputs = p.buffer_words // 2, min(p.words // (p.buffer_words // 2), p.half)

    def mac(half: int) -> Command:
        return Command(op="mac", base=half * count, count=count, first=half * p.half, outputs=outputs, clear=True,
                       int8=int8)
    alone = [mac(k % 2) for k in range(8)]
    mixed = [c for k in range(8) for c in (
        mac(k % 2), Command(op="read", first=k % 2 * p.half, outputs=2, reduce="all", int8=int8),
        Command(op="load", base=(1 - k % 2) * count, count=min(count, 8)))]
    ends = []
    for commands in (alone, mixed):
        host.restart()
        data = numbers(p, np.random.default_rng(4), sum(words(c) for c in commands))
        outcome = host.run(Session.at_once(commands, data), "overlap")
        responses = zip(outcome.responses, outcome.response_times, commands, strict=True)
        ends.append([(r.cycles, time) for r, time, c in responses if c.op == "mac"])
    # the last one is answered in the same cycle; those before it may have to wait for READs before them
    assert ends[0][-1] == ends[1][-1]
    assert [cycles for cycles, _ in ends[0]] == [cycles for cycles, _ in ends[1]]


@pytest.mark.parametrize("p", [DramBankParams(lanes=1, rows=8, columns=4, open_rows=n, **TIMINGS[timing])
                               for timing in TIMINGS for n in (1, 2)], ids=lambda p: f"{p.refi}_{p.open_rows}")
def test_bank_by_itself(p: DramBankParams) -> None:
    """Thousands of commands straight to a bank: words, rules and counts, in every cycle."""
    sim, model, gen = NativeSim(DramBank(p), BUILDS), dram_bank.DramBank(p), np.random.default_rng(5)
    errors = set()
    for honesty in (1.0, 0.995, 0.97, 0.9, 0.3):
        sim.reset()
        model.reset()
        inputs, want = [], []
        for i in random_inputs([model], gen, 1200, honesty):
            inputs.append(i)
            want.append(expected(model, i))
        seen = sim.play(BankCodecs(p).ports(inputs), OUTPUTS)
        got = np.array([[int.from_bytes(bytes(row), "little") for row in seen[name]] for name in OUTPUTS]).T
        for cycle, (g, w) in enumerate(zip(got.tolist(), want, strict=True)):
            assert [a for a, b in zip(g, w, strict=True) if b is not None] == [b for b in w if b is not None], cycle
        errors.add(model.error)
    assert errors - {"none", "refi"}
