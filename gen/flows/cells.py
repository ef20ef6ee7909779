"""Standard cells: area and an estimate of the clock with the 180 nm library of Debian's qflow and OpenSTA.

The library (osu018, 32 cells, typical corner, no wires) is old and free. It orders designs by size and speed; it
says nothing about a chip in another process.
"""

import dataclasses
import json
import pathlib
import re
import shutil
from typing import Any

from gen.emit.emit import Design
from gen.emit.process import Progress, run_process, scratch
from gen.emit.yosys import run_yosys
from gen.errors import ToolError
from gen.flows.doctor import LIBERTY, require

__all__ = ["CELL_FIGURES", "CELL_TARGET", "ModuleArea", "module_areas", "synthesize_cells"]

#: name of the target on the command line
CELL_TARGET = "osu018"

#: what :func:`synthesize_cells` counts
CELL_FIGURES = ("cells", "ff", "area_um2", "nand2")

#: area of the library's smallest NAND gate, in um2
NAND2 = 24.0
#: the period that logic is optimised for, in ns
_PERIOD = 5
_FLIP_FLOP = re.compile(r"DFF|LATCH")
_ADDERS = "-extra-map +/choices/han-carlson.v"
#: without dc2, which would save area by making the carry trees of adders chains again
_MAPPING = f"-script +strash;ifraig;scorr;dch,-f;map,-B,-D,{1000 * _PERIOD};topo;" \
           f"buffer,-c;upsize,-D,{1000 * _PERIOD};dnsize,-D,{1000 * _PERIOD}"
_CONSTRAINTS = "set_driving_cell INVX2\nset_load 0.02 [all_outputs]\n"
_TIMING = """\
read_liberty cells.lib
read_verilog netlist.v
link_design {top}
create_clock -name clk -period {period} {{clk}}
set_input_delay 0 -clock clk [all_inputs]
set_output_delay 0 -clock clk [all_outputs]
report_checks -path_delay max
"""


@dataclasses.dataclass(frozen=True)
class ModuleArea:
    """What a module takes in a design whose modules were kept apart."""

    #: how many of them there are
    instances: int
    #: of one of them without those inside it, in um2: logic, and flip-flops
    logic: float
    flip_flops: float


def synthesize_cells(design: Design, *, timeout: float = 1800, progress: Progress | None = None) -> dict[str, Any]:
    """Map a design, flattened, to standard cells and time it.

    Parameters
    ----------
    design:
        What to synthesise.
    timeout:
        Seconds for Yosys, and again for OpenSTA.
    progress:
        Told about once a second what is going on.

    Returns
    -------
    dict
        ``cells``, ``ff`` (flip-flops among them), ``area_um2``, ``nand2`` (area in NAND gates of 24 um2) and
        ``fmax_mhz`` (of the slowest path, from ports to ports at the latest; None without registers).

    Raises
    ------
    ToolError
        The library or OpenSTA is missing, or a tool failed or ran out of time.
    """
    with scratch() as folder:
        modules = _map(design, folder, "-flatten", timeout, progress)
        own = modules[f"\\{design.top}"]
        counts: dict[str, int] = own["num_cells_by_type"]
        figures: dict[str, Any] = {
            "cells": sum(counts.values()), "ff": sum(n for cell, n in counts.items() if _FLIP_FLOP.match(cell)),
            "area_um2": round(float(own["area"])), "nand2": round(float(own["area"]) / NAND2), "fmax_mhz": None}
        if figures["ff"]:
            figures["fmax_mhz"] = _time(design.top, folder, timeout, progress)
    return figures


def module_areas(design: Design, *, timeout: float = 1800,
                 progress: Progress | None = None) -> dict[str, ModuleArea]:
    """Area of each module of a design; logic is not moved or shared across their borders.

    Parameters and errors as for :func:`synthesize_cells`.
    """
    with scratch() as folder:
        modules = _map(design, folder, "", timeout, progress)
        areas = _cell_areas()
    found: dict[str, ModuleArea] = {}

    def visit(name: str, count: int) -> None:
        counts: dict[str, int] = modules[f"\\{name}"]["num_cells_by_type"]
        own = {kind: n * areas[kind] for kind, n in counts.items() if kind in areas}
        registers = sum(area for kind, area in own.items() if _FLIP_FLOP.match(kind))
        before = found[name].instances if name in found else 0
        found[name] = ModuleArea(before + count, sum(own.values()) - registers, registers)
        for kind, n in counts.items():
            if f"\\{kind}" in modules:
                visit(kind, count * n)

    visit(design.top, 1)
    return found


def _map(design: Design, folder: pathlib.Path, flatten: str, timeout: float,
         progress: Progress | None) -> dict[str, Any]:
    """Statistics of each module; leaves ``netlist.v`` and ``cells.lib`` in ``folder``."""
    require("osu018", "opensta")
    (folder / "design.v").write_text(design.verilog)
    (folder / "abc.constr").write_text(_CONSTRAINTS)
    shutil.copyfile(LIBERTY, folder / "cells.lib")
    run_yosys({design.top: [
        "read_verilog design.v", f"synth -top {design.top} {flatten} {_ADDERS}", "dfflibmap -liberty cells.lib",
        f"abc -liberty cells.lib -D {1000 * _PERIOD} -constr abc.constr {_MAPPING}", "setundef -zero",
        # OpenSTA reads no concatenations: no names for several bits, and none for what has a name already
        "splitnets -ports", "opt_clean -purge", "tee -q -o stat.json stat -liberty cells.lib -json",
        "write_verilog -noattr -noexpr -nohex -nodec netlist.v",
    ]}, folder, timeout=timeout, progress=progress)
    return json.loads((folder / "stat.json").read_text())["modules"]


def _time(top: str, folder: pathlib.Path, timeout: float, progress: Progress | None) -> float:
    """Frequency of the slowest path, in MHz."""
    netlist = folder / "netlist.v"
    # OpenSTA does not know signed ports
    netlist.write_text(netlist.read_text().replace(" signed ", " "))
    (folder / "timing.tcl").write_text(_TIMING.format(top=top, period=_PERIOD))
    code, output = run_process(["sta", "-no_splash", "-exit", "timing.tcl"], tool="OpenSTA", cwd=folder,
                               timeout=timeout, progress=progress)
    slack = re.search(r"(-?\d+\.\d+)\s+slack", output)
    errors = [line for line in output.splitlines() if line.startswith("Error")]
    if code or errors or slack is None:
        errors = errors or ["it names no slack"]
        raise ToolError(f"OpenSTA failed: {errors[0]}")
    return round(1000 / (_PERIOD - float(slack[1])), 1)


def _cell_areas() -> dict[str, float]:
    text = LIBERTY.read_text()
    return {name: float(area) for name, area in re.findall(r"(?m)^cell \((\w+)\) \{\s+area : ([\d.]+);", text)}

