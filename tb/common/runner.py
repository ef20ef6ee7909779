"""Builds a unit with Verilator, runs its cocotb bench and judges what came back.

A run is good only if everything a good run has is there: a results file, at least one test, comparisons in
each test, and no failure; silence is a failure.
"""

import dataclasses
import importlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from gen.emit.emit import Design, emit
from gen.emit.process import run_child, side_by_side
from gen.errors import EmitError, naming
from rtl.registry import BLOCKS
from rtl.unit import Unit
from sim_models.params.base import Params
from tb.common import BENCH_VARIABLE, BenchInfo, Port
from tb.common.build import (
    BuildError,
    add_runtime,
    compiled_once,
    keyed_folder,
    locked,
    run_logged,
    toolchain,
)
from tb.common.poison import BUILD_FLAGS, run_flags
from tb.common.waves import Recording, check_scope, save_view, with_fields, with_quiet_nets

__all__ = ["BenchResult", "Build", "Failure", "build", "default_out", "regress", "run_bench", "run_unit",
           "unit_ports", "variants"]

_ROOT = Path(__file__).resolve().parents[2]
#: seconds of real time after which a simulator that does not end is killed
WALL_LIMIT = 900.0
#: cycles before and after a difference that the command which records it asks for
_AROUND = 50
_FLAGS = ("-O3", "-Wno-fatal", "--no-timing", "--output-split", "0", "--public-depth", "1",
          "--timescale", "1ns/1ps", *BUILD_FLAGS)

#: compiled in half the time of -Os; a cocotb bench spends its own in Python
_MAKE = ("OPT_FAST=-O1",)
#: the main program of simulators that record
_RECORDER = Path(__file__).with_name("waves.cpp")

_emit_lock = threading.Lock()


@dataclasses.dataclass(frozen=True)
class Build:
    """A compiled simulator."""

    folder: Path
    #: Verilog module name
    top: str
    #: "" without, or "vcd" or "fst"
    waves: str
    #: whether an earlier build was used as it stands
    reused: bool
    ports: tuple[Port, ...]
    design: Design


@dataclasses.dataclass(frozen=True)
class Failure:
    """One failed test, or the run itself (``test`` is empty)."""

    test: str
    message: str


@dataclasses.dataclass(frozen=True)
class BenchResult:
    """Outcome of one bench with one set of parameters."""

    block: str
    unit_name: str
    #: tests that ran
    tests: int
    failures: tuple[Failure, ...]
    #: elements compared, over all tests
    comparisons: int
    #: clock cycles simulated, over all tests
    cycles: int
    seed: int
    #: real time with the build
    seconds: float
    #: waveform file, if one was asked for
    waves: Path | None
    #: the command that repeats this run
    repeat: str
    #: the view of the waveform, if one was asked for
    view: Path | None = None
    #: the command that records the cycles around the first difference, if one was found without a waveform
    record: str | None = None

    @property
    def ok(self) -> bool:
        """Whether everything passed."""
        return not self.failures


def variants(block: str) -> dict[str, dict[str, object]]:
    """The parameter sets that a block's bench is run with.

    Raises
    ------
    ValueError
        The bench has no ``VARIANTS`` with a "default".
    """
    named = getattr(importlib.import_module(BLOCKS[block].bench), "VARIANTS", None)
    if not isinstance(named, dict) or "default" not in named:
        raise ValueError(f"{BLOCKS[block].bench} needs VARIANTS, a dictionary with at least 'default': {{}}")
    return named


def unit_ports(unit: Unit) -> tuple[Port, ...]:
    """Ports of a unit's Verilog module without clocks and resets."""
    from amaranth.hdl import Const, Value
    from amaranth.lib.wiring import In

    flat = [(name, member, Value.cast(value)) for name, _, member, value in unit.flat_members()]
    return tuple(Port(name, "in" if member.flow == In else "out", len(value))
                 for name, member, value in flat if not isinstance(value, Const) and len(value))


def build(unit: Unit, *, waves: Recording | None = None, build_root: Path, control: str = "",
          once: Sequence[str] = ()) -> Build:
    """Compile a unit for cocotb, or reuse an equal earlier build.

    Parameters
    ----------
    unit:
        What to simulate.
    waves:
        What runs can record, if anything (FST where the zlib and lz4 headers are installed, else VCD).
    build_root:
        Folder of all builds.
    control:
        Text of a Verilator control file (waivers, signals to make visible).
    once:
        Blocks below the top that are compiled once each, see :func:`tb.common.native.compile_native`; a waveform
        does not show what is in them.

    Raises
    ------
    ToolError
        A compiler or Verilator is missing.
    BuildError
        The build failed.
    """
    tools = toolchain()
    from cocotb_tools import config

    with _emit_lock:
        design = emit(unit)
    if waves:
        check_scope(design, waves)
    kind = _wave_format(tools.env) if waves else ""
    trace = {"": [], "vcd": ["--trace"], "fst": ["--trace-fst"]}[kind]
    modules = [name for name, block in design.blocks.items() if block in once and name != design.top]
    flags = [*_FLAGS, *trace, *(["--hierarchical"] if modules else [])]
    verilog = _traced(design, waves) if waves else design.simulation
    if modules:
        verilog, apart = compiled_once(verilog, modules)
        control += apart
    libs = config.libs_dir

    def make(folder: Path) -> None:
        sources = ["design.v"]
        (folder / "design.v").write_text(verilog)
        if control:
            (folder / "control.vlt").write_text(control)
            sources.insert(0, "control.vlt")
        main = config.share_dir / "lib" / "verilator" / "verilator.cpp"
        includes = f"-I{main.parent}"
        if waves:
            main = _RECORDER
        run_logged([
            [tools.verilator, "--cc", "--exe", "--vpi", *flags, "--Mdir", ".", "--prefix", "Vtop",
             "--top-module", design.top, "-o", "simulator",
             *(["-CFLAGS", includes] if waves else []),
             "-LDFLAGS", f"-Wl,-rpath,{libs} -L{libs} -lcocotbvpi_verilator{' -rdynamic' * bool(waves)}",
             str(main), *sources],
        ], folder, tools.env, f"module {design.top}")
        if waves:
            _compile_fast(folder)
        options = [*_MAKE, f"VM_TRACE={int(bool(waves))}"]
        add_runtime(folder, build_root, tools, ["--vpi", *_FLAGS, *trace], options)
        run_logged([["make", "-j2", "-C", ".", "-f", "Vtop_hier.mk" if modules else "Vtop.mk", *options]],
                   folder, tools.env, f"module {design.top}")

    folder, reused = keyed_folder(build_root, design.top, {
        "verilog": verilog, "top": design.top, "flags": [*flags, *_MAKE], "control": control,
        "libs": str(libs), "recorder": _RECORDER.read_text() if waves else ""}, make)
    return Build(folder, design.top, kind, reused, unit_ports(unit), design)


def _traced(design: Design, waves: Recording) -> str:
    """Verilog that records what was asked for."""
    modules = {name: text if waves.nets else with_quiet_nets(text) for name, text in design.modules.items()}
    modules[design.top] = with_fields(design, modules[design.top])
    return dataclasses.replace(design, modules=modules).simulation


def _compile_fast(folder: Path) -> None:
    """Leave out the C++ compiler's optimisation of code that runs once, or once a recorded cycle.

    Verilator would do so by itself if it compiled file by file.
    """
    for path in folder.rglob("*.cpp"):
        if "__Slow" in path.name or "__Trace" in path.name:
            path.write_text(f'#pragma GCC push_options\n#pragma GCC optimize("O0")\n{path.read_text()}'
                            "\n#pragma GCC pop_options\n")


def _wave_format(env: Mapping[str, str]) -> str:
    """FST needs the headers of zlib and lz4 to compile."""
    probe = subprocess.run(["g++", "-E", "-x", "c++", "-"], env=dict(env), capture_output=True, check=False,
                           input=b"#include <zlib.h>\n#include <lz4.h>\n")
    return "fst" if probe.returncode == 0 else "vcd"


def default_out(build_root: Path, block: str, unit_name: str) -> Path:
    """Where the results of a run go when nothing else is said."""
    return Path(build_root) / "results" / block / unit_name


def run_bench(block: str, params: Params, *, seed: int | None = None, waves: Recording | None = None,
              test: str | None = None, build_root: Path, out: Path | None = None) -> BenchResult:
    """Build a block and run its bench.

    Parameters
    ----------
    block, params:
        A registered block and its parameters.
    seed:
        Seed of everything random; drawn (and reported) when None.
    waves:
        Record this into ``out``.
    test:
        Run the tests of this name only.
    build_root, out:
        Folders of builds and of this run's results.

    Raises
    ------
    KeyError
        No such block.
    ToolError, BuildError
        See :func:`build`.
    """
    entry = BLOCKS[block]
    toolchain()                                         # a missing tool is reported before any work
    return run_unit(entry.unit(params), entry.bench, block=block, seed=seed, waves=waves, test=test,
                    build_root=build_root, out=out)


def run_unit(unit: Unit, module: str, *, block: str, seed: int | None = None, waves: Recording | None = None,
             test: str | None = None, build_root: Path, out: Path | None = None, control: str = "",
             wall_limit: float = WALL_LIMIT) -> BenchResult:
    """Run a bench module against any unit; :func:`run_bench` is this for registered blocks."""
    began = time.monotonic()
    if seed is None:
        seed = secrets.randbelow(1 << 31)
    once = getattr(importlib.import_module(module), "ONCE", ())
    made = build(unit, waves=waves, build_root=build_root, control=control, once=once)
    folder = (out or default_out(build_root, block, made.top)).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    results, counts, log = folder / "results.xml", folder / "counts.jsonl", folder / "sim.log"
    wave = folder / f"waves.{made.waves}" if made.waves else None
    info = BenchInfo(block, unit.params, made.ports, str(counts), waves.window if waves else None)
    # two runs of one unit at a time would delete each other's results
    with locked(folder / ".lock", f"the results of {made.top}"), naming(folder):
        for stale in (results, counts, log, *([wave] if wave else [])):
            stale.unlink(missing_ok=True)
        ended = _simulate(made, module, info, seed, test, results, log, wave, waves, wall_limit)
        tests, failures = _judge(results, counts, log, ended, module, test)
        lines = _counts(counts)
        recorded = wave if wave and wave.exists() else None
        found = next((line for line in lines if line["difference"]), None)
        moment = found["difference"]["ns"] if found else None
        view = save_view(made.design, waves, recorded, moment) if waves and recorded else None
    around = None
    if found and not waves:
        cycle = found["difference"]["cycle"]
        around = _repeat(block, unit.params, seed, Recording(max(1, cycle - _AROUND), cycle + _AROUND),
                         found["test"].partition("/")[0], ())
    return BenchResult(
        block=block, unit_name=made.top, tests=tests, failures=failures, seed=seed,
        comparisons=sum(line["compared"] for line in lines), cycles=sum(line["cycles"] for line in lines),
        seconds=time.monotonic() - began, waves=recorded, view=view, record=around,
        repeat=_repeat(block, unit.params, seed, waves, test, failures))


def _simulate(made: Build, module: str, info: BenchInfo, seed: int, test: str | None, results: Path,
              log: Path, wave: Path | None, waves: Recording | None, wall_limit: float) -> str:
    """Run the simulator; returns how it ended, empty for well."""
    from cocotb_tools import config
    from find_libpython import find_libpython

    env = dict(toolchain().env)
    env.update({
        BENCH_VARIABLE: info.encode(),
        "COCOTB_TOPLEVEL": made.top, "TOPLEVEL_LANG": "verilog", "COCOTB_TEST_MODULES": module,
        "COCOTB_RESULTS_FILE": str(results), "COCOTB_RANDOM_SEED": str(seed),
        "COCOTB_TRUST_INERTIAL_WRITES": "1", "COCOTB_ANSI_OUTPUT": "0",
        "GPI_USERS": f"{find_libpython()};{config.pygpi_entry_point()}",
        "PYGPI_PYTHON_BIN": sys.executable, "PYTHONPATH": os.pathsep.join([str(_ROOT), *sys.path]),
        "PATH": f"{env['PATH']}{os.pathsep}{config.libs_dir}"})
    if test is not None:
        env["COCOTB_TEST_FILTER"] = rf"\.{re.escape(test)}(/|$)"
    command = [str(made.folder / "simulator"), *run_flags(seed)]
    if wave is not None and waves is not None:
        command += ["--trace", "--trace-file", str(wave), *waves.arguments(made.top)]
    with log.open("w") as f:
        try:
            code = run_child(command, cwd=results.parent, env=env, log=f, timeout=wall_limit)
        except subprocess.TimeoutExpired:
            return f"the simulator did not end within {wall_limit:g} seconds and was stopped"
    if code < 0:
        return f"the simulator crashed with {signal.Signals(-code).name}"
    return f"the simulator ended with code {code}" if code else ""


def _counts(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _judge(results: Path, counts: Path, log: Path, ended: str, module: str,
           test: str | None) -> tuple[int, tuple[Failure, ...]]:
    """Number of tests and everything that is wrong with a run."""
    found: list[Failure] = []
    names: list[str] = []
    if results.exists():
        for case in ElementTree.parse(results).getroot().iter("testcase"):
            names.append(case.get("name", ""))
            for kind in ("failure", "error", "skipped"):
                for item in case.iter(kind):
                    text = item.get("message") or item.get("error_msg") or (item.text or "").strip() or kind
                    found.append(Failure(names[-1], text if kind != "skipped" else "the test was skipped"))
        if not names:
            named = f" named {test}" if test else ""
            found.append(Failure("", f"no test ran: {module} has no test{named}"))
    else:
        found.append(Failure("", f"no results file was written; the log ends: {_tail(log)}"))
    if ended:
        found.append(Failure("", ended))
    failed = {f.test for f in found}
    compared = {line["test"]: line["compared"] for line in _counts(counts)}
    found += [Failure(name, "the test compared nothing") for name in names
              if name not in failed and not compared.get(str(name))]
    text = log.read_text(errors="replace")
    forgotten = re.findall(r"coroutine '\S+' was never awaited", text)
    reported = " ".join(f.message for f in found)
    found += [Failure("", line) for line in dict.fromkeys(forgotten) if line not in reported]
    return len(names), tuple(found)


def _tail(log: Path) -> str:
    lines = [ln.strip() for ln in log.read_text(errors="replace").splitlines()]
    lines = [ln for ln in lines if ln and "$finish" not in ln]
    return " | ".join(lines[-3:]) or "(empty)"


def _repeat(block: str, params: Params, seed: int, waves: Recording | None, test: str | None,
            failures: Sequence[Failure]) -> str:
    words = ["speculoos", "sim", block, "--seed", str(seed)]
    for field in dataclasses.fields(params):
        value = getattr(params, field.name)
        if value != field.default:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            words += ["--set", f"{field.name}={text}"]
    name = test or next((f.test.partition("/")[0] for f in failures if f.test), None)
    if name:
        words += ["--test", name]
    return " ".join([*words, *(waves.options() if waves else [])])


def regress(items: Iterable[tuple[str, Params]], jobs: int = 2, *, build_root: Path, seed: int | None = None,
            waves: Recording | None = None, on_result: Callable[[int, int, BenchResult], None] | None = None
            ) -> list[BenchResult]:
    """Run many benches side by side.

    Parameters
    ----------
    items:
        (block, parameters) pairs.
    jobs:
        Simulators at a time.
    build_root, seed, waves:
        As for :func:`run_bench`.
    on_result:
        Called with (finished, all, result) after each bench, for progress.

    Returns
    -------
    list[BenchResult]
        In the order of ``items``.

    Raises
    ------
    ValueError
        Nothing to run.
    ToolError
        A tool is missing. A design that cannot be built is a failed result instead.
    """
    work = list(items)
    if not work:
        raise ValueError("nothing to run: no block was selected")
    toolchain()
    done: dict[int, BenchResult] = {}

    def bench(i: int) -> BenchResult:
        return _run_or_fail(*work[i], seed, waves, build_root)

    def ended(count: int, i: int, result: BenchResult) -> None:
        done[i] = result
        if on_result is not None:
            on_result(count, len(work), result)

    side_by_side(bench, range(len(work)), jobs, ended)
    return [done[i] for i in range(len(work))]


def _run_or_fail(block: str, params: Params, seed: int | None, waves: Recording | None,
                 build_root: Path) -> BenchResult:
    """One bench of many: a block that cannot be built must not hide the others' results."""
    began = time.monotonic()
    try:
        return run_bench(block, params, seed=seed, waves=waves, build_root=build_root)
    except (BuildError, EmitError) as error:
        return BenchResult(
            block=block, unit_name=params.unit_name(block), tests=0, comparisons=0, cycles=0, seed=seed or 0,
            failures=(Failure("", str(error)),), seconds=time.monotonic() - began, waves=None,
            repeat=_repeat(block, params, seed or 0, waves, None, ()))
