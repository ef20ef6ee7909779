"""The Manager with softmax unit and registers: every cycle as the golden model has it, texts as the target's own."""

import dataclasses

import numpy as np
import pytest

from sim_models.golden.manager import saddle_manager as golden
from sim_models.golden.manager.draft_controller import CONFIDENCE, FIXED
from sim_models.golden.manager.manager import Switches
from sim_models.params.base import ParamError
from sim_models.params.manager.saddle_manager import SaddleManagerParams
from sim_models.specdec.fixed import ONE
from tb.manager.manager_engines import Engines, expected_texts, random_traces
from tb.manager.saddle_machine import SaddleMachine, play_logits
from tb.manager.saddle_play import Feed, address, random_vector, vector
from tests.designs.run import BUILDS

SMALL = SaddleManagerParams(request_width=3, lane_width=1, entries=16, eager_entries=8, token_width=6,
                            position_width=8)
SWITCHES = (
    Switches(), Switches(policy=CONFIDENCE, tau=0x3000, end_token=7),
    Switches(taus=(0, 0, 0x2000, 0x4000, 0, 0, 0, 0)),
    Switches(shared=False, eager=False, engines=2, capacity=5), Switches(eager=False, start=3, tau=0x0100),
    Switches(policy=FIXED, max_draft=3),
)


def _engines(gen: np.random.Generator, count: int, length: int, end: int | None = None) -> Engines:
    draft, verify = gen.integers(1, 60, 2)
    requests = random_traces(gen, count, length, end=end)
    return Engines(requests, lambda *_: int(gen.integers(1, draft + 1)),
                   lambda *_: int(gen.integers(1, 3 * verify + 1)), lanes=SMALL.lanes, gen=gen)


@pytest.fixture(scope="module")
def machine() -> SaddleMachine:
    return SaddleMachine(SMALL, Switches(), BUILDS)


@pytest.mark.parametrize("number", range(len(SWITCHES)))
def test_every_cycle_is_the_golden_models(number: int, machine: SaddleMachine) -> None:
    """Vectors of any length from 1, greedy and given tokens, masked ones; tokens, cycles, counters and interrupt."""
    switches = SWITCHES[number]
    gen = np.random.default_rng(number)
    engines = _engines(gen, 6, 8, switches.end_token)
    feed = Feed(SMALL, lambda _, token, __: random_vector(gen, token, 60))
    machine.restart(switches)
    model = golden.SaddleManager(SMALL, switches.fitted(SMALL), interrupt=True, error_interrupt=True)
    for _ in range(2 * SMALL.requests + 8):
        model.step(golden.Inputs(draft_ready=False, verify_ready=False, emitted_ready=False))
    play_logits(machine, engines, feed, 60_000, ready=float(gen.choice([1, 0.5])), model=model)
    model.check()
    assert engines.texts == expected_texts(engines.requests, switches.end_token)
    assert machine.counters == model.counters
    assert model.counters["completed"] == len(engines.finished)
    assert model.counters["drafted"] == feed.sent
    still = golden.Inputs()
    machine.acknowledge(len(engines.finished) - 1)
    assert machine.steps(still, 3).irq
    machine.acknowledge(len(engines.finished))
    assert not machine.steps(still, 3).irq


@pytest.mark.parametrize(("request_", "accepted"), [(0, 0), (7, 1), (7, 31)],
                         ids=["complete", "never sent", "too many"])
def test_an_illegal_verdict_is_dropped_counted_and_told(request_: int, accepted: int, machine: SaddleMachine) -> None:
    """A verdict on a request that is in no pass: an error until it is acknowledged, and no text suffers."""
    gen = np.random.default_rng(accepted)
    machine.restart(Switches())
    requests = random_traces(gen, 2, 6)
    still = golden.Inputs()
    for complete, _ in enumerate(range(2), 1):
        engines = Engines(requests, lambda *_: 9, lambda *_: 40, lanes=SMALL.lanes)
        play_logits(machine, engines, Feed(SMALL, lambda _, token, p: vector(token, p, 64)), 60_000)
        assert engines.texts == expected_texts(requests)
        machine.acknowledge(complete * len(requests))
        assert not machine.steps(still, 3).irq
        bad = golden.Inputs(verdicts=(request_, accepted, 1, True))
        cycles = 1
        while not machine.step(bad).verdicts_ready:
            cycles += 1
        assert cycles == 4
        shown = machine.steps(still, 4)
        assert (shown.irq, shown.busy, shown.emitted) == (True, False, None)
        assert machine.counters["illegal"] == complete
        assert machine.read(address(SMALL, "status")) >> 3 == 1
        machine.acknowledge_errors(complete)
        assert not machine.steps(still, 3).irq
        assert machine.read(address(SMALL, "status")) >> 3 == 0


def test_a_request_that_wants_nothing_is_answered(machine: SaddleMachine) -> None:
    """An empty beat with its number and position, which counts as a completion and raises the interrupt."""
    machine.restart(Switches())
    for complete, (position, stop) in enumerate(((5, 5), (200, 3), (0, 0)), 1):
        i, seen = golden.Inputs(requests=(3, position, stop, 9), emitted_ready=False), []
        for _ in range(8):
            o = machine.step(i)
            assert not o.requests_ready
        o = machine.step(dataclasses.replace(i, emitted_ready=True))
        while not o.emitted:
            o = machine.step(dataclasses.replace(i, emitted_ready=True))
        seen.append(o.emitted)
        assert seen == [(3, position, 0, 1, 1)]
        assert o.requests_ready
        assert machine.steps(golden.Inputs(), 5).irq
        counted = machine.counters
        assert (counted["refused"], counted["completed"], counted["emitted"]) == (complete, complete, 0)
        machine.acknowledge(complete)
        assert not machine.steps(golden.Inputs(), 3).irq


def test_reset_at_random_cycles(machine: SaddleMachine) -> None:
    """Afterwards it decodes as if new, whatever was on its way, logits included."""
    for seed in range(12):
        gen = np.random.default_rng(seed)
        play_logits(machine, _engines(gen, 8, 8), Feed(SMALL, lambda _, token, __: vector(token, ONE // 2, 64)),
                    10_000, cycles=int(gen.integers(1, 900)))
        machine.restart(Switches(capacity=12), int(gen.integers(1, 3)))
        if seed % 4 == 3:
            engines = _engines(gen, 4, 6)
            play_logits(machine, engines, Feed(SMALL, lambda _, token, p: vector(token, p, 64)), 60_000)
            assert engines.texts == expected_texts(engines.requests)
            machine.restart(Switches())


def test_a_threshold_of_the_softmax_decides(machine: SaddleMachine) -> None:
    """Tokens of probability 0.7: H is 0.7, 0.49, 0.34, ...; the token below the threshold is the draft's last."""
    gen = np.random.default_rng(4)
    requests = [dataclasses.replace(r, target=r.target * 4, draft=tuple((t, ONE) for t in r.target * 4), branches={})
                for r in random_traces(gen, 1, 6, right=(1.0,))]
    for tau, length in ((0.4, 3), (0.6, 2), (0.8, 1)):
        engines = Engines(requests, lambda *_: 5, lambda *_: 200, lanes=SMALL.lanes)
        machine.restart(Switches(tau=int(tau * ONE), eager=False))
        play_logits(machine, engines, Feed(SMALL, lambda _, token, __: vector(token, int(0.7 * ONE), 64)), 60_000)
        c = machine.counters
        # the last draft may end with the text
        assert length >= (c["rows"] - c["served"]) / c["served"] > length - 0.5
        # a token took 8 beats, one cycle each behind the first, and the pipeline
        assert c["softmax"] >= c["drafted"] * (7 + SMALL.softmax.latency)
        assert c["deciding"] > c["softmax"]


@pytest.mark.parametrize(("changes", "message"), [
    ({"token_width": 4}, "token_width must be from 5 to 20 with a softmax unit, not 4"),
    ({"logit_lanes": 3}, "logit_lanes must be a power of two, not 3"),
])
def test_what_the_softmax_unit_cannot_do_is_refused(changes: dict[str, int], message: str) -> None:
    with pytest.raises(ParamError, match=message):
        SaddleManagerParams(**changes)
