"""``speculoos synth``: LUTs, flip-flops, DSPs and memories of a design, and its frequency on ECP5; standard cells."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gen.errors import UserError
from speculoos.arguments import add_design, refuse
from speculoos.report import Report

if TYPE_CHECKING:
    from gen.config.config import Config
    from sim_models.params.base import Params

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
LUTs that serve as memory (lutram) or shift registers (srl) are not in lut; bram counts 18 Kb blocks.
On xcup, Yosys leaves accumulators outside the DSP blocks: its LUTs are an upper bound.
osu018 is a 180 nm library without wires: it orders designs by size and speed and says no more. nand2 is the area in
NAND gates; memories become flip-flops.

examples:
  speculoos synth pe_array --target xc7
  speculoos synth pe_array --compare --json area.json
  speculoos synth engine_small --target ecp5 --place
  speculoos synth bank_pe --set format=fp16 --target osu018"""

FIGURES = ("cells", "area_um2", "nand2", "lut", "lutram", "srl", "ff", "dsp", "bram", "uram", "carry", "fmax_mhz",
           "lut_per_mac")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Design, device and effort."""
    add_design(parser)
    parser.add_argument("--target", metavar="FAMILY", default="xcup",
                        choices=("xcup", "xc7", "ecp5", "osu018"),
                        help="device family: xcup, xc7 or ecp5, or the standard cells osu018 (default: xcup)")
    parser.add_argument("--place", action="store_true", help="place and route for the frequency (ecp5 alone)")
    parser.add_argument("--no-dsp", action="store_true", help="keep multipliers out of DSP blocks")
    parser.add_argument("--compare", action="store_true",
                        help="also synthesise the systolic-only and vector-lane-only baselines")


def run(args: argparse.Namespace, report: Report) -> int:
    """Synthesise and print a row for each variant."""
    from gen.config.config import resolve
    from gen.flows.doctor import require
    config = resolve(args.design, args.settings)
    if args.target != "ecp5":
        refuse("--place", args.place, f"place and route is there for --target ecp5, not for {args.target}")
    if args.target == "osu018":
        refuse("--no-dsp", args.no_dsp, "there are no DSP blocks among the standard cells of osu018")
    if args.compare:
        modes = [s for s in args.settings if s.partition("=")[0].strip() == "modes"]
        refuse(f"--set {''.join(modes)}", modes, "--compare synthesises all three modes")
    variants = _variants(config) if args.compare else {config.name: config.params}
    cells = ["osu018", "opensta"] if args.target == "osu018" else []
    require("amaranth", "pyosys", *cells, *(["nextpnr-ecp5"] if args.place else []))
    from gen.flows.synth import compare
    units = {name: config.block.unit(params) for name, params in variants.items()}
    with report.progress("synthesising", len(units)) as progress:
        rows = compare(units, args.target, place=args.place, dsp=not args.no_dsp, progress=progress.tell,
                       on_row=progress.step)
    shown = [f for f in FIGURES if any(row.get(f) is not None for row in rows)]
    report.table([args.target, *shown], [[row["name"], *(row.get(f) for f in shown)] for row in rows])
    if args.compare:
        report.line()
        used = [f for f in shown if f in rows[0]["relative"]]
        report.table([f"over {rows[0]['name']}", *used], [
            [row["name"], *(f"{row['relative'][f]:+.1%}" for f in used)] for row in rows[1:]])
    report.data.update(design=config.name, block=config.block.name, target=args.target)
    report.data.update({"rows": rows} if args.compare else
                       {k: v for k, v in rows[0].items() if k not in ("name", "relative")})
    return 0


def _variants(config: "Config") -> "Mapping[str, Params]":
    """The same sizes in the three modes; the systolic-only baseline is what the others are measured by."""
    if not hasattr(config.params, "modes"):
        raise UserError(f"--compare needs a block with both array modes, and {config.block.name} has none")
    modes: dict[str, dict[str, Any]] = {
        "systolic only": {"modes": "systolic"},
        "vector-lane only": {"modes": "vector"},
        "both modes": {"modes": "both"}}
    return {name: config.params.replace(**mode) for name, mode in modes.items()}
