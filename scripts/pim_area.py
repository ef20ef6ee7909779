"""The tables of areas in ``docs/pim.md``: the processing element of a bank in three formats, and beside SADDLE's.

``python -m scripts.pim_area TARGET...`` measures on xcup, xc7, osu018 or ecp5 (placed and routed: some minutes each),
keeps the figures in ``docs/pim_area.json`` and makes the tables from all that are there.
"""

import argparse
import dataclasses
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gen.emit.emit import emit
from gen.flows.cells import ModuleArea, module_areas, synthesize_cells
from gen.flows.synth import synthesize
from rtl.pim.bank.bank_pe import BankPE
from sim_models.params.pim.bank.bank_pe import BankPEParams
from speculoos.report import Report, write_atomic

__all__ = ["ACCUMULATORS", "FIGURES", "FORMATS", "MARKED", "PAGE", "comparison", "formats", "page", "split"]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "pim.md"
#: what was measured
FIGURES = PAGE.with_name("pim_area.json")
TARGETS = ("xcup", "xc7", "osu018", "ecp5")
FORMATS = {"FP16": "fp16", "int8": "int8", "FP16 or int8": "both"}
#: a public PE with 16 FP16 lanes, with the same Yosys and nextpnr: LUT a lane, MHz on ECP5
PUBLIC = ("kvpim-rtl, FP16", 460, 30.0)
#: accumulators of the elements that are compared with the paper's
ACCUMULATORS = (32, 2)
MARKED = re.compile(r"(<!-- pe area -->\n).*?(<!-- end -->)", re.DOTALL)


def formats(figures: dict[str, list[dict[str, Any]]]) -> str:
    """The element in each format on three devices and in standard cells.

    Parameters
    ----------
    figures:
        For each target, what :func:`gen.flows.synth.synthesize` found for each of :data:`FORMATS`.
    """
    lanes = BankPEParams().lanes
    columns = ["PE, 16 lanes", "products a cycle", "LUT a lane xcup", "DSP xcup", "FF xcup", "LUT a lane xc7",
               "DSP xc7", "LUT4 a lane ECP5", "DSP ECP5", "MHz ECP5", "NAND2 osu018", "MHz osu018"]
    rows: list[Sequence[Any]] = []
    for k, (name, form) in enumerate(FORMATS.items()):
        row = {target: found[k] for target, found in figures.items()}
        luts = {t: round(sum(row[t][kind] for kind in ("lut", "lutram", "srl")) / lanes, 1)
                for t in ("xcup", "xc7", "ecp5")}
        products = {"fp16": str(lanes), "int8": str(2 * lanes), "both": f"{lanes} or {2 * lanes}"}[form]
        rows.append([name, products, luts["xcup"], row["xcup"]["dsp"], row["xcup"]["ff"], luts["xc7"],
                     row["xc7"]["dsp"], luts["ecp5"], row["ecp5"]["dsp"], row["ecp5"]["fmax_mhz"],
                     row["osu018"]["nand2"], row["osu018"]["fmax_mhz"]])
    name, lut, mhz = PUBLIC
    rows.append([name, f"{lanes}, every other cycle", lut, lanes, *[""] * 5, mhz, "", ""])
    return table(columns, rows)


def split(areas: dict[str, ModuleArea]) -> dict[str, float]:
    """Area of an element by what it is for, in um2.

    The two copies of the accumulators' memory have the same flip-flops, which count once.
    """
    parts: dict[str, float] = dict.fromkeys(("multipliers", "adders", "buffer", "control"), 0.0)
    for name, area in areas.items():
        kind = next(kind for prefix, kind in (("pe_lane", "multipliers"), ("pe_tree", "adders"),
                                              ("pe_accumulators", "adders"), ("ram", "buffer"), ("", "control"))
                    if name.startswith(prefix))
        copies = 1 if kind == "buffer" else area.instances
        parts[kind] += area.instances * area.logic + copies * area.flip_flops
    return parts


def comparison(elements: dict[int, tuple[dict[str, float], float]]) -> str:
    """The FP16 element beside SADDLE's (IV-C).

    Parameters
    ----------
    elements:
        For each number of accumulators, the result of :func:`split` and the clock in MHz.
    """
    p = BankPEParams(format="fp16")
    columns = ["", "SADDLE's PE", *(f"`bank_pe`, {n} accumulators" for n in elements)]
    many = len(elements)
    rows: list[Sequence[Any]] = [
        ["multipliers", "16, FP16", *["16, exact: 11 x 26 bits"] * many],
        ["adders", "16, FP16", *[f"16, fixed point: 82 to {p.acc_width} bits"] * many],
        ["roundings in a sum", "not given", *["one"] * many],
        ["clock", "1 GHz, 28 nm", *(f"{mhz} MHz, 180 nm without wires" for _, mhz in elements.values())],
        ["area", "0.116 mm2, 1z-nm DRAM", *(
            f"{sum(parts.values()) / 24:.0f} NAND2" for parts, _ in elements.values())]]
    for name, paper, kinds in (("arithmetic", "57%", ("multipliers", "adders")),
                               ("multipliers in it", "not given", ("multipliers",)),
                               ("buffer", "16%", ("buffer",)), ("control", "27%", ("control",))):
        rows.append([name, paper, *(f"{sum(parts[k] for k in kinds) / sum(parts.values()):.1%}"
                                    for parts, _ in elements.values())])
    return table(columns, rows)


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table in Markdown."""
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in (columns, ["---"] * len(columns), *rows))


def page(text: str, figures: dict[str, dict[str, Any]]) -> str:
    """A page with both tables made from the figures in :data:`FIGURES`."""
    rows = {target: [figures[target][form] for form in FORMATS.values()] for target in TARGETS}
    elements = {n: (split({name: ModuleArea(*area) for name, area in figures["modules"][str(n)].items()}),
                    figures["clock"][str(n)]) for n in ACCUMULATORS}
    both = f"{formats(rows)}\n{comparison(elements)}"
    return MARKED.sub(lambda m: m[1] + both + m[2], text)


def _measure(target: str, figures: dict[str, Any], report: Report) -> Iterator[None]:
    """Synthesise what belongs to a target, and stop after each figure."""
    for form in FORMATS.values():
        with report.status(f"{target}, {form}") as tell:
            unit = BankPE(BankPEParams(format=form))
            figures.setdefault(target, {})[form] = synthesize(unit, target, place=target == "ecp5", progress=tell)
        yield
    for count in ACCUMULATORS if target == "osu018" else ():
        design = emit(BankPE(BankPEParams(format="fp16", accumulators=count)))
        with report.status(f"{target}, {count} accumulators") as tell:
            areas = module_areas(design, progress=tell)
            figures.setdefault("modules", {})[str(count)] = {
                name: dataclasses.astuple(area) for name, area in areas.items()}
            figures.setdefault("clock", {})[str(count)] = synthesize_cells(design, progress=tell)["fmax_mhz"]
        yield


def main() -> None:
    """Measure, keep the figures and make the page's tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", metavar="TARGET", nargs="*", help=f"what to measure: {', '.join(TARGETS)} "
                        "(default: nothing; the tables are made from the figures that are there)")
    args = parser.parse_args()
    if unknown := set(args.targets) - set(TARGETS):
        parser.error(f"targets among {', '.join(TARGETS)} were wanted, not {', '.join(sorted(unknown))}")
    figures = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    for target in args.targets:
        for _ in _measure(target, figures, Report()):
            write_atomic(FIGURES, json.dumps(figures, indent=1) + "\n")
    write_atomic(PAGE, page(PAGE.read_text(encoding="utf-8"), figures))
    print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    main()
