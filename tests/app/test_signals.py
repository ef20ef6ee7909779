"""The first signal ends a command, with all that it started, whatever it is at; nothing half-made is left."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from sim_models.params.tile.engine.pe import PEParams
from speculoos.cli import main
from tb.common import runner
from tb.common.build import locked
from tests.designs.run import fresh_builds

ROOT = Path(__file__).parents[2]
#: seconds in which a command must be gone; 3 by design, and the machine may be loaded
BOUND = 10.0


def default_signals() -> None:
    """What a shell gives its children, however we were started: nohup and background jobs have some ignored."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def start(*command: str, scratch: Path) -> "subprocess.Popen[str]":
    """A Python program that works in a scratch folder of its own."""
    scratch.mkdir()
    return subprocess.Popen([sys.executable, *command], cwd=ROOT, env={**os.environ, "TMPDIR": str(scratch)},
                            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=default_signals)


def await_true(condition: Callable[[], object]) -> None:
    """Wait, for five minutes at most."""
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


#: what a long run says on the way, sooner or later by the machine's load
ON_THE_WAY = re.compile(r"speculoos: waiting for |\w+: \d+ of \d+ done in ")


def end(process: "subprocess.Popen[str]", number: signal.Signals) -> tuple[int, str, float]:
    """Send a signal; exit code, standard error but for what is said on the way, and the seconds until the end."""
    began = time.monotonic()
    process.send_signal(number)
    try:
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    said = "".join(line for line in err.splitlines(keepends=True) if not ON_THE_WAY.match(line))
    return process.returncode, said, time.monotonic() - began


def at_work(folder: Path, program: str = "") -> list[str]:
    """Processes that work in a folder or name it; of one program, if one is named."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_text().split("\0")
            here = Path(os.readlink(process / "cwd")).is_relative_to(folder) or any(str(folder) in w for w in words)
            if here and words[0].endswith(program):
                found.append(process.name)
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda n: n.name)
def test_synthesis(number: signal.Signals, tmp_path: Path) -> None:
    """The synthesiser works in a session of its own: no signal to us, nor to our group, reaches it."""
    scratch = tmp_path / "scratch"
    process = start("-m", "speculoos", "synth", "pe_array", "--json", str(tmp_path / "o.json"), scratch=scratch)
    await_true(lambda: at_work(scratch))
    code, err, seconds = end(process, number)
    assert (code, err) == (128 + number, "speculoos: interrupted\n")
    assert seconds < BOUND
    assert not at_work(scratch)
    assert list(tmp_path.rglob("*")) == [scratch]


@pytest.mark.parametrize("program", ["verilator_bin", "cc1plus"])
def test_compilation(program: str, tmp_path: Path) -> None:
    builds = fresh_builds(tmp_path / "b")
    process = start("-m", "speculoos", "sim", "pe", "--seed", "1", "--build-dir", str(builds),
                    scratch=tmp_path / "scratch")
    # a seed alone runs all variants, two at a time in threads; ccache must not have any of them
    await_true(lambda: at_work(builds, program) or process.poll() is not None)
    code, err, seconds = end(process, signal.SIGINT)
    assert (code, err) == (130, "speculoos: interrupted\n")
    assert seconds < BOUND
    assert not at_work(tmp_path)
    assert [p for p in builds.glob("pe*") if p.is_dir() and not (p / "ok").exists()] == []


def test_simulation(tmp_path: Path) -> None:
    """A run in the main thread, its simulator at work."""
    out = tmp_path / "out"
    process = start("-c", f"import sys, pathlib; from tests.designs.run import run_echo; "
                          f"from gen.emit.process import interruptible\n"
                          f"with interruptible(): run_echo('bench_crash', pathlib.Path({str(out)!r}), test='blocks')",
                    scratch=tmp_path / "scratch")
    await_true(lambda: at_work(out, "simulator"))
    code, err, seconds = end(process, signal.SIGTERM)
    assert code != 0
    assert "Stopped" in err
    assert seconds < BOUND
    assert not at_work(out)


def test_native_run(tmp_path: Path) -> None:
    """Python cannot interrupt a thread that is inside a call of C."""
    half = tmp_path / "half"
    process = start("-c", f"import pathlib; from tests.designs.run import BUILDS; "
                          f"from tests.designs.units import Echo; "
                          f"from tb.common.native import NativeSim; "
                          f"from gen.emit.process import interruptible, unfinished\n"
                          f"half = pathlib.Path({str(half)!r}); sim = NativeSim(Echo(), BUILDS)\n"
                          f"with interruptible(), unfinished(half): half.mkdir(); sim.step(1 << 60)",
                    scratch=tmp_path / "scratch")
    await_true(lambda: half.exists() or process.poll() is not None)
    time.sleep(0.2)
    code, err, seconds = end(process, signal.SIGINT)
    assert (code, err) == (130, "speculoos: interrupted\n")
    assert seconds < BOUND
    assert not half.exists()


@pytest.fixture
def held_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of builds in which another process has the lock of ``pe``'s."""
    with monkeypatch.context() as m:
        m.setattr(runner, "run_logged", lambda *_: None)
        from rtl.registry import BLOCKS
        made = runner.build(BLOCKS["pe"].unit(PEParams()), build_root=fresh_builds(tmp_path / "b"))
    (made.folder / "ok").unlink()
    with FileLock(f"{made.folder}.lock"):
        yield made.folder


@pytest.mark.parametrize("settings", [(), ("--set", f"acc_width={PEParams().acc_width}")], ids=["threads", "alone"])
def test_waiting_for_a_lock_is_announced_and_ends(settings: tuple[str, ...], held_build: Path,
                                                  tmp_path: Path) -> None:
    process = start("-m", "speculoos", "sim", "pe", *settings, "--build-dir", str(held_build.parent),
                    scratch=tmp_path / "scratch")
    assert process.stderr
    said = process.stderr.readline()
    assert said.startswith(f"speculoos: waiting for the build {held_build.name}: process {os.getpid()} (")
    assert said.endswith(f") holds {held_build}.lock\n")
    code, err, seconds = end(process, signal.SIGINT)
    assert (code, err.splitlines()[-1]) == (130, "speculoos: interrupted")
    assert seconds < BOUND
    assert not at_work(tmp_path)


def test_lock_that_can_never_be_had_fails_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "pe", "--build-dir", "/proc"]) == 2
    assert capsys.readouterr().err.startswith("speculoos: error: --build-dir /proc: the folder is not writable: ")
    with pytest.raises(OSError, match=r"/proc/x.lock"), locked(Path("/proc/x.lock"), "x"):
        pass


def test_second_signal_does_not_hurt(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    process = start("-m", "speculoos", "synth", "pe_array", scratch=scratch)
    await_true(lambda: at_work(scratch))
    process.send_signal(signal.SIGINT)
    code, err, _ = end(process, signal.SIGTERM)
    assert (code, err) in [(130, "speculoos: interrupted\n"), (143, "speculoos: interrupted\n")]
    assert not at_work(scratch)
    assert list(scratch.iterdir()) == []


def test_signals_are_given_back(capsys: pytest.CaptureFixture[str]) -> None:
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    assert main(["--version"]) == 0
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


def test_nohup_is_respected() -> None:
    code = ("import signal; from gen.emit.process import interruptible; "
            "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
            "with interruptible(): assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN")
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
