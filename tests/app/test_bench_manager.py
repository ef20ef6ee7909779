"""``speculoos bench manager``: figures, timeline and what it refuses, with a meter that needs no simulator."""

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from gen.config.config import Config
from gen.errors import UserError
from rtl.manager.registers import COUNTERS
from rtl.registry import BLOCKS
from sim_models.golden.manager.manager import Switches
from sim_models.params.manager.manager import ManagerParams
from sim_models.specdec.costs import PAPER, MappedCosts
from speculoos.bench import manager as bench_manager
from speculoos.bench.manager import Case
from speculoos.bench.manager_report import summary
from speculoos.bench.manager_trace import chrome_trace
from speculoos.report import Report
from tb.manager.manager_meter import Intervals


class _Meter:
    """Counters that follow from the settings in a simple way."""

    compared, vocab_size = 7, 512

    def run(self, switches: Switches, batch: int, costs: MappedCosts, *, oracle: bool = False
            ) -> tuple[dict[str, int], Intervals]:
        counters = dict.fromkeys(COUNTERS, 0) | {
            "cycles": 1000, "emitted": 10 * batch * (1 + switches.max_draft), "served": 10, "rows": 30,
            "drafted": 20, "accepted": 15, "deciding": 5}
        return counters, [("draft", 0, 10, 20), ("verify", 0, 20, 50), ("draft", 1, 25, 35), ("draft", 0, 60, 70)]

    def run_with_softmax(self, switches: Switches, batch: int, costs: MappedCosts) -> dict[str, int]:
        return self.run(switches, batch, costs)[0] | {"softmax": 3}


def _config(p: ManagerParams) -> Config:
    return Config(name="manager", description="", block=BLOCKS["manager"], params=p)


def _args(**changes: Any) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    bench_manager.add_arguments(parser.add_argument_group("options"))
    return argparse.Namespace(**{**vars(parser.parse_args([])), "plot": None, **changes})


def test_a_row_is_made_of_counters() -> None:
    counters, _ = _Meter().run(Switches(max_draft=1), 2, PAPER)
    row = bench_manager.row("bandwidth-bound", 2, Case("full", 0.1, (Switches(),)), 8, counters)
    assert row["tokens_per_1000"] == 40
    assert row["draft_length"] == 2
    assert (row["acceptance"], row["wasted"], row["deciding_share"]) == (0.75, 5, 0.005)


def test_every_variant_batch_and_tau_is_measured(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    report = Report()
    args = _args(batch=[1, 2], tau=[0.1, 0.5], timeline=tmp_path / "run.json", plot=tmp_path / "all.png")
    asked = []

    def make(p: ManagerParams, tokens: int, prompts: int) -> _Meter:
        asked.append((tokens, prompts))
        return _Meter()

    assert bench_manager.run(args, report, make, _config(ManagerParams())) == 0
    assert asked == [(24, 2)]
    rows = report.data["rows"]
    keys = {(r["costs"], r["batch"], r["variant"], r["tau"]) for r in rows}
    assert len(keys) == len(rows) == 2 * 2 * (4 + 1 + 5 * 2 + 2)
    assert report.data["deciding"]["state"] == "met"
    assert len(report.data["summary"]) == 4
    assert {file.name for file in tmp_path.iterdir()} == {"run.json", "run.png", "all.png"}
    assert json.loads((tmp_path / "run.json").read_text())["traceEvents"]


def test_summary_compares_the_best_of_each() -> None:
    speeds = {"d = 0": [1.0], "d = 4": [3.0], "d = 4 alone": [9.0], "-d": [2.0, 1.0], "-p": [4.0, 5.0],
              "-s": [4.0, 3.0], "full": [6.0, 7.0], "confidence": [7.7, 1.0], "table": [3.5], "oracle": [14.0]}
    rows = [{"costs": "c", "batch": 4, "variant": name, "tau": n / 10, "tokens_per_1000": speed}
            for name, found in speeds.items() for n, speed in enumerate(found)]
    (found,) = summary(rows)
    assert (found["fixed"], found["tau"]) == ("d = 4", 0.1)
    assert [found[f"{name}_over_{base}"] for name, base in (("full", "fixed"), ("full", "oracle"))] == [7 / 3, 0.5]
    assert [found["confidence_over_full"], found["table_over_full"]] == [1.1, 0.5]
    assert found["ratios"] == {"-d": 2 / 3, "-p": 2.5, "-s": 0.8, "full": 1.75}


def test_costs_cross_at_the_papers_intensity() -> None:
    """Near the banks below 9 requests, or 9 tokens of a request; on tiles above (SADDLE IV-C)."""
    cost = dataclasses.replace(PAPER, draft_attention=1)
    for n in range(1, 20):
        assert (cost.draft(n, 0) < cost.draft(n, 1)) == (n < 9)
        assert (cost.draft(n, 0) == cost.draft(n, 1)) == (n == 9)
        assert (cost.verify(3, 3 * n, 0) < cost.verify(3, 3 * n, 1)) == (n < 9)
    assert cost.verify(1, PAPER.free_rows, 0) - cost.verify(1, 1, 0) == (PAPER.free_rows - 1) * cost.attention
    assert cost.verify(1, PAPER.free_rows + 100, 1) - cost.verify(1, 1, 1) > 90 * cost.row


def test_variants_turn_on_one_thing_after_the_other() -> None:
    found = {c.variant: c.switches[0] for c in bench_manager.cases([0.3], 16, ManagerParams())}
    for name, other, changed in (("-p", "-d", {"shared"}), ("-s", "-p", {"eager"}), ("full", "-s", {"dynamic"}),
                                 ("confidence", "full", {"policy"}), ("d = 4", "d = 4 alone", {"shared"})):
        one, two = dataclasses.asdict(found[name]), dataclasses.asdict(found[other])
        assert {k for k in one if one[k] != two[k]} == changed


def test_timeline_tells_eager_steps_and_idle_times() -> None:
    trace = chrome_trace(_Meter().run(Switches(), 1, PAPER)[1])
    events = [(e["name"], e["tid"], e["ts"], e["dur"]) for e in trace if e["ph"] == "X"]
    assert events == [("idle", 2, 0, 10), ("draft", 3, 10, 10), ("verify", 0, 20, 30), ("locked", 1, 20, 30),
                      ("eager", 4, 25, 10), ("idle", 2, 50, 10), ("draft", 3, 60, 10)]


@pytest.mark.parametrize(("changes", "message"), [
    ({"batch": [200]}, "the Manager has 128 requests, a batch of 200 is too many"),
    ({"timeline": Path("/nowhere/run.json")}, "there is no folder"),
])
def test_what_cannot_be_done_is_refused_before_work(changes: dict[str, Any], message: str) -> None:
    def make(p: ManagerParams, tokens: int, prompts: int) -> _Meter:
        raise AssertionError("nothing must be built")

    with pytest.raises(UserError, match=message):
        bench_manager.run(_args(**changes), Report(), make, _config(ManagerParams()))


@pytest.mark.parametrize("argument", ["--batch=0", "--batch=1,,2", "--tau=2", "--tau=a", "--tokens=0"])
def test_arguments_say_what_was_wanted(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    bench_manager.add_arguments(parser.add_argument_group("options"))
    with pytest.raises(SystemExit):
        parser.parse_args([argument])
    assert "wanted, not" in capsys.readouterr().err
