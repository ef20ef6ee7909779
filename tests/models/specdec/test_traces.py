"""Traces of greedy speculation: what is replayed is what the models would have done, for any schedule."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from sim_models.specdec.draws import KeyedDraws
from sim_models.specdec.models import LlamaModel, TableModel
from sim_models.specdec.policies import Cumulative, Fixed, Policy
from sim_models.specdec.rules import Greedy, Sampling, decode
from sim_models.specdec.scheduler import Settings
from sim_models.specdec.simulation import Roofline, Simulation
from sim_models.specdec.traces import (
    RequestTrace,
    Trace,
    TraceError,
    load_trace,
    record,
    save_trace,
    shipped_models,
)
from sim_models.transformer.checkpoint import ModelShape, random_checkpoint
from sim_models.transformer.decoding import End, end_tokens
from sim_models.transformer.int8_model import Int8Model

LIMIT = 24


@pytest.fixture(scope="module")
def shipped() -> tuple[LlamaModel, LlamaModel, list[list[int]]]:
    draft, target, prompts = shipped_models()
    return draft, target, prompts[:4]


@pytest.fixture(scope="module")
def trace(shipped: tuple[LlamaModel, LlamaModel, list[list[int]]]) -> Trace:
    return record(*shipped, LIMIT, depth=8)


@pytest.mark.parametrize(("policy", "settings", "costs"), [
    (Fixed(4), Settings(lanes=2, shared=False, eager=False, max_draft=8), Roofline(2, 1, 16, 1)),
    (Cumulative(0.1), Settings(lanes=2, max_draft=8), Roofline(2, 1, 16, 1)),
    (Cumulative(0), Settings(lanes=4, max_draft=8, capacity=9, entries=7, eager_entries=7), Roofline(1, 1, 4, 2)),
])
def test_a_replay_is_the_run(shipped: tuple[LlamaModel, LlamaModel, list[list[int]]], trace: Trace,
                             policy: Policy, settings: Settings, costs: Roofline) -> None:
    """The shipped pair, a batch of requests in several micro-batches: tokens, verdicts and times are equal."""
    draft, target, prompts = shipped
    real = Simulation(draft, target, prompts, LIMIT, policy, settings, costs=costs)
    replayed = Simulation(*trace.models(), trace.prompts, trace.limits, policy, settings, costs=costs)
    assert real.run() == replayed.run() == [list(r.target) for r in trace.requests]
    assert replayed.log == real.log
    assert replayed.scheduler.counters == real.scheduler.counters
    assert {r.accepted == len(r.drafts) for r in real.log} == {True, False}


def test_shipped_tokens_are_those_of_the_target_alone(
        shipped: tuple[LlamaModel, LlamaModel, list[list[int]]], trace: Trace) -> None:
    _, target, prompts = shipped
    assert [list(r.target) for r in trace.requests] == [
        decode(Greedy(), target, p, LIMIT, KeyedDraws()) for p in prompts]


def test_the_shipped_pair_samples_within_its_caches(
        shipped: tuple[LlamaModel, LlamaModel, list[list[int]]]) -> None:
    draft, target, prompts = shipped
    run = Simulation(draft, target, prompts, LIMIT, Cumulative(0.05), Settings(lanes=2, capacity=12),
                     rule=Sampling(), draws=KeyedDraws(3), costs=Roofline(2, 1, 16, 1))
    assert [len(tokens) for tokens in run.run()] == [LIMIT] * len(prompts)
    accepted = [r.accepted for r in run.log if r.drafts]
    assert 0 < sum(accepted) < sum(len(r.drafts) for r in run.log)


def test_branches_stand_where_the_draft_is_wrong(trace: Trace) -> None:
    for r in trace.requests:
        assert set(r.branches) == {i for i, (t, _) in enumerate(r.draft) if t != r.target[i]}
        assert all(len(b) == min(8, LIMIT - i - 1) for i, b in r.branches.items())
    assert any(r.branches for r in trace.requests)


EXAMPLE = RequestTrace((9,), (1, 2, 3), ((1, 100), (5, 200), (3, 300)), {1: ((6, 50),)})


def test_draft_tokens_on_and_off_the_path() -> None:
    assert [EXAMPLE.draft_token(i) for i in range(3)] == [(1, 100), (5, 200), (3, 300)]
    assert EXAMPLE.draft_token(2, wrong=1) == (6, 50)


@pytest.mark.parametrize(("index", "wrong", "message"), [
    (3, None, "the trace has 3 draft tokens and not number 3"),
    (3, 1, "the trace has 1 draft tokens behind the wrong token 1 and not number 1"),
    (1, 0, "the trace has 0 draft tokens behind the wrong token 0 and not number 0"),
])
def test_beyond_the_trace(index: int, wrong: int | None, message: str) -> None:
    with pytest.raises(TraceError) as caught:
        EXAMPLE.draft_token(index, wrong)
    assert str(caught.value) == message


@pytest.mark.parametrize(("index", "drafts", "waiting", "verdict"), [
    (0, [1, 2], 3, (2, 3, True)),
    (0, [1, 2], 4, (2, 3, False)),
    (0, [1, 2], None, (2, 3, False)),
    (0, [1, 5], 3, (1, 2, False)),
    (1, [], 2, (0, 2, True)),
    (1, [2, 3], 7, (2, 0, False)),
    (2, [3, 8], None, (1, 0, False)),
])
def test_verdicts(index: int, drafts: list[int], waiting: int | None, verdict: tuple[int, int, bool]) -> None:
    assert EXAMPLE.verdict(index, drafts, waiting) == verdict


@pytest.mark.parametrize("end", [None, 7, (7, 12)])
def test_a_file_holds_all(trace: Trace, tmp_path: Path, end: End) -> None:
    path = tmp_path / "trace.json"
    saved = dataclasses.replace(trace, end=end_tokens(end))
    save_trace(saved, path)
    assert load_trace(path) == saved
    assert len(path.read_text().splitlines()) == len(trace.requests) + 2


def test_one_end_token_may_stand_for_itself(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text('{"format": "speculoos trace 1", "vocab_size": 4, "end": 3, "depth": 1, "requests": []}')
    assert load_trace(path).end == {3}


def test_a_trace_ends_at_the_first_of_several_end_tokens() -> None:
    model = TableModel(np.eye(6)[[1, 2, 3, 4, 5, 0]])
    recorded = record(model, model, [[0], [3]], 9, end=(3, 5))
    assert [r.target for r in recorded.requests] == [(1, 2, 3), (4, 5)]
    assert recorded.limits == [3, 2]


@pytest.mark.parametrize(("positions", "prompts", "limit", "end", "message"), [
    ((8, 40), [[1]], 20, None, "the draft has 8 positions: 20 tokens do not fit behind a prompt of 1, at most 8 do"),
    ((40, 8), [[1]], 20, None, "the model has 8 positions: 20 tokens do not fit behind a prompt of 1, at most 8 do"),
    ((40, 40), [[1, 2]], -1, None, "the number of tokens wanted must be at least 0, not -1"),
    ((40, 40), [[1], []], 3, None, "a batch needs at least 1 prompt, and each prompt at least 1 token"),
    ((40, 40), [[8]], 3, None, "a prompt's tokens must be from 0 to 7, not 8"),
    ((40, 40), [[1]], 3, [2, 8], "an end token must be from 0 to 7, not 8"),
])
def test_what_cannot_be_recorded(positions: tuple[int, int], prompts: list[list[int]], limit: int, end: End,
                                 message: str) -> None:
    """Refused before anything is computed."""
    shapes = [ModelShape(dim=8, hidden_dim=8, n_layers=1, n_heads=1, n_kv_heads=1, vocab_size=8, max_seq_len=n)
              for n in positions]
    draft, target = (LlamaModel(Int8Model(random_checkpoint(shape, 1))) for shape in shapes)
    with pytest.raises(ValueError, match=r"^(a|an|the) ") as caught:
        record(draft, target, prompts, limit, end=end)
    assert str(caught.value) == message


@pytest.mark.parametrize(("text", "message"), [
    ("", "not a trace: JSONDecodeError"),
    ("[]", "not a trace: TypeError"),
    ("{}", "not a trace: KeyError: 'format'"),
    ('{"format": "vcd"}', "the format must be 'speculoos trace 1', not 'vcd'"),
    ('{"format": "speculoos trace 1", "vocab_size": 4, "end": null, "depth": 1, "requests": [{"prompt": [1]}]}',
     "not a trace: KeyError: 'target'"),
])
def test_files_that_are_no_trace(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text)
    with pytest.raises(TraceError) as caught:
        load_trace(path)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read: No such file or directory"):
        load_trace(tmp_path / "none.json")


@pytest.mark.parametrize(("change", "message"), [
    ({"vocab_size": 1}, "vocab_size must be an integer of at least 2, not 1"),
    ({"depth": "2"}, "depth must be an integer of at least 0, not '2'"),
    ({"prompt": []}, "request 1: a prompt of at least 1 token was wanted, it has none"),
    ({"prompt": [4]}, "request 1: a token of prompt must be from 0 to 3, not 4"),
    ({"target": [1, -1]}, "request 1: a token of target must be from 0 to 3, not -1"),
    ({"target": [1, True]}, "request 1: a token of target must be from 0 to 3, not True"),
    ({"draft": [[1, 5]]}, "request 1: a draft token for each of 2 tokens was wanted, not 1"),
    ({"draft": [[1, 5], [9, 5]]}, "request 1: a token of draft must be from 0 to 3, not 9"),
    ({"draft": [[1, 5], [2, 40000]]}, "request 1: a probability of draft must be from 0 to 32768, not 40000"),
    ({"branches": {"2": []}}, "request 1: a branch must stand at one of 2 tokens, not at 2"),
    ({"branches": {"0": [[4, 1]]}}, "request 1: a token of branch 0 must be from 0 to 3, not 4"),
])
def test_values_that_contradict_one_another(change: dict[str, object], message: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    good = {"prompt": [1], "target": [1, 2], "draft": [[1, 5], [2, 5]], "branches": {}}
    head = {"format": "speculoos trace 1", "vocab_size": 4, "end": None, "depth": 1}
    for name in change:
        assert name in good or name in head
    wrong = good | {k: v for k, v in change.items() if k in good}
    path.write_text(json.dumps(head | {k: v for k, v in change.items() if k in head} | {"requests": [good, wrong]}))
    with pytest.raises(TraceError) as caught:
        load_trace(path)
    assert str(caught.value) == f"{path}: {message}"


def test_nothing_half_written_is_left(trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trace.json").write_text("mine")
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        save_trace(trace, tmp_path / "trace.json")
    assert [p.name for p in tmp_path.iterdir()] == ["trace.json"]
    assert (tmp_path / "trace.json").read_text() == "mine"


def test_values_that_are_no_numbers(tmp_path: Path, trace: Trace) -> None:
    path = tmp_path / "trace.json"
    save_trace(trace, path)
    data = json.loads(path.read_text())
    data["requests"][0]["draft"][0] = ["x", 1]
    path.write_text(json.dumps(data))
    with pytest.raises(TraceError, match=r"request 0: a token of draft must be from 0 to .*, not 'x'"):
        load_trace(path)
