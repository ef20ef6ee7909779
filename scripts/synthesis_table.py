"""The README's table of areas: the array in three modes on three device families, beside public designs.

``python -m scripts.synthesis_table`` prints it (about five minutes: ECP5 is placed and routed);
``--readme FILE`` also puts it between the markers of that file.
"""

import argparse
import re
from pathlib import Path
from typing import Any

from gen.report import Report
from gen.synth import compare
from rtl.tile.pe_array import PEArray
from sim_models.params.tile import PEArrayParams

MODES = {"systolic only": {"dual_mode": False}, "vector-lane only": {"vector_only": True}, "**both modes**": {}}
#: 8 x 8 int8 arrays with the same Yosys and nextpnr: LUT a MAC (xcup, xc7, xcup without DSP), FF (xcup), MHz (ECP5)
PUBLIC = {
    "axis-systolic-array (systolic)": (65.4, 33.4, 198.6, 6546, 99.8),
    "a public INT8 MXU (systolic)": (65.8, 33.8, 296.6, 3618, 75.3),
}
COLUMNS = ("8 x 8 array, int8", "LUT/MAC xcup", "LUT/MAC xc7", "LUT/MAC xcup, no DSP", "DSP", "FF xcup", "MHz ECP5")
_MARKED = re.compile(r"(<!-- synthesis -->\n).*?(<!-- end -->)", re.DOTALL)


def measure(report: Report) -> str:
    """Synthesise and make the table, in Markdown."""
    units = {name: PEArray(PEArrayParams(**mode)) for name, mode in MODES.items()}
    figures: dict[str, list[dict[str, Any]]] = {}
    for name, target, options in (("xcup", "xcup", {}), ("xc7", "xc7", {}), ("no_dsp", "xcup", {"dsp": False}),
                                  ("ecp5", "ecp5", {"place": True})):
        with report.status(f"synthesising for {target}") as tell:
            figures[name] = compare(units, target, progress=tell, **options)
    rows = [[name, *(figures[t][i]["lut_per_mac"] for t in ("xcup", "xc7", "no_dsp")), figures["xcup"][i]["dsp"],
             figures["xcup"][i]["ff"], figures["ecp5"][i]["fmax_mhz"]] for i, name in enumerate(MODES)]
    rows += [[name, *lut, 64, ff, mhz] for name, (*lut, ff, mhz) in PUBLIC.items()]
    text = "".join(f"| {' | '.join(map(str, row))} |\n" for row in (COLUMNS, ["---"] * len(COLUMNS), *rows))
    text += "\nBoth modes over systolic only (SPECTRA, whole tile: LUT +82%, FF +79%, DSP +10.4%):\n"
    for target in ("xcup", "xc7"):
        both = figures[target][2]["relative"]
        text += f"{target} {', '.join(f'{key.upper()} {both[key]:+.1%}' for key in ('lut', 'ff', 'dsp'))}.\n"
    return text


def main() -> None:
    """Print the table, and put it where it belongs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readme", type=Path, help="file whose table is replaced")
    args = parser.parse_args()
    text = measure(Report())
    print(text, end="")
    if args.readme:
        before = args.readme.read_text()
        args.readme.write_text(_MARKED.sub(lambda m: m[1] + text + m[2], before))


if __name__ == "__main__":
    main()
