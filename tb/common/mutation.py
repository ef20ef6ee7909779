"""Mutation testing: all mutants of a unit in one build, thousands of runs a minute.

Yosys puts every mutation behind an input ``mutsel`` (0 is the original); the stimulus runs once per value in
a forked process, so that a mutant which crashes or hangs the model is simply killed.
"""

import dataclasses
import faulthandler
import json
import os
import re
import resource
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from gen.emit.process import run_process, scratch
from rtl.unit import Unit
from tb.common import Port
from tb.common.native import NativeLibrary, NativeSim, compile_native
from tb.common.runner import unit_ports

__all__ = ["Mutant", "MutantSet", "MutationReport", "equivalent", "mutants", "reason_of", "run_mutants",
           "survivors_table"]

_SELECT_BITS = 16

_LIST = r'''
import sys; from pyosys import libyosys as ys
top, n, seed, cells = sys.argv[1:]; d = ys.Design()
for c in ("read_verilog -nomem2reg design.v", f"hierarchy -top {top}", "proc", "memory_collect", "flatten",
          "opt_clean", "autoname", f"mutate -list {n} -seed {seed} -o list.txt {cells}", "write_rtlil design.il"):
    d.run_pass(c)
'''
_APPLY = r'''
import sys; from pyosys import libyosys as ys
d = ys.Design(); d.run_pass("read_rtlil design.il")
for line in open("chosen.txt"): d.run_pass(line.strip())
d.run_pass("opt_clean"); d.run_pass("write_verilog -noattr mutants.v")
'''


#: two copies of the circuit between registers, one of them with a mutant, and whether they differ anywhere
_PROVE = r'''
import json, sys; from pyosys import libyosys as ys
top, *numbers = sys.argv[1:]; d = ys.Design()
def run(*commands):
    for c in commands: d.run_pass(c)
run("read_verilog mutants.v", f"hierarchy -top {top}", "proc", "flatten", "memory_map", "opt_clean",
    "dffunmap", "expose -evert-dff", "opt_clean", "rename -top circuit", "write_json circuit.json")
ports = json.load(open("circuit.json"))["modules"]["circuit"]["ports"]
size = {n: len(p["bits"]) for n, p in ports.items()}
given = [n for n, p in ports.items() if p["direction"] == "input" and n != "mutsel"]
shown = [n for n, p in ports.items() if p["direction"] == "output"]
name = {n: f"p{i}" for i, n in enumerate(ports)}
def copy(which, select):
    links = [f".\{n} ({name[n]})" for n in given] + [f".\{n} ({which}_{name[n]})" for n in shown]
    return f"circuit {which}(.mutsel({select}), " + ", ".join(links) + ");"
inputs = ", ".join(f"input [{size[n] - 1}:0] {name[n]}" for n in given)
lines = [f"module both(input [15:0] chosen, {inputs}, output differ);"]
lines += [f"wire [{size[n] - 1}:0] {which}_{name[n]};" for n in shown for which in ("one", "two")]
lines += [copy("one", "16'd0"), copy("two", "chosen")]
one, two = (", ".join(f"{which}_{name[n]}" for n in shown) for which in ("one", "two"))
lines += [f"assign differ = {{{one}}} != {{{two}}};", "endmodule"]
open("both.v", "w").write("\n".join(lines))
run("read_verilog both.v", "hierarchy -top both", "proc", "flatten", "opt -full", "design -save both")
for k in numbers:
    run("design -load both", f"connect -set chosen 16'd{k}", "opt -full", "opt_merge", "opt -full",
        f"tee -q -o proof_{k}.txt sat -prove differ 0 -timeout 20")
'''


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change to the netlist."""

    #: value of ``mutsel``
    number: int
    #: inv, const0, const1, or cnot0/cnot1 (inverted while a neighbouring bit is 0 or 1)
    mode: str
    cell: str
    port: str
    bit: int
    #: named wire at that place, empty when there is none
    wire: str

    def __str__(self) -> str:
        wire = f" ({self.wire})" if self.wire else ""
        return f"{self.number}: {self.mode} {self.cell}.{self.port}[{self.bit}]{wire}"


@dataclasses.dataclass(frozen=True)
class MutantSet:
    """All mutants of a unit, compiled.

    Members
    -------
    library: NativeLibrary
    mutants: tuple of Mutant
    verilog, top: str
        The module with all mutants, and its name.
    """

    library: NativeLibrary
    mutants: tuple[Mutant, ...]
    verilog: str
    top: str


@dataclasses.dataclass(frozen=True)
class MutationReport:
    """What the stimulus found.

    Attributes
    ----------
    killed:
        Mutants found, each with how (the message, ``crashed`` or ``hung``).
    survivors:
        Mutants that the stimulus did not notice.
    seconds:
        Real time.
    """

    killed: tuple[tuple[Mutant, str], ...]
    survivors: tuple[Mutant, ...]
    seconds: float

    @property
    def score(self) -> float:
        """Share of mutants killed, 0 to 1."""
        return len(self.killed) / (len(self.killed) + len(self.survivors))


def mutants(unit: Unit, count: int, seed: int, build_root: Path, *,
            without: Sequence[str] = ()) -> MutantSet:
    """Choose mutants evenly over the netlist and compile all of them at once.

    Parameters
    ----------
    unit:
        What to mutate, flattened. Clock and reset are left alone.
    count:
        Mutants wanted, fewer if the netlist has no more.
    seed:
        Of the choice.
    build_root:
        Folder of all builds.
    without:
        Patterns of cells that are left alone, as ``"pool.*"`` for all within the part ``pool``.

    Raises
    ------
    ValueError
        The count is not from 1 to 65535, or the netlist has nothing to mutate.
    """
    if not 1 <= count < 1 << _SELECT_BITS:
        raise ValueError(f"a number of mutants from 1 to {(1 << _SELECT_BITS) - 1} was wanted, not {count}")
    from gen.emit.emit import emit

    design = emit(unit)
    with scratch() as work:
        (work / "design.v").write_text(design.simulation)
        _yosys(_LIST, work, design.top, str(2 * count), str(seed),
               " ".join(["*", *(f"c:{pattern} %d" for pattern in without)]))
        fixed = _fixed((work / "design.il").read_text())
        lines = [ln for ln in (work / "list.txt").read_text().splitlines()
                 if not _untouchable(ln) and not fixed & {(_option(ln, "cell"), _option(ln, "port"))}][:count]
        if not lines:
            raise ValueError(f"{design.top} has nothing to mutate")
        chosen = [line.replace("mutate ", f"mutate -ctrl mutsel {_SELECT_BITS} {i} ", 1)
                  for i, line in enumerate(lines, 1)]
        (work / "chosen.txt").write_text("\n".join(chosen))
        _yosys(_APPLY, work)
        text = re.sub(r"\A/\*.*?\*/\n+", "", (work / "mutants.v").read_text())
    ports = (*unit_ports(unit), Port("mutsel", "in", _SELECT_BITS))
    library = compile_native(text, design.top, ports, build_root)
    return MutantSet(library, tuple(_parse(i, line) for i, line in enumerate(lines, 1)), text, design.top)


def _yosys(script: str, folder: Path, *arguments: str) -> None:
    """Yosys ends its process on an error, so it has one of its own."""
    code, said = run_process([sys.executable, "-c", script, *arguments], tool="Yosys", cwd=folder, timeout=3600)
    if code != 0:
        errors = [ln for ln in said.splitlines() if "ERROR" in ln]
        raise RuntimeError(f"Yosys could not make the mutants: {' '.join(errors) or said[-300:]}")


def _untouchable(line: str) -> bool:
    return re.search(r"-port (\w*CLK|ARST|SRST)\b|-wire (clk|rst)\b", line) is not None


def _fixed(netlist: str) -> set[tuple[str, str]]:
    """Cells and ports that must stay constant: enables and resets of a memory's reads without a clock."""
    cells = re.findall(r"cell \$mem_v2 \\?(\S+)\n(.*?)\n  end\n", netlist, re.DOTALL)
    return {(name, port) for name, text in cells if re.search(r"\\RD_CLK_ENABLE \d+'[1x]*0", text)
            for port in ("RD_EN", "RD_ARST", "RD_SRST")}


def _option(line: str, name: str) -> str:
    found = re.search(rf"-{name} (\S+)", line)
    return found[1].lstrip("\\") if found else ""


def _parse(number: int, line: str) -> Mutant:
    wire = _option(line, "wire")
    return Mutant(number, _option(line, "mode"), _option(line, "cell"), _option(line, "port"),
                  int(_option(line, "portbit") or 0), f"{wire}[{_option(line, 'wirebit')}]" if wire else "")


def run_mutants(chosen: MutantSet, stimulus: Callable[[NativeSim], object], *, jobs: int = 2,
                limit_s: float = 20.0, seed: int = 1) -> MutationReport:
    """Run the stimulus against every mutant.

    Parameters
    ----------
    chosen:
        From :func:`mutants`.
    stimulus:
        Resets and drives the simulation it is given, and raises when something is wrong.
    jobs:
        Processes at a time.
    limit_s:
        Real seconds after which a mutant hangs.
    seed:
        Of each simulation.

    Raises
    ------
    AssertionError
        The stimulus finds fault with the original.
    """
    began = time.monotonic()
    _attempt(chosen.library, stimulus, 0, seed)
    numbers = [m.number for m in chosen.mutants]
    workers = [_Worker(chosen.library, stimulus, numbers[i::jobs], limit_s, seed) for i in range(jobs)]
    try:
        while any(w.running for w in workers):
            open_ends = [w.end for w in workers if w.running]
            ready, _, _ = select.select(open_ends, [], [], 0.2)
            for worker in workers:
                if worker.running:
                    worker.poll(worker.end in ready)
    finally:
        for worker in workers:
            worker.stop()
    verdict = {number: how for w in workers for number, how in w.verdicts.items()}
    return MutationReport(tuple((m, verdict[m.number]) for m in chosen.mutants if verdict[m.number]),
                          tuple(m for m in chosen.mutants if not verdict[m.number]), time.monotonic() - began)


def equivalent(chosen: MutantSet, numbers: Sequence[int]) -> set[int]:
    """Which mutants are proven to be the original: no state and input shows them at an output or in the next state.

    Nothing can notice such a mutant. One that shows in states alone that are never reached is not among them.
    """
    if not numbers:
        return set()
    with scratch() as work:
        (work / "mutants.v").write_text(chosen.verilog)
        _yosys(_PROVE, work, chosen.top, *map(str, numbers))
        return {k for k in numbers if "SUCCESS!" in (work / f"proof_{k}.txt").read_text()}


def reason_of(mutant: str, reasons: dict[str, str]) -> str:
    """Why a mutant survives: the text of the first pattern that is found in its description, or nothing."""
    return next((text for pattern, text in reasons.items() if re.search(pattern, mutant)), "")


def survivors_table(name: str, report: MutationReport, reasons: dict[str, str]) -> str:
    """Survivors by reason, those without one at the end."""
    total = len(report.killed) + len(report.survivors)
    how = Counter(reason_of(str(m), reasons) for m in report.survivors)
    lines = [f"\n{name}: {len(report.killed)} of {total} mutants killed, {report.score:.1%}, {report.seconds:.0f} s"]
    lines += [f"  {count:3} survive: {text}" for text, count in how.most_common() if text]
    lines += [f"      survives: {m}" for m in report.survivors if not reason_of(str(m), reasons)]
    return "\n".join(lines)


def _attempt(library: NativeLibrary, stimulus: Callable[[NativeSim], object], number: int, seed: int) -> None:
    sim = NativeSim(library, seed=seed)
    sim.set("mutsel", number)
    stimulus(sim)


class _Worker:
    """A forked child that works through its mutants; replaced when it dies, and goes on with the next."""

    def __init__(self, library: NativeLibrary, stimulus: Callable[[NativeSim], object],
                 numbers: Sequence[int], limit_s: float, seed: int) -> None:
        self.verdicts: dict[int, str] = {}
        self._library, self._stimulus, self._seed, self._limit_s = library, stimulus, seed, limit_s
        self._left = list(numbers)
        self.running = False
        self._fork()

    def _fork(self) -> None:
        if not self._left:
            self.running = False
            return
        self.end, out = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self.end)
            self._child(out)
        os.close(out)
        self.running, self._buffer, self._since = True, b"", time.monotonic()

    def _child(self, out: int) -> None:
        try:
            # a crash is an answer here, not something to report or to keep
            faulthandler.disable()
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            for number in self._left:
                how = ""
                try:
                    _attempt(self._library, self._stimulus, number, self._seed)
                except Exception as error:
                    how = f"{type(error).__name__}: {error}"[:300]
                os.write(out, json.dumps([number, how]).encode() + b"\n")
        finally:
            os._exit(0)

    def poll(self, readable: bool) -> None:
        """Read verdicts; a child that ended early or took too long loses its current mutant."""
        if readable:
            text = os.read(self.end, 1 << 16)
            self._buffer += text
            *lines, self._buffer = self._buffer.split(b"\n")
            for line in lines:
                number, how = json.loads(line)
                self.verdicts[number] = how
                self._left.remove(number)
                self._since = time.monotonic()
            if not text:
                self._reap("crashed")
        elif time.monotonic() - self._since > self._limit_s:
            os.kill(self._pid, signal.SIGKILL)
            self._reap("hung")

    def _reap(self, how: str) -> None:
        os.close(self.end)
        os.waitpid(self._pid, 0)
        if self._left:
            self.verdicts[self._left.pop(0)] = how
        self._fork()

    def stop(self) -> None:
        """End the child, when the run is abandoned."""
        if self.running:
            os.kill(self._pid, signal.SIGKILL)
            os.close(self.end)
            os.waitpid(self._pid, 0)
            self.running = False
