"""Mutation of the Manager: how much the native stimulus notices, and why it does not notice the rest.

Which mutants are drawn follows from the netlist, names of other parts included. So reasons are for kinds of places,
and a survivor that is of none of them is listed by itself.

Its own logic and the draft controller are mutated, the intensity scheduler alone;
``tests/rtl/manager/pools/test_shared_pool_formal.py`` breaks the pools.

The golden model is the judge, cycle by cycle; what it shows is recorded once. Prints the table of survivors.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from rtl.manager.intensity_scheduler import IntensityScheduler as Hardware
from rtl.manager.manager import Manager
from sim_models.golden.manager import manager as golden
from sim_models.golden.manager.draft_controller import CONFIDENCE, CUMULATIVE, FIXED
from sim_models.golden.manager.intensity_scheduler import Inputs as SchedulerInputs
from sim_models.golden.manager.intensity_scheduler import IntensityScheduler
from sim_models.golden.manager.manager import COUNTERS, Inputs, Outputs, Switches
from sim_models.params.manager.intensity_scheduler import IntensitySchedulerParams
from sim_models.params.manager.manager import ManagerParams
from sim_models.specdec.fixed import ONE
from sim_models.specdec.traces import DraftToken, RequestTrace
from tb.common.mutation import equivalent, mutants, reason_of, run_mutants, survivors_table
from tb.common.native import NativeSim
from tb.manager.manager_engines import Widths, expected_texts, packed, random_traces, settings_value
from tb.manager.manager_machine import play
from tb.manager.near_traces import near_thresholds
from tb.manager.unruly_engines import UnrulyEngines
from tests.conftest import Extent
from tests.designs.run import BUILDS

PARAMS = ManagerParams(request_width=2, lane_width=1, entries=4, eager_entries=3, draft_width=2, token_width=3,
                       position_width=6)
#: parts that have proofs of their own, and counters, whose upper bits would take very long runs
WITHOUT = ("pool.*", "scheduler.*", "counts.counters*", "counts.counts_*_$mux_S*")
#: why a mutant was not noticed, by what it changes
REASONS = {
    r"(drafted__ready|emitted__ready_and|verify__ready_and|rst)_\$mux_S|emitted__payload_last_add":
        "a bit of a counter beyond what a run counts",
    r"\$shr_Y\.Y\[[1-9]|verify\.request_add_\$add_Y\.Y\[2\]|read_addr_mux\S*\.[AY]\[[4-6]\]|at_compare_mux\S*\.[AY]\[[2-6]\]|rows_left_sub\S*\.Y\[4\]|verifying_\$shr_Y\.Y":
        "a bit that is cut off",
    r"full_not_mux_a_logic_not_a\S*\.Y\[3\]": "a sum that is too high to be reached where it matters",
    r"const0 (text\.write_en_\$mux_S\.A|controller\.\S*_D_\$mux_Y\.B)": "a bit that is the constant zero already",
    r"controller\.last_d_\$ge": "a cause of the stop, which the Manager does not read: it asks for the length",
    r"controller\.(written_|update__ready_and|to_(shared|eager)__(ready|valid))":
        "whether the controller is ready: the Manager gives it the time it needs",
    r"controller\.drafted__valid_and_\$mux_S_[12]\.A": "what is held beyond the one cycle in which it counts",
    r"step_1\.ring_shl_sub": "micro-batches behind the ring, where the first of all is the same one",
    r"verify\.selects_": "whether a pass is choosing: the pool chooses only then",
    r"(eager_rows_RD_DATA|gone_mux_b_logic_not_a)\S*\[2\]":
        "the top bit of a number of tokens, which needs more than there are",
    r"controller\.old_\$dff_Q_D_\$mux_Y\.B": "what a register holds in reset: it is read again before it counts",
    r"controller\.turn_": "a number that counts in the first cycles after reset alone",
    r"requests_d_mux_a\S*\.A":
        "how many requests a pass or step had, or 5 for 4 where no threshold lies between",
    r"full_not_mux_and_and_and_b_\$lt_Y\.A": "more engines at work than there are, in place of as many",
    r"full_not_mux_and_and_and_and_d_and_b_not_a_and_b_1":
        "drafting between two verdicts of a pass: they come together",
    r"controller\.(busy_\$mux_S\.Y|h_\$dff_Q|drafted__valid_and_\$mux_S_3)":
        "a low bit of H that decides between two requests alone",
    r"controller\.(load_gt_\S*mux|tabled_mux|policy_eq_mux)\S*\.[ABY]\[\d\]":
        "a low bit of a threshold, or of what is held against it, that nothing came so close to",
    r"controller\.drafted__valid_and_\$mux_S\.B\[9\]": "a remainder of a product that is not the only one",
    r"controller\.drafts_WR_DATA_mux\S*\.[BY]\[\d\]": "a low bit of H behind a verdict, where nothing came so close",
}
#: the same for the intensity scheduler
SCHEDULER_REASONS = {
    r"tokens_mux|fresh_1_mux_b_\$ge_Y\.A\[[01]\]|dlm_fc_(high_mul|mux)\S*\[3\]":
        "a bit that is the constant zero already",
    r"(estimate_0_d|rst)_\$mux\S*\.B": "what an estimate holds in reset: none counts then",
}
_IN, _OUT = ("requests", "drafted", "verdicts"), ("draft", "verify", "emitted")
#: besides random ones
SWITCHES = (
    Switches(), Switches(policy=FIXED, max_draft=3, shared=False, eager=False, engines=2),
    Switches(policy=FIXED, shared=False, eager=False, capacity=3), Switches(eager=False, capacity=5, end_token=5),
    Switches(max_draft=0), Switches(capacity=1, end_token=7), Switches(tau=0, start=3, engines=2, dlm_fc=(1, 2)),
    Switches(tau=0x8000, dynamic=False, initial=(1, 1)), Switches(policy=CONFIDENCE, tau=0x5A5A, engines=2),
    Switches(taus=(0x7FFF, 0x65A5, 0x3A5A, 0, 0, 0, 0, 0), eager=False),
    Switches(policy=CONFIDENCE, taus=(0x6A5A, 0x35A5, 0x2C3C, 0, 0, 0, 0, 0)),
    *[Switches(policy=FIXED, shared=False, eager=False, capacity=1, max_draft=1)] * 3, Switches(tau=0x4000),
    Switches(tau=0x4000, shared=False, eager=False), Switches(tau=0x2000, start=2, capacity=5),
)
#: what the settings say instead of some that mean the same
SAME = {"capacity": (1, 0), "engines": (1, 0), "max_draft": (4, 7), "policy": (CUMULATIVE, 3)}


class Recorder:
    """A golden model, and all that it took and showed."""

    def __init__(self, switches: Switches) -> None:
        self.model, self.inputs, self.outputs = golden.Manager(PARAMS, switches), list[Inputs](), list[Outputs]()

    def step(self, i: Inputs) -> Outputs:
        """One cycle."""
        self.inputs.append(i)
        self.outputs.append(self.model.step(i))
        return self.outputs[-1]


@dataclasses.dataclass(frozen=True)
class Run:
    """A run from reset on: inputs and outputs by port, and the counters behind it."""

    settings: int
    rows: dict[str, np.ndarray]
    want: dict[str, np.ndarray]
    #: of a run that came to its end
    counters: dict[str, int] | None

    def check(self, sim: NativeSim) -> None:
        """Reset, play, compare."""
        for name in _IN:
            sim.set(f"{name}__valid", 0)
        sim.set("settings", self.settings)
        sim.reset()
        got = sim.play(self.rows, list(self.want))
        for name in _OUT:
            got[f"{name}__payload"][got[f"{name}__valid"][:, 0] == 0] = 0
        for name, want in self.want.items():
            assert (got[name] == want).all(), name
        if self.counters is not None:
            assert sim.get("counters") == packed((32,) * len(COUNTERS), [self.counters[name] for name in COUNTERS])


def _alike(requests: list[RequestTrace], gen: np.random.Generator) -> list[RequestTrace]:
    """Probabilities of one but for a token now and then, whose own are alike but for one bit: H decides by that."""
    base = int(gen.integers(ONE // 2, ONE))

    def pairs(tokens: tuple[DraftToken, ...]) -> tuple[DraftToken, ...]:
        return tuple((token, base ^ (1 << int(gen.integers(14))) if gen.random() < 0.2 else ONE)
                     for token, _ in tokens)

    return [dataclasses.replace(r, draft=pairs(r.draft), branches={i: pairs(b) for i, b in r.branches.items()})
            for r in requests]


def _array(widths: tuple[int, ...], values: list[tuple[int, ...] | None]) -> np.ndarray:
    size = -(-sum(widths) // 8)
    text = b"".join((packed(widths, v) if v else 0).to_bytes(size, "little") for v in values)
    return np.frombuffer(text, np.uint8).reshape(-1, size).copy()


def _bits(values: list[bool]) -> np.ndarray:
    return np.array(values, np.uint8).reshape(-1, 1)


def _recorded(switches: Switches, gen: np.random.Generator, cycles: int | None) -> Run:
    """Random texts and engines of random latency; to the end unless it is cut off."""
    widths, recorder = Widths.of(PARAMS), Recorder(switches)
    requests = random_traces(gen, int(gen.choice([1, 2, 3, 4, 4, 4])), 14, vocab=8, end=switches.end_token,
                             right=gen.permutation([0.3, 0.7, 0.95, 1.0]).tolist())
    # positions up to the highest
    requests = [dataclasses.replace(r, prompt=(r.prompt * 64)[:int(gen.integers(1, 64 - len(r.target)))])
                for r in requests]
    slow = [int(gen.choice([4, 40, 150])), int(gen.integers(1, 60))]
    taus = [switches.tau, *(switches.taus or ())[:3]]
    if gen.random() < 0.3:
        # drafts are right, and far ahead of the verdicts
        requests = [dataclasses.replace(r, draft=tuple((t, ONE) for t in r.target), branches={}) for r in requests]
        requests, slow = _alike(requests, gen), [4, 60]
        switches = dataclasses.replace(switches, tau=0, taus=None, shared=True, eager=True, max_draft=4, engines=2,
                                       capacity=len(requests) + int(gen.integers(1, 3)))
        recorder = Recorder(switches.fitted(PARAMS))
    else:
        requests = [near_thresholds(r, taus, gen) for r in requests]
    engines = UnrulyEngines(PARAMS, float(gen.choice([0, 0.01, 0.05])), requests,
                            lambda *_: int(gen.integers(1, slow[0] + 1)),
                            lambda *_: int(gen.integers(1, 2 * slow[1] + 1)), gen=gen)
    play(recorder, engines, 20_000, ready=float(gen.choice([1, 0.6])), cycles=cycles)  # type: ignore[arg-type]
    if cycles is None:
        for _ in range(8):                      # until counters show what was
            recorder.step(Inputs())
        assert engines.texts == expected_texts(requests, switches.end_token)
    given, shown = recorder.inputs, recorder.outputs
    rows = {"softmax": _array((1, 1), [(int(i.softmax_busy), int(i.masked)) for i in given])}
    want = {"busy": _bits([o.busy for o in shown]), "dlm_fc": _bits([bool(o.mapping[0]) for o in shown]),
            "tlm_attention": _bits([bool(o.mapping[1]) for o in shown])}
    for name in _IN:
        beats = [getattr(i, name) for i in given]
        rows |= {f"{name}__valid": _bits([b is not None for b in beats]),
                 f"{name}__payload": _array(getattr(widths, name), beats)}
        want[f"{name}__ready"] = _bits([getattr(o, f"{name}_ready") for o in shown])
    for name in _OUT:
        beats = [getattr(o, name) for o in shown]
        rows[f"{name}__ready"] = _bits([getattr(i, f"{name}_ready") for i in given])
        want |= {f"{name}__valid": _bits([b is not None for b in beats]),
                 f"{name}__payload": _array(getattr(widths, name), beats)}
    said = {name: other for name, (usual, other) in SAME.items() if getattr(switches, name) == usual}
    return Run(settings_value(PARAMS, dataclasses.replace(switches, **said)), rows, want,
               dict(recorder.model.counters) if cycles is None else None)


def _any_switches(gen: np.random.Generator) -> Switches:
    flags = gen.random(5) < (0.4, 0.75, 0.6, 0.5, 0.4)
    low, tokens = int(gen.integers(0, 5)), 16 * int(gen.integers(5)) // int(gen.integers(1, 5)) + int(gen.integers(2))
    return Switches(
        policy=int(gen.choice([FIXED, CUMULATIVE, CONFIDENCE])),
        taus=tuple(int(tau) for tau in gen.integers(0, 0x7001, 8)) if flags[0] else None,
        shared=bool(flags[1]), eager=bool(flags[2]), dynamic=bool(flags[3]),
        initial=(int(gen.integers(2)), int(gen.integers(2))), end_token=int(gen.integers(8)) if flags[4] else None,
        max_draft=int(gen.integers(0, 5)), tau=int(gen.choice([0, *(gen.integers(0x3800, size=3) | 1), 0x8000])),
        capacity=int(gen.integers(1, 9)), start=int(gen.integers(1, 5)), engines=int(gen.integers(1, 3)),
        dlm_fc=(low, low + int(gen.integers(3))), tlm_attention=(tokens, tokens + int(gen.integers(16))))


def _stimulus(count: int) -> Callable[[NativeSim], None]:
    """Complete runs with all kinds of settings, and some that a reset cuts off."""
    gen, runs = np.random.default_rng(1), list[Run]()
    for n in range(count):
        switches = SWITCHES[n] if n < len(SWITCHES) else _any_switches(gen)
        cut = int(gen.integers(8, 40) if gen.random() < 0.5 else gen.integers(10, 400)) if n % 4 == 3 else None
        runs.append(_recorded(switches.fitted(PARAMS), gen, cut))

    def stimulus(sim: NativeSim) -> None:
        for run in runs:
            run.check(sim)
    return stimulus


def test_manager(extent: Extent, capsys: pytest.CaptureFixture[str]) -> None:
    """Of 250 mutants at least 85% are noticed; the table shows the rest.

    The long form has four times the runs and leaves out of account what is proven to be the original: of the others
    92% must be noticed.
    """
    chosen = mutants(Manager(PARAMS), 250, extent.seeds(1, 1)[0], BUILDS, without=WITHOUT)
    report = run_mutants(chosen, _stimulus(extent.count(320, 1280)), limit_s=extent.count(20, 120))
    with capsys.disabled():
        print(survivors_table("manager", report, REASONS))
    if extent.seed is not None:
        same = equivalent(chosen, [m.number for m in report.survivors])
        score = len(report.killed) / (len(chosen.mutants) - len(same))
        with capsys.disabled():
            print(f"  {len(same)} survivors are proven to be the original; {score:.1%} of the others are noticed")
        assert score >= 0.92
    assert report.score >= 0.85
    unexplained = [str(m) for m in report.survivors if not reason_of(str(m), REASONS)]
    assert len(unexplained) <= 0.11 * (len(report.killed) + len(report.survivors)), unexplained


SCHEDULER = IntensitySchedulerParams(request_width=2, count_width=3, whole_width=3, fraction_width=2)


def _scheduler_run(gen: np.random.Generator, cycles: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Estimates at, above and below thresholds that change now and then; inputs and outputs by port."""
    model, given, shown = IntensityScheduler(SCHEDULER), list[tuple[int, ...]](), list[tuple[int, int]]()
    fc = attention = (0, 0)
    for _ in range(cycles):
        if gen.random() < 0.2:
            fc = tuple(sorted(int(n) for n in gen.integers(0, 8, 2)))
            attention = tuple(sorted(int(n) for n in gen.integers(0, 32, 2) >> int(gen.integers(3))))
        drafting, tokens, requests = (int(gen.integers(n)) for n in (8, 8, 8))
        dynamic, initial = bool(gen.random() < 0.9), (int(gen.integers(2)), int(gen.integers(2)))
        step, round_ = bool(gen.random() < 0.6), bool(gen.random() < 0.6)
        given.append((step, drafting, round_, tokens, requests, dynamic, *initial, *fc, *attention))
        shown.append((model.places[0] | model.places[1] << 1, model.moved[0] | model.moved[1] << 1))
        model.step(SchedulerInputs(drafting if step else None, (tokens, requests) if round_ else None, dynamic,
                                   initial, fc, attention))  # type: ignore[arg-type]
    names = ("step", "drafting", "round", "tokens", "requests", "dynamic", "initial_dlm_fc", "initial_tlm_attention",
             "dlm_fc_low", "dlm_fc_high", "tlm_attention_low", "tlm_attention_high")
    places, moved = np.array(shown, np.uint8).T
    return ({name: np.array(column, np.uint8).reshape(-1, 1) for name, column in zip(names, zip(*given, strict=True),
                                                                                    strict=True)},
            {"dlm_fc": (places & 1).reshape(-1, 1), "tlm_attention": (places >> 1).reshape(-1, 1),
             "moved": moved.reshape(-1, 1)})


def test_intensity_scheduler(capsys: pytest.CaptureFixture[str]) -> None:
    """At least 90% of 150 mutants are noticed; the table shows what is not."""
    gen = np.random.default_rng(1)
    runs = [_scheduler_run(gen, 2000) for _ in range(6)]

    def stimulus(sim: NativeSim) -> None:
        for rows, want in runs:
            sim.reset()
            for name, shown in sim.play(rows, list(want)).items():
                assert (shown == want[name]).all(), name
    report = run_mutants(mutants(Hardware(SCHEDULER), 150, 1, BUILDS), stimulus)
    with capsys.disabled():
        print(survivors_table("intensity_scheduler", report, SCHEDULER_REASONS))
    assert report.score >= 0.9
