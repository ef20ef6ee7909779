"""``docs/synthesis.md``: areas and frequencies of all designs, and the README's table of the array.

``python -m scripts.synthesis_page`` synthesises what is missing in ``docs/synthesis.json`` or whose Verilog has
changed since, notes each figure there, and makes the tables (some hours for all; an interrupted run goes on where it
was). ``--only TEXT`` measures the designs with this in their name alone, ``--stale`` lists what would be measured,
``--render`` makes the tables of the figures that are there.
"""

import argparse
import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gen.emit.emit import Design, emit
from gen.flows.cells import ModuleArea, module_areas, synthesize_cells
from gen.flows.synth import RESOURCES, TARGETS, synthesize
from rtl.pim.bank.bank_pe import BankPE
from rtl.registry import BLOCKS
from rtl.tile.engine.compute_engine import ComputeEngine
from rtl.tile.engine.pe_array import PEArray
from rtl.unit import Unit
from sim_models.params.base import Params
from sim_models.params.pim.bank.bank_pe import BankPEParams
from sim_models.params.tile.engine.compute_engine import ComputeEngineParams
from sim_models.params.tile.engine.pe_array import PEArrayParams
from speculoos.report import Report, write_atomic

__all__ = ["ACCUMULATORS", "FIGURES", "FORMATS", "PAGE", "README", "Measurement", "comparison", "formats", "page",
           "split", "wanted"]

ROOT = Path(__file__).resolve().parents[1]
PAGE, README = ROOT / "docs" / "synthesis.md", ROOT / "README.md"
#: what was measured: name to figures and the digest of the Verilog
FIGURES = PAGE.with_suffix(".json")

MODES: dict[str, dict[str, Any]] = {"systolic only": {"modes": "systolic"}, "vector-lane only": {"modes": "vector"},
                                    "**both modes**": {},
                                    # accumulators of the public designs
                                    "both modes, 32 bits": {"acc_width": 32}}
#: whether the multiplier blocks of the family are instantiated
WAYS = {"plain Verilog": False, "family's blocks": True}
#: 8 x 8 int8 arrays with the same Yosys and nextpnr: LUT a MAC (xcup, xc7, xcup without DSP), FF (xcup), MHz (ECP5)
PUBLIC_ARRAYS = {
    "axis-systolic-array (systolic)": (65.4, 33.4, 198.6, 6546, 99.8),
    "a public INT8 MXU (systolic)": (65.8, 33.8, 296.6, 3618, 75.3),
}
#: what a table of unequal scopes must say
SCOPE = ("The scopes differ. axis-systolic-array's figures are of its top: skew buffers, back-pressure on its "
         "streams and 32-bit accumulators are in them. The array here has neither buffers nor back-pressure, which "
         "the engine's memories make superfluous, and accumulators of 25 bits, but for the row with 32.")
#: banks of DRAM stand for memories outside of the chip's logic
NOT_SYNTHESISED = {"dram_bank", "bank_group", "pseudo_channel", "pim_stack"}

FORMATS = {"FP16": "fp16", "int8": "int8", "FP16 or int8": "both"}
#: accumulators of the elements that are compared with the paper's
ACCUMULATORS = (32, 2)
#: a public PE with 16 FP16 lanes, with the same Yosys and nextpnr: LUT a lane, MHz on ECP5
PUBLIC_PE = ("kvpim-rtl, FP16", 460, 30.0)
CELLS = "osu018"

Figures = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One synthesis.

    Members
    -------
    name: str
        Part of the page, design and target: its key in :data:`FIGURES`.
    make: callable
        Makes the design from its parameters.
    params: Params
        Those of one block are of a class of their own.
    run: callable
        (design, progress) -> figures.
    """

    name: str
    make: Callable[[Any], Unit]
    params: Params
    run: Callable[[Design, Callable[[str], None]], Figures]


def wanted() -> list[Measurement]:
    """All that the page's tables are made of, short ones first."""
    found = []
    for name, block in BLOCKS.items():
        if name not in NOT_SYNTHESISED:
            found += [_synthesis(f"blocks/{name}/{t}", block.unit, block.params(), t) for t in TARGETS]
    for way, blocks in WAYS.items():
        for mode, changes in MODES.items():
            for target in TARGETS:
                family = target if blocks else "generic"
                found.append(_synthesis(f"array/{way}/{mode}/{target}", PEArray,
                                        PEArrayParams(family=family, **changes), target))
            if not blocks:
                found.append(_synthesis(f"array/{way}/{mode}/no DSP", PEArray, PEArrayParams(**changes), "xcup",
                                        dsp=False))
    found += [_synthesis(f"engine/{mode}/xcup", ComputeEngine, ComputeEngineParams(**MODES[mode]), "xcup")
              for mode in list(MODES)[:3]]
    found += [_synthesis(f"element/{form}/{target}", BankPE, BankPEParams(format=form), target)
              for form in FORMATS.values() for target in (*TARGETS, CELLS)]
    for count in ACCUMULATORS:
        p = BankPEParams(format="fp16", accumulators=count)
        found.append(Measurement(f"element/{count} accumulators/modules", BankPE, p, lambda design, tell: {
            name: dataclasses.astuple(area) for name, area in module_areas(design, progress=tell).items()}))
        found.append(Measurement(f"element/{count} accumulators/clock", BankPE, p, lambda design, tell: {
            "fmax_mhz": synthesize_cells(design, progress=tell)["fmax_mhz"]}))
    return found


def _synthesis(name: str, make: Callable[[Any], Unit], params: Params, target: str, dsp: bool = True) -> Measurement:
    return Measurement(name, make, params, lambda design, tell: synthesize(
        design, target, place=target == "ecp5", dsp=dsp, timeout=7200, progress=tell))


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table in Markdown."""
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in (head, ["---"] * len(head), *rows))


def blocks(figures: Mapping[str, Figures]) -> str:
    """Every block at its default sizes, on every family; those that are still to be measured are named below."""
    names = [name for name in BLOCKS if name not in NOT_SYNTHESISED]
    there = [name for name in names if all(f"blocks/{name}/{target}" in figures for target in TARGETS)]
    rows = [(name, target, figures[f"blocks/{name}/{target}"]) for name in there for target in TARGETS]
    used = [r for r in RESOURCES if any(row[r] for *_, row in rows)]
    text = table(("block", "family", *(r.upper() if r != "carry" else r for r in used), "MHz"), [
        [f"`{name}`", target, *(row[r] for r in used), row["fmax_mhz"] or ""] for name, target, row in rows])
    missing = [f"`{name}`" for name in names if name not in there]
    return text + (f"\nNot measured as they are now: {', '.join(missing)}.\n" if missing else "")


def array(figures: Mapping[str, Figures]) -> str:
    """The array in three modes, in plain Verilog and in the families' blocks, beside public designs."""
    columns = ("8 x 8 array, int8", "LUT/MAC xcup", "LUT/MAC xc7", "LUT/MAC xcup, no DSP", "LUTRAM xcup", "DSP",
               "FF xcup", "MHz ECP5")
    rows: list[list[Any]] = []
    for way, own in WAYS.items():
        for mode in MODES:
            xcup, xc7, ecp5 = (figures[f"array/{way}/{mode}/{target}"] for target in ("xcup", "xc7", "ecp5"))
            without = "" if own else figures[f"array/{way}/{mode}/no DSP"]["lut_per_mac"]
            rows.append([f"{mode}, {way}", xcup["lut_per_mac"], xc7["lut_per_mac"], without, xcup["lutram"],
                         xcup["dsp"], xcup["ff"], ecp5["fmax_mhz"]])
    rows += [[name, *lut, "", 64, ff, mhz] for name, (*lut, ff, mhz) in PUBLIC_ARRAYS.items()]
    text = f"{table(columns, rows)}\n{SCOPE}\n"
    text += "\nBoth modes over systolic only (SPECTRA, whole tile: LUT +82%, FF +79%, DSP +10.4%):\n\n"
    for target in ("xcup", "xc7"):
        for way in WAYS:
            both, one = (figures[f"array/{way}/{mode}/{target}"] for mode in ("**both modes**", "systolic only"))
            text += f"- {target}, {way}: {_over(both, one)}\n"
    return text


def engine(figures: Mapping[str, Figures]) -> str:
    """The whole engine with its memories, in each mode."""
    rows = {mode: figures[f"engine/{mode}/xcup"] for mode in list(MODES)[:3]}
    used = [r for r in RESOURCES if any(row[r] for row in rows.values())]
    one = rows["systolic only"]
    return table(("engine, xcup", *(r.upper() if r != "carry" else r for r in used), "over systolic only"), [
        [mode, *(row[r] for r in used), "" if row is one else _over(row, one)] for mode, row in rows.items()])


def _over(figures: Figures, first: Figures) -> str:
    kinds = [r for r in ("lut", "ff", "dsp", "bram") if first[r]]
    return ", ".join(f"{r.upper()} {figures[r] / first[r] - 1:+.1%}" for r in kinds)


def element(figures: Mapping[str, Figures]) -> str:
    """The processing element of a bank: its formats, and beside SADDLE's."""
    rows = {target: [figures[f"element/{form}/{target}"] for form in FORMATS.values()]
            for target in (*TARGETS, CELLS)}
    beside = {n: (split({name: ModuleArea(*area)
                         for name, area in figures[f"element/{n} accumulators/modules"].items()}),
                  figures[f"element/{n} accumulators/clock"]["fmax_mhz"]) for n in ACCUMULATORS}
    return f"{formats(rows)}\n{comparison(beside)}"


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
    name, lut, mhz = PUBLIC_PE
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


PARTS = {"blocks": blocks, "array": array, "engine": engine, "element": element}


def page(text: str, figures: Mapping[str, Figures]) -> str:
    """A page with the tables between its markers made from figures."""
    for name, part in PARTS.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if pattern.search(text):
            made = part(figures)
            text = pattern.sub(lambda m, made=made: m[1] + made + m[2], text)
    return text


def load() -> dict[str, dict[str, Any]]:
    """Entries of :data:`FIGURES`: name to ``digest`` and ``figures``."""
    return json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}


def figures_of(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Figures]:
    """The figures alone, by name."""
    return {name: entry["figures"] for name, entry in entries.items()}


def _stale(entries: Mapping[str, Any], only: str, report: Report) -> list[tuple[Measurement, Design, str]]:
    """What is to be measured, with its Verilog and the digest of that."""
    found = []
    designs: dict[Params, Design] = {}
    chosen = [m for m in wanted() if only in m.name]
    with report.progress("reading designs", len(chosen)) as progress:
        for measurement in chosen:
            p = measurement.params
            design = designs.get(p) or designs.setdefault(p, emit(measurement.make(p)))
            digest = hashlib.sha256(design.verilog.encode()).hexdigest()[:16]
            if entries.get(measurement.name, {}).get("digest") != digest:
                found.append((measurement, design, digest))
            progress.step(measurement.name)
    return found


def main() -> None:
    """Measure, note the figures and make the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="TEXT", default="", help="measure what has this in its name alone")
    parser.add_argument("--stale", action="store_true", help="list what would be measured")
    parser.add_argument("--render", action="store_true", help="make the tables and measure nothing")
    args = parser.parse_args()
    report, entries = Report(), load()
    if not args.render:
        stale = _stale(entries, args.only, report)
        if args.stale:
            print("\n".join(m.name for m, *_ in stale) or "nothing")
            return
        names = {m.name for m in wanted()}
        entries = {name: entry for name, entry in entries.items() if name in names}
        with report.progress("synthesising", len(stale)) as progress:
            for measurement, design, digest in stale:
                progress.tell(measurement.name)
                entries[measurement.name] = {"digest": digest, "figures": measurement.run(design, progress.tell)}
                write_atomic(FIGURES, json.dumps(dict(sorted(entries.items())), indent=1) + "\n")
                progress.step(measurement.name)
    missing = [m.name for m in wanted() if m.name not in entries and not m.name.startswith("blocks/")]
    if missing:
        print(f"the tables are not made: {len(missing)} of their figures are missing, as {missing[0]}")
        return
    for path in (PAGE, README):
        write_atomic(path, page(path.read_text(encoding="utf-8"), figures_of(entries)))
        print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
