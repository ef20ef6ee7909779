"""The Manager's RTL: every cycle as the golden model has it, and texts as the target alone would write them."""

import dataclasses
import itertools

import numpy as np
import pytest

from sim_models.golden.manager import manager as golden
from sim_models.golden.manager.draft_controller import CONFIDENCE, CUMULATIVE, FIXED
from sim_models.golden.manager.manager import Inputs, Switches
from sim_models.params.manager.manager import ManagerParams
from sim_models.specdec.costs import MappedCosts
from sim_models.specdec.fixed import quantise
from sim_models.specdec.traces import RequestTrace
from tb.manager.manager_engines import Engines, expected_texts, random_traces
from tb.manager.manager_machine import Machine, play
from tb.manager.manager_run import run_streams
from tb.manager.near_traces import near_thresholds
from tb.manager.unruly_engines import UnrulyEngines
from tests.designs.run import BUILDS

SMALL = ManagerParams(request_width=3, lane_width=1, entries=16, eager_entries=8, token_width=6, position_width=8)
POOLS = {
    1: SMALL.replace(entries=1, eager_entries=1), 2: SMALL.replace(entries=2, eager_entries=2),
    7: SMALL.replace(entries=7, eager_entries=7, lane_width=0),
    512: ManagerParams(request_width=6, entries=512, eager_entries=128, position_width=12),
}
VARIANTS = {
    "fixed d": Switches(policy=FIXED, shared=False, eager=False, dynamic=False, max_draft=4),
    "-d": Switches(shared=False, eager=False, dynamic=False), "-p": Switches(eager=False, dynamic=False),
    "-s": Switches(dynamic=False), "full": Switches(),
    "confidence": Switches(policy=CONFIDENCE), "confidence -p": Switches(policy=CONFIDENCE, eager=False),
    "table": Switches(taus=(0,) * 8), "table -d": Switches(taus=(0,) * 8, shared=False, eager=False),
}
TAUS = (0.0, 0.01, 0.1, 0.5, 1.0)
CAPACITIES = (1, 3, 8, 64)


def _engines(gen: np.random.Generator, p: ManagerParams, requests: list[RequestTrace]) -> Engines:
    """Engines of any latency, whose results come in any order."""
    draft, verify = gen.integers(1, 100, 2)
    return Engines(requests, lambda *_: int(gen.integers(1, draft + 1)),
                   lambda *_: int(gen.integers(1, 3 * verify + 1)), lanes=p.lanes, gen=gen)


def _any_switches(gen: np.random.Generator, p: ManagerParams) -> Switches:
    flags = gen.random(4) < (0.3, 0.75, 0.6, 0.5)
    low = int(gen.integers(1, 4))
    return Switches(
        policy=int(gen.choice([FIXED, CUMULATIVE, CUMULATIVE, CONFIDENCE])), taus=_table(gen) if flags[0] else None,
        shared=bool(flags[1]), eager=bool(flags[2]), dynamic=bool(flags[3]),
        initial=(int(gen.integers(2)), int(gen.integers(2))), end_token=7 if gen.random() < 0.5 else None,
        max_draft=int(gen.choice([0, 1, 3, 8, 16])), tau=quantise(float(gen.choice(TAUS))),
        capacity=int(gen.choice([1, 3, 8, 23])), start=int(gen.choice([1, 2, 5])),
        engines=int(gen.integers(1, p.lanes + 1)), dlm_fc=(low, low + 1),
        tlm_attention=(16, 24)).fitted(p)


def _near(gen: np.random.Generator, p: ManagerParams, switches: Switches) -> tuple[Switches, list[RequestTrace]]:
    """Thresholds that differ from one load to the next, drafts whose H comes next to them, and every load."""
    taus = tuple(int(tau) for tau in gen.permutation(8) * 0xE00 + gen.integers(0x200, 0xE00, 8))
    switches = dataclasses.replace(switches, policy=CUMULATIVE, taus=taus if gen.random() < 0.7 else None,
                                   tau=taus[0], max_draft=8, shared=True, eager=gen.random() < 0.7).fitted(p)
    requests = random_traces(gen, p.requests, 16, end=switches.end_token, right=(0.9, 1.0))
    return switches, [near_thresholds(r, taus[:5], gen) for r in requests]


def _table(gen: np.random.Generator) -> tuple[int, ...]:
    """Thresholds for 1, 2, 3 to 4, 5 to 8, ... live requests."""
    return tuple(quantise(float(tau)) for tau in gen.choice(TAUS, 8))


@pytest.mark.parametrize("entries", [1, 7, 16])
def test_every_cycle_is_the_golden_models(entries: int) -> None:
    p = POOLS.get(entries, SMALL)
    machine = Machine(p, Switches(), BUILDS)
    for seed in range(24):
        gen = np.random.default_rng(seed)
        switches = _any_switches(gen, p)
        requests = random_traces(gen, int(gen.integers(1, 9)), 16, end=switches.end_token)
        if seed >= 12:
            switches, requests = _near(gen, p, switches)
        engines, model = _engines(gen, p, requests), golden.Manager(p, switches)
        machine.restart(switches)
        play(machine, engines, 60_000, ready=float(gen.choice([1, 0.5])), model=model)
        model.check()
        assert engines.texts == expected_texts(requests, switches.end_token), (seed, switches)
        assert machine.counters == model.counters, (seed, switches)


@pytest.mark.parametrize("entries", POOLS)
def test_texts_are_those_of_the_target(entries: int) -> None:
    """A drawn share of all variants, taus and capacities; batches from 1 to as many as there are requests."""
    p = POOLS[entries]
    machine = Machine(p, Switches(), BUILDS)
    gen = np.random.default_rng(entries)
    sizes = itertools.cycle([1, 2, 5, p.requests])
    for (name, switches), tau, capacity in itertools.product(VARIANTS.items(), TAUS, CAPACITIES):
        often = 0.25 if name.split()[0] in ("confidence", "table") else 1.0 if tau in (0.0, 1.0) else 0.4
        if gen.random() >= often:
            continue
        taus = switches.taus and (quantise(tau), *_table(gen)[1:])
        switches = dataclasses.replace(switches, tau=quantise(tau), taus=taus, capacity=capacity)
        requests = random_traces(gen, next(sizes), 6)
        slow = gen.integers(1, 60, 2)
        engines = Engines(requests, lambda *_, s=slow: int(gen.integers(1, s[0] + 1)),
                          lambda *_, s=slow: int(gen.integers(10, 10 + s[1])), lanes=p.lanes, gen=gen)
        machine.restart(switches)
        run_streams(machine.sim, p, engines, 200_000, least=10)
        assert engines.texts == expected_texts(requests), (name, tau, capacity)


@pytest.mark.parametrize("entries", [1, 16])
def test_beats_that_nobody_asked_for_change_nothing(entries: int) -> None:
    """Illegal tokens and verdicts are dropped and counted, in every cycle as the model has it; texts are right.

    Requests that want no token are answered, each once.
    """
    p = POOLS.get(entries, SMALL)
    machine = Machine(p, Switches(), BUILDS)
    illegal = refused = 0
    for seed in range(8):
        gen = np.random.default_rng([seed, entries])
        switches = _any_switches(gen, p)
        requests = random_traces(gen, int(gen.integers(1, 9)), 12, end=switches.end_token)
        slow = gen.integers(1, 100, 2)
        engines = UnrulyEngines(p, float(gen.choice([0.01, 0.06])), requests,
                                lambda *_, s=slow, g=gen: int(g.integers(1, s[0] + 1)),
                                lambda *_, s=slow, g=gen: int(g.integers(1, 3 * s[1] + 1)), gen=gen)
        model = golden.Manager(p, switches)
        machine.restart(switches)
        play(machine, engines, 60_000, ready=float(gen.choice([1, 0.5])), model=model)
        model.check()
        assert engines.texts == expected_texts(requests, switches.end_token), (seed, switches)
        assert not engines.unwanted
        counted = machine.counters
        assert counted == model.counters, (seed, switches)
        assert (counted["illegal"], counted["refused"]) == (engines.illegal, engines.refused)
        assert counted["completed"] == len(engines.finished) + engines.refused
        illegal, refused = illegal + engines.illegal, refused + engines.refused
    assert illegal > 100
    assert refused > 5


@pytest.mark.parametrize(("request_", "accepted"), [(0, 0), (1, 0), (2, 0), (2, 31), (1, 5)],
                         ids=["complete", "in no pass", "never sent", "never sent, many", "in no pass, many"])
def test_one_illegal_verdict_stops_nothing(request_: int, accepted: int) -> None:
    """It is taken after 4 cycles at rest; what was to come still comes, and nothing else is emitted."""
    machine = Machine(SMALL, Switches(eager=False, tau=0x8000), BUILDS)
    requests = random_traces(np.random.default_rng(2), 2, 8, right=(1.0,))
    first, second = requests[:1], requests
    engines = Engines(first, lambda *_: 9, lambda *_: 30, lanes=SMALL.lanes)
    play(machine, engines, 10_000)
    still = Inputs()
    for n in range(4):
        o = machine.step(dataclasses.replace(still, verdicts=(request_, accepted, 3, True)))
        assert (o.verdicts_ready, o.emitted) == (n == 3, None)
    assert not machine.steps(still, 4).busy
    engines = Engines(second, lambda *_: 9, lambda *_: 30, lanes=SMALL.lanes)
    play(machine, engines, 10_000)
    assert engines.texts == expected_texts(second)
    counted = machine.counters
    assert (counted["illegal"], counted["completed"]) == (1, 3)


def test_micro_batches_draft_in_turn() -> None:
    """One draft engine, slower than verification, and the same texts in each micro-batch: all get on alike."""
    p = SMALL.replace(lane_width=2)
    machine = Machine(p, Switches(), BUILDS)
    tokens = tuple(range(1, 41))
    trace = RequestTrace((1,), tokens, tuple((t, 0x7000) for t in tokens), {})
    engines = Engines([trace] * p.requests, lambda *_: 200, lambda *_: 50, lanes=p.lanes)
    machine.restart(Switches(tau=0x1000, start=4, max_draft=4, dynamic=False))
    play(machine, engines, 200_000)
    assert engines.texts == expected_texts(engines.requests)
    steps = [lane for kind, lane, _, _ in engines.intervals if kind == "draft"]
    last = {lane: n for n, lane in enumerate(steps)}
    whole = steps[:min(last.values()) - min(last.values()) % p.lanes]
    assert len(whole) >= 40
    # who waits is overtaken by nobody
    assert whole == [0, 1, 2, 3] * (len(whole) // p.lanes)
    ends = [max(n for n, served in enumerate(engines.passes) if r in served) for r in range(p.requests)]
    assert min(ends) >= 0.9 * max(ends)


def test_reset_at_random_cycles() -> None:
    machine = Machine(SMALL, Switches(), BUILDS)
    for seed in range(30):
        gen = np.random.default_rng(seed)
        requests = random_traces(gen, 8, 8)
        play(machine, _engines(gen, SMALL, requests), 10_000, cycles=int(gen.integers(1, 500)))
        machine.restart(Switches(capacity=12), int(gen.integers(1, 3)))
        if seed % 10 == 9:
            engines = _engines(gen, SMALL, requests)
            play(machine, engines, 60_000)
            assert engines.texts == expected_texts(requests)
            machine.restart(Switches())


@pytest.mark.parametrize("variant", ["-p", "full"])
def test_every_request_is_in_one_of_so_many_passes(variant: str) -> None:
    """8 requests of any probability, 3 rows: each is in at least one of any 3 passes in a row."""
    machine = Machine(SMALL, Switches(), BUILDS)
    gen = np.random.default_rng(3)
    requests = random_traces(gen, 8, 16)
    requests = [dataclasses.replace(r, target=r.target * 16, draft=r.draft * 16, branches={
        i + k * len(r.target): b for i, b in r.branches.items() for k in range(16)}) for r in requests]
    engines = Engines(requests, lambda *_: 9, lambda *_: 50, lanes=SMALL.lanes, limit=12)
    machine.restart(dataclasses.replace(VARIANTS[variant], capacity=3))
    play(machine, engines, 100_000)
    alive = {i: n for i, n in enumerate(engines.limits)}
    windows = [engines.passes[n:n + 3] for n in range(len(engines.passes) - 2)]
    complete = {r: max(n for n, served in enumerate(engines.passes) if r in served) for r in alive}
    for n, window in enumerate(windows):
        wanting = {r for r in alive if complete[r] >= n + 2}
        assert wanting <= set().union(*window), (n, window)
    assert len(windows) > 10


@pytest.mark.parametrize("variant", ["-p", "full"])
def test_a_run_by_events_is_a_run_by_cycles(variant: str) -> None:
    """The same texts, steps, passes and counters, with costs that depend on the mapping."""
    machine = Machine(SMALL, Switches(), BUILDS)
    costs = MappedCosts(fc=20, draft_attention=3, weights=300, row=40, attention=5)
    switches = dataclasses.replace(VARIANTS[variant], dlm_fc=(2, 3), tlm_attention=(24, 24), capacity=20, start=4)
    for seed in range(3):
        requests = random_traces(np.random.default_rng(seed), 7, 12)
        runs = []
        for by_events in (False, True):
            engines = Engines(requests, costs.draft, costs.verify, lanes=SMALL.lanes)
            machine.restart(switches)
            if by_events:
                run_streams(machine.sim, SMALL, engines, 100_000, least=300)
            else:
                play(machine, engines, 100_000)
            assert engines.texts == expected_texts(requests)
            runs.append((engines.intervals, engines.passes, machine.counters))
        assert runs[0] == runs[1]


def test_a_rejected_tail_is_not_kept_and_a_matching_one_is() -> None:
    """The bonus equals the first waiting token: it leaves and the rest stays; it does not: all leave."""
    right = RequestTrace((1,), tuple(range(2, 42)), tuple((t, 0x8000) for t in range(2, 42)), {})
    wrong = RequestTrace((1,), tuple(range(2, 42)), tuple((50, 0x8000) for _ in range(40)),
                         {i: tuple((51, 0x8000) for _ in range(20)) for i in range(40)})
    for trace, flushed in ((right, False), (wrong, True)):
        machine = Machine(SMALL, Switches(capacity=3, max_draft=8), BUILDS)
        engines = Engines([trace], lambda *_: 5, lambda *_: 40, lanes=SMALL.lanes)
        play(machine, engines, 60_000)
        assert engines.texts == [list(trace.target)]
        counted = machine.counters
        assert counted["emitted"] == 40
        if flushed:
            assert counted["accepted"] == 0
        else:
            # nothing that was drafted is drafted again
            assert counted["drafted"] <= 40
            assert counted["accepted"] == counted["drafted"]
