"""The timeline of a run is a trace in Chrome's event format that a viewer can show without guessing."""

import itertools
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sim_models.golden.manager.manager import Switches
from sim_models.params.manager.manager import ManagerParams
from speculoos.bench import manager as bench_manager
from speculoos.bench.manager_trace import chrome_trace
from speculoos.report import Report
from tb.manager.manager_engines import Engines, random_traces
from tb.manager.manager_machine import Machine
from tb.manager.manager_meter import Intervals
from tb.manager.manager_run import run_streams
from tests.app.test_bench_manager import _args, _config, _Meter
from tests.designs.run import BUILDS
from tests.rtl.manager.test_manager_native import SMALL

DRAFT, VERIFY = 30, 170
NUMBERS = (int, float)


def checked(document: Any) -> dict[str, list[tuple[str, float, float]]]:
    """Tracks of a trace by their names, each a list of (name, begin, end), after a check of its format.

    Complete events (``X``) and names of threads (``M``) only; time stamps are microseconds.
    """
    assert document["displayTimeUnit"] in ("ms", "ns")
    names: dict[tuple[int, int], str] = {}
    tracks: dict[tuple[int, int], list[tuple[str, float, float]]] = defaultdict(list)
    for event in document["traceEvents"]:
        assert isinstance(event["name"], str)
        assert event["name"]
        where = event["pid"], event["tid"]
        assert all(type(number) is int and number >= 0 for number in where)
        if event["ph"] == "M":
            assert event["name"] == "thread_name"
            assert where not in names, "a thread with two names"
            names[where] = event["args"]["name"]
        else:
            assert event["ph"] == "X"
            assert all(isinstance(event[key], NUMBERS) and not isinstance(event[key], bool) for key in ("ts", "dur"))
            assert event["ts"] >= 0
            assert event["dur"] > 0, "an event that cannot be seen"
            tracks[where].append((event["name"], event["ts"], event["ts"] + event["dur"]))
    assert set(tracks) <= set(names), "a thread without a name"
    assert len(set(names.values())) == len(names)
    for track in tracks.values():
        # in order, and nothing overlaps: nesting would show as calls
        assert all(a[2] <= b[1] for a, b in itertools.pairwise(track)), track
    return {names[where]: track for where, track in tracks.items()}


def _run(engines: int) -> Intervals:
    machine = Machine(SMALL, Switches(), BUILDS)
    machine.restart(Switches(start=4, engines=engines, capacity=16))
    traces = random_traces(np.random.default_rng(1), 8, 12)
    play = Engines(traces, lambda *_: DRAFT, lambda *_: VERIFY, lanes=SMALL.lanes)
    run_streams(machine.sim, SMALL, play, 100_000, least=VERIFY)
    return play.intervals


@pytest.mark.parametrize("engines", [1, 2])
def test_a_run_is_a_trace(engines: int) -> None:
    intervals = _run(engines)
    tracks = checked(json.loads(json.dumps({"traceEvents": chrome_trace(intervals), "displayTimeUnit": "ms"})))
    assert set(tracks) == {"verify", "shared pool", "both engines", "micro-batch 0", "micro-batch 1"}
    # a cycle is a microsecond
    steps = [event for name, track in tracks.items() if name.startswith("micro-batch") for event in track]
    assert {end - begin for _, begin, end in steps} == {DRAFT}
    assert {end - begin for _, begin, end in tracks["verify"]} == {VERIFY}
    assert len(steps) + len(tracks["verify"]) == len(intervals)
    assert [event[1:] for event in tracks["shared pool"]] == [event[1:] for event in tracks["verify"]]
    for name, begin, _ in steps:
        during = any(a <= begin < b for _, a, b in tracks["verify"])
        assert name == ("eager" if during else "draft")
    assert {name for name, *_ in steps} == {"eager", "draft"}
    # idle is where nobody works, from the start to the end of all work
    busy = np.zeros(max(end for *_, end in intervals), bool)
    for _, begin, end in [*steps, *tracks["verify"]]:
        busy[begin:end] = True
    idle = np.zeros(len(busy), bool)
    for _, begin, end in tracks["both engines"]:
        idle[begin:end] = True
    assert (busy ^ idle).all()


def test_the_file_is_a_trace(tmp_path: Path) -> None:
    args = _args(batch=[1], tau=[0.1], timeline=tmp_path / "run.json")
    bench_manager.run(args, Report(), lambda *_: _Meter(), _config(ManagerParams()))
    assert "verify" in checked(json.loads((tmp_path / "run.json").read_text()))


@pytest.mark.parametrize("change", [
    {"ts": -1}, {"ts": "3"}, {"dur": 0}, {"ph": "B"}, {"tid": 99}, {"tid": 1.5}, {"name": ""}, {"dur": 10_000},
], ids=str)
def test_other_events_are_noticed(change: dict[str, Any]) -> None:
    events = chrome_trace([("draft", 0, 10, 20), ("draft", 0, 30, 40), ("verify", 0, 20, 50)])
    first = next(n for n, e in enumerate(events) if e["ph"] == "X" and e["name"] == "draft")
    events[first] = events[first] | change
    with pytest.raises(AssertionError):
        checked({"traceEvents": events, "displayTimeUnit": "ms"})
