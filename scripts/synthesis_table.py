"""The documentation's tables of areas and frequencies.

``python -m scripts.synthesis_table`` prints the README's: the array in three modes on three device families, in
plain Verilog and in the families' own multiplier blocks, beside public designs (about ten minutes: ECP5 is placed and
routed); ``--readme FILE`` also puts it between the markers of that file. With ``--blocks FILE`` it is the table of
the Manager's blocks instead, at their default sizes (half an hour), between the markers of FILE. ``--json FILE``
keeps its figures: what is there already is not measured again.
"""

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gen.flows.synth import RESOURCES, TARGETS, compare, synthesize
from rtl.registry import BLOCKS
from rtl.tile.engine.pe_array import PEArray
from sim_models.params.tile.engine.pe_array import PEArrayParams
from speculoos.report import Report, write_atomic

MODES = {"systolic only": {"modes": "systolic"}, "vector-lane only": {"modes": "vector"}, "**both modes**": {},
         # accumulators of the public designs
         "both modes, 32 bits": {"acc_width": 32}}
#: whether the multiplier blocks of the family are instantiated
WAYS = {"plain Verilog": False, "family's blocks": True}
#: 8 x 8 int8 arrays with the same Yosys and nextpnr: LUT a MAC (xcup, xc7, xcup without DSP), FF (xcup), MHz (ECP5)
PUBLIC = {
    "axis-systolic-array (systolic)": (65.4, 33.4, 198.6, 6546, 99.8),
    "a public INT8 MXU (systolic)": (65.8, 33.8, 296.6, 3618, 75.3),
}
#: what a table of unequal scopes must say
SCOPE = ("The scopes differ. axis-systolic-array's figures are of its top: skew buffers, back-pressure on its "
         "streams and 32-bit accumulators are in them. The array here has neither buffers nor back-pressure, which "
         "the engine's memories make superfluous, and accumulators of 25 bits, but for the row with 32.")
COLUMNS = ("8 x 8 array, int8", "LUT/MAC xcup", "LUT/MAC xc7", "LUT/MAC xcup, no DSP", "LUTRAM xcup", "DSP",
           "FF xcup", "MHz ECP5")
#: blocks of the Manager, small ones first
MANAGER = ("axi_lite", "intensity_scheduler", "manager_registers", "draft_controller", "softmax_unit",
           "shared_pool", "manager")
_MARKED = re.compile(r"(<!-- synthesis -->\n).*?(<!-- end -->)", re.DOTALL)


def measure(report: Report) -> str:
    """Synthesise and make the table, in Markdown."""
    rows: list[list[Any]] = []
    relative: dict[str, str] = {}
    for way, blocks in WAYS.items():
        figures: dict[str, list[dict[str, Any]]] = {}
        for target in TARGETS:
            units = {name: PEArray(PEArrayParams(family=target if blocks else "generic", **mode))
                     for name, mode in MODES.items()}
            with report.status(f"synthesising {way} for {target}") as tell:
                figures[target] = compare(units, target, progress=tell, place=target == "ecp5")
            if target == "xcup" and not blocks:
                with report.status(f"synthesising {way} without DSP") as tell:
                    figures["no DSP"] = compare(units, target, progress=tell, dsp=False)
        for i, name in enumerate(MODES):
            xcup, xc7, ecp5 = (figures[target][i] for target in ("xcup", "xc7", "ecp5"))
            without = "" if blocks else figures["no DSP"][i]["lut_per_mac"]
            rows.append([f"{name}, {way}", xcup["lut_per_mac"], xc7["lut_per_mac"], without, xcup["lutram"],
                         xcup["dsp"], xcup["ff"], ecp5["fmax_mhz"]])
        for target in ("xcup", "xc7"):
            both = figures[target][2]["relative"]
            relative[f"{target}, {way}"] = ", ".join(f"{r.upper()} {both[r]:+.1%}" for r in ("lut", "ff", "dsp"))
    rows += [[name, *lut, "", 64, ff, mhz] for name, (*lut, ff, mhz) in PUBLIC.items()]
    text = f"{_table(COLUMNS, rows)}\n{SCOPE}\n"
    text += "\nBoth modes over systolic only (SPECTRA, whole tile: LUT +82%, FF +79%, DSP +10.4%):\n\n"
    return text + "".join(f"- {name}: {more}\n" for name, more in relative.items())


def measure_blocks(report: Report, kept: Path | None) -> str:
    """Synthesise the Manager's blocks, each on every family, and make the table."""
    figures: dict[str, dict[str, Any]] = json.loads(kept.read_text()) if kept and kept.exists() else {}
    for target in TARGETS:
        for name in MANAGER:
            key = f"{name} {target}"
            if key not in figures:
                unit = BLOCKS[name].unit(BLOCKS[name].params())
                with report.status(f"synthesising {name} for {target}") as tell:
                    figures[key] = synthesize(unit, target, place=target == "ecp5", timeout=7200, progress=tell)
                report.line(f"{key}: " + ", ".join(f"{k} {v}" for k, v in figures[key].items() if v))
                if kept:
                    write_atomic(kept, (json.dumps(figures, indent=1) + "\n").encode())
    used = [r for r in RESOURCES if any(row[r] for row in figures.values())]
    rows = [[f"`{name}`", target, *(figures[f"{name} {target}"][r] for r in used),
             figures[f"{name} {target}"]["fmax_mhz"] or ""] for name in MANAGER for target in TARGETS]
    return _table(("block", "family", *(r.upper() if r != "carry" else r for r in used), "MHz"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in (head, ["---"] * len(head), *rows))


def main() -> None:
    """Print a table, and put it where it belongs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readme", type=Path, help="file whose table of the array is replaced")
    parser.add_argument("--blocks", type=Path, help="file whose table of the Manager's blocks is replaced")
    parser.add_argument("--json", type=Path, help="figures of the Manager's blocks")
    args = parser.parse_args()
    text = measure_blocks(Report(), args.json) if args.blocks else measure(Report())
    print(text, end="")
    target = args.blocks or args.readme
    if target:
        target.write_text(_MARKED.sub(lambda m: m[1] + text + m[2], target.read_text()))


if __name__ == "__main__":
    main()
