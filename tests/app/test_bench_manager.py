"""``speculoos bench manager``: figures, timeline and what it refuses, with a meter that needs no simulator."""

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gen.config.config import Config, resolve
from gen.errors import UserError
from sim_models.golden.manager.manager import Switches
from sim_models.params.manager.manager import ManagerParams
from sim_models.spec.manager import COUNTERS
from sim_models.specdec.costs import PAPER, RATIO, TILES, MappedCosts
from sim_models.transformer.checkpoint import ModelShape, random_checkpoint
from sim_models.transformer.formats.llama2c import save_llama2c, save_tokenizer
from sim_models.transformer.pair import DATA
from sim_models.transformer.tokenizer import Tokenizer
from speculoos.bench import manager as bench_manager
from speculoos.bench.manager import Case
from speculoos.bench.manager_inputs import load_machines, recorded
from speculoos.bench.manager_report import summary
from speculoos.bench.manager_trace import chrome_trace
from speculoos.report import Report
from tb.manager.manager_meter import Intervals
from tb.manager.saddle_leap import Exposed


class _Meter:
    """Counters that follow from the settings in a simple way."""

    compared, prompts = 7, 48

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def run(self, switches: Switches, batch: int, costs: MappedCosts, *, oracle: bool = False, first: int = 0
            ) -> tuple[dict[str, int], Intervals]:
        self.asked.append((first, switches.start))
        counters = dict.fromkeys(COUNTERS, 0) | {
            "cycles": 1000 + first, "verifying": 800, "emitted": 10 * batch * (1 + switches.max_draft),
            "served": 10, "rows": 30, "drafted": 20, "accepted": 15, "deciding": 5}
        return counters, [("draft", 0, 10, 20), ("verify", 0, 20, 50), ("draft", 1, 25, 35), ("draft", 0, 60, 70)]

    def decide(self, switches: Switches, batch: int, costs: MappedCosts, vocabulary: int, lanes: int
               ) -> tuple[dict[str, int], Exposed]:
        deciding = 160 // lanes
        return self.run(switches, batch, costs)[0] | {"softmax": 3, "deciding": deciding}, Exposed(deciding, 4, 2)


def _config(p: ManagerParams) -> Config:
    return dataclasses.replace(resolve("manager"), params=p)


def _args(**changes: Any) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    bench_manager.add_arguments(parser.add_argument_group("options"))
    return argparse.Namespace(**{**vars(parser.parse_args([])), "plot": None, **changes})


def test_a_row_is_made_of_counters() -> None:
    counters, _ = _Meter().run(Switches(max_draft=1), 2, PAPER)
    row = bench_manager.row("bandwidth-bound", 2, Case("full", 0.1, (Switches(),)), Switches(start=8), [counters])
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
    assert len(report.data["summary"]) == 4
    assert {file.name for file in tmp_path.iterdir()} == {"run.json", "run.png", "all.png"}
    assert json.loads((tmp_path / "run.json").read_text())["traceEvents"]


def test_deciding_is_measured_alone() -> None:
    report = Report()
    assert bench_manager.run(_args(deciding=True), report, lambda *_: _Meter(), _config(ManagerParams())) == 0
    assert report.data["deciding"]["vocabulary"] == 50_272
    assert [(r["logit_lanes"], r["share"], r["drafter_waits"], r["exposed"], r["state"])
            for r in report.data["deciding"]["rows"]] == [
        (8, 0.02, 0.004, 0.002, "missed"), (16, 0.01, 0.004, 0.002, "missed"), (32, 0.005, 0.004, 0.002, "met"),
        (64, 0.002, 0.004, 0.002, "met")]
    assert "rows" not in report.data


def test_summary_compares_the_best_of_each() -> None:
    speeds = {"d = 0": [1.0], "d = 4": [3.0], "d = 4 alone": [9.0], "-d": [2.0, 1.0], "-p": [4.0, 5.0],
              "-s": [4.0, 3.0], "full": [6.0, 7.0], "confidence": [7.7, 1.0], "table": [3.5], "oracle": [14.0]}
    rows = [{"costs": "c", "batch": 4, "variant": name, "tau": n / 10, "tokens_per_1000": speed,
             "verifying_share": 0.25 * (1 + n)}
            for name, found in speeds.items() for n, speed in enumerate(found)]
    (found,) = summary(rows)
    assert (found["fixed"], found["tau"]) == ("d = 4", 0.1)
    assert [found[f"{name}_over_{base}"] for name, base in (("full", "fixed"), ("full", "oracle"))] == [7 / 3, 0.5]
    assert [found["confidence_over_full"], found["table_over_full"]] == [1.1, 0.5]
    assert found["eager_ceiling"] == 2.0
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
    found = {c.variant: c.switches[0] for c in bench_manager.cases([2, 4, 8], [0.3], 16, ManagerParams(), PAPER)}
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
    ({"d": [2, 40]}, r"the Manager drafts at most 16 tokens \(draft_width\), not 40"),
    ({"deciding": True, "vocabulary": 200_000},
     "the Manager's tokens have 17 bits, a vocabulary of 200000 is too large"),
    ({"vocabulary": 200}, "--vocabulary says nothing without --deciding"),
    ({"logit_lanes": [8]}, "--logit-lanes says nothing without --deciding"),
    ({"deciding": True, "repeats": 2}, "--repeats says nothing with --deciding"),
    ({"deciding": True, "d": [2]}, "--d says nothing with --deciding"),
    ({"deciding": True, "p": ManagerParams(token_width=6), "vocabulary": 60},
     "the Manager with softmax unit: .*logit_lanes must be fewer than the 64 tokens of 6 bits, not 64"),
])
def test_what_cannot_be_done_is_refused_before_work(changes: dict[str, Any], message: str) -> None:
    def make(p: ManagerParams, tokens: int, prompts: int) -> _Meter:
        raise AssertionError("nothing must be built")

    p = changes.get("p", ManagerParams())
    with pytest.raises(UserError, match=message):
        bench_manager.run(_args(**{**changes, "p": None}), Report(), make, _config(p))


def test_starts_are_parts_and_multiples_of_the_batch_or_those_given() -> None:
    p = ManagerParams()
    found = {c.variant: c for c in bench_manager.cases([4], [0.3], 16, p, PAPER)}
    assert [s.start for s in found["-s"].switches] == [p.entries, 1, 4, 8, 16, 32]
    assert {(s.max_draft, s.start) for s in found["oracle"].switches} == {
        (0, p.entries), *((d, start) for d in (4, 16) for start in (1, 4, 8, 16, 32, p.entries))}
    given = {c.variant: c for c in bench_manager.cases([0, 1], [0.3], 16, p, PAPER, [3])}
    assert [s.start for s in given["full"].switches] == [p.entries, 3]
    assert [name for name in given if name.startswith("d = ")] == ["d = 0", "d = 1", "d = 1 alone"]


def test_repeats_are_batches_of_other_prompts(capsys: pytest.CaptureFixture[str]) -> None:
    meter = _Meter()
    args = _args(batch=[4], tau=[0.1], d=[2], start=[1], repeats=3)
    assert bench_manager.run(args, Report(), lambda p, tokens, prompts: meter, _config(ManagerParams())) == 0
    assert {first for first, _ in meter.asked} == {0, 4, 8}
    report = Report()
    bench_manager.run(args, report, lambda *_: meter, _config(ManagerParams()))
    alone = next(r for r in report.data["rows"] if r["variant"] == "d = 2")
    assert alone["cycles"] == 1000 + 1004 + 1008
    assert (alone["slowest"], alone["fastest"]) == (1000 * 120 / 1008, 120.0)
    assert "spread" in capsys.readouterr().out


MACHINE = "fc = 10\ndraft_attention = 1\nweights = 400\nrow = 20\nattention = 3\n"


def test_machines_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "machines.toml"
    file.write_text(f"[slow]\n{MACHINE}[fast]\n{MACHINE}ratio = 4\ncommunication = 7\n")
    found = load_machines(file)
    assert list(found) == ["slow", "fast"]
    assert found["slow"] == MappedCosts(fc=10, draft_attention=1, weights=400, row=20, attention=3)
    assert (found["fast"].draft(2, TILES), found["slow"].draft(2, TILES)) == (10 * 4 + 2 + 7, 10 * RATIO + 2)
    report = Report()
    assert bench_manager.run(_args(machine=file, batch=[1], tau=[0.1]), report, lambda *_: _Meter(),
                             _config(ManagerParams())) == 0
    assert list(report.data["costs"]) == ["slow", "fast"]


@pytest.mark.parametrize(("text", "message"), [
    ("", "a table for each machine was wanted, the file has none"),
    ("fc = 3\n", r"a table for each machine was wanted, as \[fc\], not fc = 3"),
    (f"[a]\n{MACHINE}speed = 3\n", r"\[a\] has no key 'speed', only fc, draft_attention, weights, row, attention, "
                                    "communication, ratio"),
    (f"[a]\n{MACHINE}ration = 3\n", r"\[a\] has no key 'ration' \(did you mean 'ratio'\?\), only fc"),
    (f"[a]\n{MACHINE.replace('20', '0')}", r"\[a\] row must be an integer of at least 1, not 0"),
    (f"[a]\n{MACHINE.replace('20', '2.5')}", r"\[a\] row must be an integer of at least 1, not 2.5"),
    ("[a]\nfc = 1\nrow = 2\n", r"\[a\] lacks draft_attention, weights, attention"),
    ("[a", "machines.toml"),
    (f"a = {'[' * 2000}", "machines.toml: arrays or tables are nested too deeply"),
    (f"[a]\nfc = 0x{'f' * 4000}\n", "machines.toml: a number has too many digits"),
])
def test_a_wrong_machine_is_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "machines.toml"
    file.write_text(text)
    with pytest.raises(UserError, match=message):
        load_machines(file)


def test_a_pair_of_ones_own_and_its_traces(tmp_path: Path) -> None:
    shape = ModelShape(dim=16, hidden_dim=32, n_layers=1, n_heads=2, n_kv_heads=2, vocab_size=512, max_seq_len=64)
    for name, seed in (("target", 1), ("draft", 2)):
        save_llama2c(tmp_path / f"{name}.bin", random_checkpoint(shape, seed))
    (tmp_path / "prompts.txt").write_text("In the beginning\n\nAnd then\n")
    files = {name: tmp_path / f"{name}.bin" for name in ("target", "draft")}
    args = _args(**files, prompts=tmp_path / "prompts.txt", tokenizer=DATA / "tokenizer.bin",
                 record=tmp_path / "texts.json")
    trace = recorded(args, 6, 16)
    assert (len(trace.requests), trace.limits, trace.vocab_size) == (2, [6, 6], 512)
    again = recorded(_args(traces=tmp_path / "texts.json"), 4, 16)
    assert [r.target for r in again.requests] == [r.target[:4] for r in trace.requests]
    assert again.limits == [4, 4]


def test_a_prompt_that_the_tokenizer_cannot_spell_is_one_sentence(tmp_path: Path) -> None:
    shape = ModelShape(dim=8, hidden_dim=8, n_layers=1, n_heads=2, n_kv_heads=1, vocab_size=4, max_seq_len=32)
    for name in ("target", "draft"):
        save_llama2c(tmp_path / f"{name}.bin", random_checkpoint(shape, 1))
    save_tokenizer(tmp_path / "t.bin", Tokenizer([b"<unk>", b"<s>", b"</s>", b" "], np.zeros(4, np.float32)))
    files = {name: tmp_path / f"{name}.bin" for name in ("target", "draft")}
    with pytest.raises(UserError, match="the vocabulary has no piece for "):
        recorded(_args(**files, tokenizer=tmp_path / "t.bin"), 4, 2)


@pytest.mark.parametrize(("changes", "message"), [
    ({"target": Path("t.bin")}, "a target needs its draft: name both with --target and --draft"),
    ({"traces": Path("t.json"), "draft": Path("d.bin")}, "--traces and --draft exclude each other"),
    ({"traces": Path("none.json")}, "none.json: cannot be read: No such file"),
    ({"prompts": Path("none.txt")}, "none.txt: there is no such file"),
])
def test_a_wrong_pair_is_one_sentence(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        recorded(_args(**changes), 4, 2)


@pytest.mark.parametrize("argument", ["--batch=0", "--batch=1,,2", "--tau=2", "--tau=a", "--tokens=0", "--d=65",
                                      "--d=", "--start=0", "--repeats=0", "--repeats=x", "--vocabulary=1"])
def test_arguments_say_what_was_wanted(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    bench_manager.add_arguments(parser.add_argument_group("options"))
    with pytest.raises(SystemExit):
        parser.parse_args([argument])
    assert "wanted, not" in capsys.readouterr().err
