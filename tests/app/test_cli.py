"""The command line: output, exit codes, JSON, and what it must not import."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gen.config.config import presets
from gen.errors import ToolError, UserError
from gen.flows.synth import RESOURCES
from rtl.registry import BLOCKS
from sim_models.params.base import Params
from speculoos import cli
from speculoos.cli import COMMANDS, main
from speculoos.report import Report, write_atomic
from tb.common import runner
from tb.common.build import BuildError
from tb.common.waves import Recording

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run in a folder of their own."""
    monkeypatch.chdir(tmp_path)


def run(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    code = main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def test_every_command_has_a_module_with_help(capsys: Capture) -> None:
    folder = Path(cli.__file__).parent / "commands"
    assert {p.stem for p in folder.glob("*.py")} - {"__init__", "arguments"} == set(COMMANDS)
    for name in COMMANDS:
        code, out, err = run(capsys, name, "--help")
        assert (code, err) == (0, "")
        assert f"usage: speculoos {name}" in out
        assert "--json FILE" in out


def test_help_lists_the_commands_and_imports_nothing_heavy() -> None:
    script = ("import sys; from speculoos.cli import main; code = main(['--help']); "
              "print(sorted({'amaranth', 'numpy', 'rich', 'cocotb', 'asyncio'} & set(sys.modules)))")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    *lines, heavy = done.stdout.splitlines()
    assert heavy == "[]"
    assert all(any(line.strip().startswith(name) for line in lines) for name in COMMANDS)


def test_no_arguments_is_not_success(capsys: Capture) -> None:
    code, out, err = run(capsys)
    assert (code, out) == (2, "")
    assert "usage: speculoos" in err


def test_version(capsys: Capture) -> None:
    code, out, _ = run(capsys, "--version")
    assert code == 0
    assert out.startswith("speculoos 0.")


def test_list_shows_every_block_and_preset(capsys: Capture) -> None:
    code, out, err = run(capsys, "list")
    assert (code, err) == (0, "")
    assert {line.split()[0] for line in out.splitlines() if line} == {"block", "preset", *BLOCKS, *presets()}
    assert "\x1b" not in out


def test_json_file_is_whole_and_named(capsys: Capture, tmp_path: Path) -> None:
    code, out, _ = run(capsys, "list", "--json", "list.json")
    assert code == 0
    assert out.endswith("wrote list.json\n")
    data = json.loads((tmp_path / "list.json").read_text())
    assert data["command"] == "list"
    assert [b["name"] for b in data["blocks"]] == list(BLOCKS)
    assert os.listdir(tmp_path) == ["list.json"]
    assert (tmp_path / "list.json").stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_json_on_standard_output_is_alone_there(capsys: Capture) -> None:
    code, out, err = run(capsys, "list", "--json", "-")
    assert code == 0
    assert [p["name"] for p in json.loads(out)["presets"]] == list(presets())
    assert "compute_engine" in err


def test_new_then_check(capsys: Capture, tmp_path: Path) -> None:
    code, out, _ = run(capsys, "new", "mine", "--from", "pe", "--json", "n.json")
    assert code == 0
    assert out.splitlines()[:2] == ["wrote mine.toml", "next: speculoos check mine.toml"]
    assert json.loads((tmp_path / "n.json").read_text())["files"] == ["mine.toml"]
    code, out, err = run(capsys, "check", "mine.toml", "--set", "operand_width=4", "--json", "c.json")
    assert (code, err) == (0, "")
    data = json.loads((tmp_path / "c.json").read_text())
    assert (data["design"], data["block"], data["module"]) == ("mine", "pe", "mine_w4")
    assert data["params"]["operand_width"] == 4
    ports = {p["name"]: (p["direction"], p["width"], p["signed"]) for p in data["ports"]}
    assert ports["clk"] == ("input", 1, False)
    assert ports["activation"] == ("input", 4, True)
    assert "mine_w4" in out


def test_check_fails_when_a_tool_refuses(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Any) -> None:
        raise ToolError("slang does not accept pe")
    monkeypatch.setattr("gen.flows.check.CHECKS", {"yosys": lambda _: None, "slang": refuse})
    code, out, err = run(capsys, "check", "pe", "--json", "c.json")
    assert (code, err) == (1, "")
    assert "\nslang               failed   slang does not accept pe\n" in out
    assert "\nnot accepted by slang\n" in out
    assert json.loads(Path("c.json").read_text())["checks"] == {"yosys": "ok", "slang": "failed"}


def test_check_does_without_a_tool_that_is_not_installed(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gen.flows.check.CHECKS", {"icarus": lambda _: None})
    monkeypatch.setenv("PATH", "/nonexistent")
    code, out, _ = run(capsys, "check", "pe")
    assert code == 0
    assert "\nicarus              missing  install it with `apt install iverilog`\n" in out


def test_verilog_names_every_file(capsys: Capture, tmp_path: Path) -> None:
    code, out, err = run(capsys, "verilog", "pe", "--set", "operand_width=4", "-o", "a/b", "--json", "v.json")
    assert (code, err) == (0, "")
    written = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert {line.removeprefix("wrote ") for line in out.splitlines()} == written
    data = json.loads(Path("v.json").read_text())
    assert (data["top"], data["folder"]) == ("pe_w4", "a/b")
    assert {f"a/b/{name}" for name in data["files"]} | {"v.json"} == written
    assert "module pe_w4(" in Path("a/b/pe_w4.v").read_text()


@pytest.fixture
def fake_synthesis(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Replaces Yosys: 10 LUTs for the first design, 12 for the next; returns what it was asked for."""
    calls: list[dict[str, Any]] = []

    def synthesize(unit: Any, target: str, **options: Any) -> dict[str, Any]:
        calls.append({"unit": unit.unit_name, "target": target, **options})
        figures: dict[str, Any] = dict.fromkeys(RESOURCES, 0)
        return figures | {"lut": 8 + 2 * len(calls), "fmax_mhz": 100.25 if options["place"] else None}
    monkeypatch.setattr("gen.flows.synth.synthesize", synthesize)
    return calls


def test_synth_prints_the_figures(capsys: Capture, fake_synthesis: list[dict[str, Any]]) -> None:
    code, out, err = run(capsys, "synth", "pe", "--target", "ecp5", "--place", "--no-dsp", "--json", "s.json")
    assert (code, err) == (0, "")
    assert [(c["unit"], c["target"], c["place"], c["dsp"]) for c in fake_synthesis] == [("pe", "ecp5", True, False)]
    header, row, _ = out.splitlines()
    assert dict(zip(header.split(), row.split(), strict=True)) == {
        "ecp5": "pe", **dict.fromkeys(RESOURCES, "0"), "lut": "10", "fmax_mhz": "100.250"}
    data = json.loads(Path("s.json").read_text())
    assert {"lut", "lutram", "ff", "dsp", "bram", "uram", "fmax_mhz"} <= set(data)
    assert (data["target"], data["lut"], data["fmax_mhz"]) == ("ecp5", 10, 100.25)


def test_synth_compares_the_modes(capsys: Capture, fake_synthesis: list[dict[str, Any]]) -> None:
    code, out, _ = run(capsys, "synth", "pe", "--compare", "--json", "s.json")
    assert code == 0
    assert [c["unit"] for c in fake_synthesis] == ["pe_systolic", "pe_vector", "pe"]
    assert "both modes          +40.0%\n" in out
    rows = json.loads(Path("s.json").read_text())["rows"]
    assert [(r["name"], r["lut"]) for r in rows] == [
        ("systolic only", 10), ("vector-lane only", 12), ("both modes", 14)]


def test_schema_is_json(capsys: Capture) -> None:
    code, out, _ = run(capsys, "check", "--schema")
    assert code == 0
    assert json.loads(out)["properties"]["block"]["enum"] == list(BLOCKS)


def test_doctor_is_content(capsys: Capture) -> None:
    code, out, _ = run(capsys, "doctor", "--json", "-")
    data = json.loads(out)
    assert code == 0
    assert data["ok"] is True
    assert {"g++", "make", "perl", "verilator", "pyosys", "cocotb", "iverilog", "ccache", "build folder"} <= {
        c["name"] for c in data["checks"]}


def test_doctor_names_what_is_missing(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    code, out, err = run(capsys, "doctor")
    assert (code, err) == (1, "")
    assert out.splitlines()[-1] == "missing: g++, make, perl, verilator"
    assert "it is not on PATH; to build simulations, install it with `apt install g++`" in out


@pytest.fixture
def fake_runs(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Replaces the simulator: passes unless the block is ``pe_array``; returns what it was asked for."""
    calls: list[dict[str, Any]] = []

    def run_bench(block: str, params: Params, **options: Any) -> runner.BenchResult:
        calls.append({"block": block, "params": params, **options})
        failures = (runner.Failure("sums", "element 3 differs"),) if block == "pe_array" else ()
        return runner.BenchResult(block=block, unit_name=params.unit_name(block), tests=2, failures=failures,
                                  comparisons=70, cycles=900, seed=options["seed"] or 5, seconds=0.25,
                                  waves=None, repeat=f"speculoos sim {block} --seed 5")
    monkeypatch.setattr(runner, "run_bench", run_bench)
    monkeypatch.setattr(runner, "variants", lambda block: {
        "default": {}, "narrow": {"operand_width": 4} if hasattr(BLOCKS[block].params, "operand_width") else {}})
    return calls


def test_sim_runs_every_variant(capsys: Capture, tmp_path: Path, fake_runs: list[dict[str, Any]]) -> None:
    code, out, err = run(capsys, "sim", "pe", "--seed", "7", "--json", "s.json")
    assert (code, err) == (0, "")
    assert "all 2 runs passed, 140 comparisons" in out
    assert {c["params"].operand_width for c in fake_runs} == {8, 4}
    assert {(c["block"], c["seed"], c["build_root"]) for c in fake_runs} == {("pe", 7, Path("build"))}
    data = json.loads((tmp_path / "s.json").read_text())
    assert data["ok"] is True
    rows = [(r["module"], r["comparisons"], r["seed"]) for r in data["rows"]]
    assert rows == [("pe", 70, 7), ("pe_w4", 70, 7)]


def test_sim_all_runs_every_block_and_fails_with_any(capsys: Capture, tmp_path: Path,
                                                     fake_runs: list[dict[str, Any]]) -> None:
    code, out, _ = run(capsys, "sim", "all", "--json", "s.json")
    assert code == 1
    assert {c["block"] for c in fake_runs} == set(BLOCKS)
    assert "pe_array: sums: element 3 differs\nrepeat: speculoos sim pe_array --seed 5\n" in out
    assert out.splitlines()[-2] == f"2 of {2 * len(BLOCKS)} runs failed"
    data = json.loads((tmp_path / "s.json").read_text())
    assert data["ok"] is False
    assert {r["block"] for r in data["rows"] if not r["ok"]} == {"pe_array"}


def test_sim_is_narrowed_to_one_run(capsys: Capture, fake_runs: list[dict[str, Any]]) -> None:
    assert run(capsys, "sim", "pe", "--set", "operand_width=6", "--waves", "--build-dir", "b")[0] == 0
    calls = [(c["params"].operand_width, c["waves"], c["build_root"]) for c in fake_runs]
    assert calls == [(6, Recording(), Path("b"))]


def test_sim_lists_blocks_with_their_tests_and_variants(capsys: Capture, tmp_path: Path) -> None:
    code, out, err = run(capsys, "sim", "--list", "fifo", "--json", "s.json")
    assert (code, err) == (0, "")
    assert "smallest" in out
    (row,) = json.loads((tmp_path / "s.json").read_text())["rows"]
    assert list(row["variants"]) == ["default", "smallest", "deep", "wide"]
    assert row["tests"] == ["scenarios", "same_words_at_any_timing", "every_cycle", "capacity_latency_throughput",
                            "reset_empties", "takes_nothing_in_reset"]


@pytest.mark.parametrize("error", [BuildError, ToolError])
def test_sim_reports_a_failed_build(error: type[Exception], capsys: Capture,
                                    monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error("module pe could not be built")
    monkeypatch.setattr(runner, "run_bench", fail)
    assert run(capsys, "sim", "pe", "--set", "acc_width=30") == (
        1, "", "speculoos: error: module pe could not be built\n")


def test_interrupt_is_clean(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        signal.raise_signal(signal.SIGINT)
    monkeypatch.setattr("gen.config.config.presets", interrupted)
    # a shell may have started us with the signal ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code, out, err = run(capsys, "list")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (code, out, err) == (130, "", "speculoos: interrupted\n")


def test_names_that_the_terminal_cannot_show(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "speculoos.cli", "list", "--json", str(tmp_path / "ü.json")],
                          cwd=Path(cli.__file__).parents[1], env={**os.environ, "PYTHONIOENCODING": "ascii"},
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(r"\xfc.json" + "\n")


def test_closed_pipe_is_quiet() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-m", "speculoos.cli", "list"], stdout=writer, stderr=subprocess.PIPE,
                          cwd=Path(cli.__file__).parents[1], check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(("redirection", "code", "message"), [
    (">&-", 1, "speculoos: error: standard output is closed\n"),
    ("> /dev/full", 1, "speculoos: error: standard output: No space left on device\n"),
    (">&- 2>&-", 1, ""), ("< /dev/null 2>&-", 0, ""), ("<&-", 0, ""),
])
@pytest.mark.parametrize("command", ["list", "--help", "help list"])
def test_standard_files_that_are_closed_or_full(command: str, redirection: str, code: int, message: str) -> None:
    done = subprocess.run(f"{sys.executable} -m speculoos {command} {redirection}", shell=True, capture_output=True,
                          text=True, cwd=Path(cli.__file__).parents[1], check=False)
    assert (done.returncode, done.stderr) == (code, message)
    assert (done.stdout != "") == (code == 0)


def test_help_is_a_command_too(capsys: Capture) -> None:
    assert run(capsys, "help") == run(capsys, "--help")
    assert run(capsys, "help", "sim") == run(capsys, "sim", "--help")
    code, _, err = run(capsys, "help", "sum")
    assert (code, err) == (2, "speculoos: error: there is no command 'sum' (did you mean 'sim'?)\n")


def test_full_disk_is_named(tmp_path: Path) -> None:
    """A limit on the size of files stands for a disk without room: both fail in the middle of writing."""
    script = ("import resource; from pathlib import Path; from gen.emit.process import scratch, unfinished\n"
              "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
              "from speculoos import cli; from gen.flows.doctor import build_folder, Missing\n"
              "try: build_folder(Path('b'))()\n"
              "except Missing as e: print(e)\n"
              "def fill(path): path.mkdir(exist_ok=True); (path / 'x').write_bytes(bytes(9999))\n"
              "def work(_):\n"
              "    with unfinished(Path('half')): fill(Path('half'))\n"
              "cli._run = work; print(cli.main([]))\n"
              "def work(_):\n"
              "    with scratch() as folder: fill(folder)\n"
              "cli._run = work; print(cli.main([]))\n")
    env = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(cli.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True,
                          env=env)
    assert done.stdout == f"{tmp_path} is not writable: File too large\n1\n1\n"
    first, second = done.stderr.splitlines()
    assert first == "speculoos: error: half: File too large"
    assert re.fullmatch(rf"speculoos: error: {tmp_path}/speculoos-\w+: File too large", second)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("broken", ["os.chmod", "os.replace"])
def test_failed_write_leaves_the_old_file(broken: str, tmp_path: Path,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.json"
    file.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")
    monkeypatch.setattr(broken, fail)
    with pytest.raises(UserError, match=r"x.json cannot be written: No space left on device$"):
        write_atomic(file, "new")
    assert os.listdir(tmp_path) == ["x.json"]
    assert file.read_text() == "old"


def test_tables_align_and_round(capsys: Capture) -> None:
    Report().table(["name", "n", "x"], [["a", 1, 0.5], ["long name", 22, None]], "Title")
    assert capsys.readouterr().out == ("Title\n"
                                       "name        n      x\n"
                                       "a           1  0.500\n"
                                       "long name  22\n")


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, width: int, work: Callable[[Report], None]) -> str:
    """What a terminal shows of some work."""
    screen, pretended = os.openpty()
    with os.fdopen(pretended, "w") as terminal:
        monkeypatch.setattr("sys.stdout", terminal)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", str(width))
        work(Report())
    shown = ""
    with contextlib.suppress(OSError):      # which is how the end of a terminal's output shows
        while True:
            shown += os.read(screen, 1 << 16).decode()
    os.close(screen)
    return shown


@pytest.mark.parametrize("width", [20, 40, 60, 100, 200])
def test_narrow_terminal_breaks_no_word(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [[b.name, f"rtl/{b.folder}", b.summary, b.source] for b in BLOCKS.values()]
    columns = ["block", "folder", "what", "source"]
    shown = on_a_terminal(monkeypatch, width, lambda report: report.table(columns, rows))
    shown = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    words = set(shown.split())
    for row in rows:
        assert {word for cell in row for word in cell.split()} <= words
    assert max(map(len, shown.splitlines())) <= max(width, 30)      # or the longest word after its column's name


def test_progress_without_a_terminal(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line every so often on standard error: what is done, and how long the rest takes."""
    monkeypatch.setattr("speculoos.report._INTERVAL", 0.05)
    now = 100.0
    monkeypatch.setattr("speculoos.report.time", types.SimpleNamespace(monotonic=lambda: now))
    report = Report()

    def comes(line: str) -> None:
        end, said = time.monotonic() + 20, ""
        while f"{line}\n" not in said:
            said += capsys.readouterr().err
            assert time.monotonic() < end, said
            time.sleep(0.01)

    threads = threading.active_count()
    with report.progress("benches", 4) as progress:
        for line in ("1 of 4 done in 45 s, about 2 min 15 s left",
                     "2 of 4 done in 1 min 30 s, about 1 min 30 s left"):
            progress.step("fifo")
            now += 45
            comes(f"benches: {line} (fifo)")
    with report.status("synthesising") as tell:
        tell("Yosys: abc")
        now += 3700
        comes("synthesising: 1 h 1 min (Yosys: abc)")
    assert threading.active_count() == threads


def test_quick_work_says_nothing_of_its_progress(capsys: Capture) -> None:
    with Report().progress("quick", 2) as progress:
        progress.step("one")
    assert capsys.readouterr() == ("", "")


def test_terminal_gets_a_bar_and_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(report: Report) -> None:
        with report.progress("working", 2) as progress:
            progress.step("[half]")
            progress.step()
        report.table(["name", "n"], [["[bold]a", 1]])

    shown = on_a_terminal(monkeypatch, 80, work)
    assert "2/2" in shown
    assert "[bold]a" in shown
    assert "\x1b[" in shown
