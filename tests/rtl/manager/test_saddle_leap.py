"""Runs of the golden model that leap over cycles of rest are those that do not, and count what the RTL counts."""

import dataclasses

import numpy as np
import pytest

from sim_models.golden.manager.manager import Switches
from sim_models.golden.manager.saddle_manager import Inputs, SaddleManager
from sim_models.params.manager.saddle_manager import SaddleManagerParams
from sim_models.specdec.traces import RequestTrace
from tb.manager.manager_engines import Engines, expected_texts, random_traces
from tb.manager.manager_run import run_streams
from tb.manager.saddle_leap import Exposed, Leaps, exposed
from tb.manager.saddle_machine import SaddleMachine
from tb.manager.saddle_play import Feed, Vector, logit_payloads, random_vector, vector
from tests.designs.run import BUILDS

SMALL = SaddleManagerParams(request_width=3, lane_width=1, entries=16, eager_entries=8, token_width=6,
                            position_width=8)
WIDE = dataclasses.replace(SMALL, token_width=12)


def _run(p: SaddleManagerParams, switches: Switches, requests: list[RequestTrace], seed: int, size: int, *, leap: bool
         ) -> tuple[Leaps, Engines, int]:
    gen, draft, verify = np.random.default_rng(seed), 700 + 90 * seed, 2500 + 170 * seed
    engines = Engines(requests, lambda n, _: draft * n, lambda n, rows, _: verify + 40 * rows, lanes=p.lanes)
    model = SaddleManager(p, switches.fitted(p), interrupt=True)

    def make(_: int, token: int, probability: int) -> Vector:
        return vector(token, probability, size) if size > 64 else random_vector(gen, token, size)
    leaps = Leaps(model, make)
    return leaps, engines, leaps.run(engines, 10_000_000, leap=leap)


@pytest.mark.parametrize("switches", [
    Switches(), Switches(eager=False, start=3), Switches(shared=False, eager=False, engines=2, capacity=5)])
@pytest.mark.parametrize("size", [60, 4000])
def test_a_run_that_leaps_is_one_that_does_not(size: int, switches: Switches) -> None:
    """The same tokens in the same cycles, counters and times of deciding; short vectors, and long ones leapt over."""
    p = SMALL if size <= 64 else WIDE
    for seed in range(3):
        requests = random_traces(np.random.default_rng(seed), 6, 8)
        (one, engines, cycles), (other, stepped, steps) = (
            _run(p, switches, requests, seed, size, leap=leap) for leap in (True, False))
        assert engines.texts == stepped.texts == expected_texts(requests)
        assert (cycles, engines.intervals) == (steps, stepped.intervals)
        assert one.model.counters == other.model.counters
        assert one.deciding == other.deciding
        assert other.leapt == 0
        assert one.leapt > cycles // 2
        assert one.feed.sent == other.feed.sent == one.model.counters["drafted"]
        one.model.check()
        open_ = exposed(one.deciding, engines.intervals)
        assert open_.deciding >= open_.drafter >= open_.machine > 0
        # the counter knows when a step's logits come, not when its engine is done; each decision may differ by a few
        events = sum(one.model.counters[name] for name in ("drafted", "passes", "served", "completed"))
        if switches.engines == 1:
            assert abs(one.model.counters["exposed"] - open_.machine) < 12 * events
        # and goes on in the same way
        still = Inputs(requests=(5, 3, 9, 1))
        assert [one.model.step(still) for _ in range(60)] == [other.model.step(still) for _ in range(60)]


def test_the_rtl_counts_the_same() -> None:
    """The Verilated Manager in a long run, fed by queues."""
    p, size = dataclasses.replace(WIDE, logit_lanes=16), 2000
    requests = random_traces(np.random.default_rng(5), 8, 12)
    leaps, engines, _ = _run(p, Switches(), requests, 2, size, leap=True)
    machine = SaddleMachine(p, Switches(), BUILDS)
    feed = Feed(p, lambda _, token, probability: vector(token, probability, size))
    hardware = Engines(requests, engines.draft_cycles, engines.verify_cycles, lanes=p.lanes)
    run_streams(machine.sim, p, hardware, 10_000_000,
                vector=lambda *token: logit_payloads(p, feed.split(*token)))
    assert hardware.texts == engines.texts
    assert machine.counters == leaps.model.counters


@pytest.mark.parametrize(("deciding", "intervals", "want"), [
    ([(0, 10)], [], Exposed(10, 10, 10)),
    ([(0, 10), (20, 30)], [("draft", 0, 5, 25)], Exposed(20, 10, 10)),
    ([(0, 10), (20, 30)], [("verify", 0, 5, 25)], Exposed(20, 20, 10)),
    ([(0, 10), (20, 30)], [("verify", 0, 22, 40), ("draft", 1, 8, 21), ("draft", 0, 3, 9)], Exposed(20, 12, 4)),
])
def test_what_is_exposed(deciding: list[tuple[int, int]], intervals: list[tuple[str, int, int, int]], want: Exposed
                         ) -> None:
    assert exposed(deciding, intervals) == want
