"""``speculoos bench``: cycles and utilisation of the compute engine, measured in the RTL.

A row of the results is one GEMM in one mode, measured twice: alone, from first operand to last result, and back to
back, as the distance between equal commands in a row. Every value that the engine computes is compared with numpy,
and every cycle count with the golden model; a difference ends the command with exit code 1.
"""

import argparse
import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gen.errors import UserError
from speculoos.arguments import build_dir, seed
from speculoos.bench import baselines as bench_baselines
from speculoos.bench.measured import BACK_TO_BACK, check_work, row
from speculoos.bench.models import bench_models, engine_params, operands
from speculoos.plots import check_target, panels_of, utilisation_plot
from speculoos.report import Report

if TYPE_CHECKING:
    from gen.config.config import Config
    from gen.emit.emit import Design
    from sim_models.params.tile.engine.compute_engine import ComputeEngineParams
    from tb.tile.engine.engine_meter import EngineMeter, Measured

__all__ = ["TARGETS", "add_arguments", "engine_modes", "maker", "measure_rows", "run"]

MODES = ("auto", "systolic", "vector")
#: what a list that leaves something out is completed with
DEFAULT_SIZES = {"m": list(range(1, 65)), "k": [64], "n": [64]}
#: rows of a model's shapes: decoding, verification of 8 drafts and one more, a prompt
MODEL_ROWS = (1, 9, 32)
#: shapes that targets speak of, beside M = 1..64 at K = N = 64
NAMED = ((8, 64, 64), (9, 64, 172), (1, 64, 172))
#: largest M, K or N that can be asked for
LARGEST_SIZE = 1 << 20


@dataclasses.dataclass(frozen=True)
class Case:
    """A GEMM to be measured."""

    section: str
    m: int
    k: int
    n: int
    #: model and weight matrices that have this shape
    model: str = ""
    matrices: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Target:
    """A figure that the engine is to reach in mode auto."""

    what: str
    wanted: float
    #: which rows it speaks of, and which of their figures; the lowest counts
    shapes: tuple[tuple[int, int, int], ...]
    figure: str


#: columns of the tables, what they are called, and what they are
FIGURES = {"cycles": "alone", "interval": "b2b", BACK_TO_BACK: "used"}
SHORT = {"auto": "auto", "systolic": "syst.", "vector": "vect."}
LEGEND = "alone, b2b: cycles, alone and back to back; used: share of the MACs"
TARGETS = (
    Target("M = 1..64, K = N = 64, back to back", 0.95, tuple((m, 64, 64) for m in range(1, 65)), BACK_TO_BACK),
    Target("8 x 64 x 64, alone", 0.97, ((8, 64, 64),), "utilisation"),
    Target("9 x 64 x 172, alone", 0.94, ((9, 64, 172),), "utilisation"),
    Target("9 x 64 x 172, back to back", 0.94, ((9, 64, 172),), BACK_TO_BACK),
    Target("1 x 64 x 172, back to back", 0.97, ((1, 64, 172),), BACK_TO_BACK),
)


def add_arguments(parser: "argparse._ArgumentGroup") -> None:
    """Sizes, modes and the seed."""
    for name, what in (("m", "rows of activations"), ("k", "inner size"), ("n", "output channels")):
        text = "1-64" if name == "m" else "64"
        parser.add_argument(f"--{name}", type=_sizes, metavar="LIST",
                            help=f"{what}, as 9 or 1-17 or 1,8,64 (default with the other two: {text})")
    parser.add_argument("--mode", type=_modes, metavar="LIST",
                        help=f"{', '.join(MODES)}, or several of them (default: all that are built)")
    parser.add_argument("--baselines", action="store_true",
                        help="whole passes of the models on this engine and on both single-mode engines")
    parser.add_argument("--seed", type=seed, default=1, metavar="N", help="seed of the operands (default: 1)")


def maker(args: argparse.Namespace) -> "Callable[..., EngineMeter]":
    """What builds an engine, when its turn has come."""
    def make(p: "ComputeEngineParams", design: "Design | None" = None) -> "EngineMeter":
        from gen.flows.doctor import require
        require("g++", "make", "perl", "verilator")
        from tb.tile.engine.engine_meter import EngineMeter
        return EngineMeter(p, build_dir(args), seed=args.seed, design=design)

    return make


def run(args: argparse.Namespace, report: Report, make: "Callable[..., EngineMeter]", config: "Config") -> int:
    """Measure what was asked for.

    Raises
    ------
    UserError
        A mode is not built into the engine, or the sizes are too large.
    """
    p = engine_params(config, "bench measures")
    if args.plot:
        check_target(args.plot)
    report.data.update(design=config.name, params=dataclasses.asdict(p), seed=args.seed)
    if args.baselines:
        return bench_baselines.run(args, report, make, config, p)
    return _sweep(args, report, make, config, p)


def _sweep(args: argparse.Namespace, report: Report, make: "Callable[..., EngineMeter]", config: "Config",
           p: "ComputeEngineParams") -> int:
    modes = engine_modes(p, args.mode)
    custom = bool(args.m or args.k or args.n)
    cases = _custom(args) if custom else _standard(config)
    check_work(p, ((c.m, c.k, c.n, mode) for c in cases for mode in modes))
    if args.plot and custom:
        panels_of([dataclasses.asdict(c) for c in cases])
    report.note(f"building {p.unit_name('compute_engine')}")
    meter = make(p)
    rows = measure_rows(meter, cases, modes, args.seed, report)
    report.data["rows"] = rows
    report.line(f"{config.name}: {p.rows} x {p.cols} PEs, {p.rows * p.cols} MACs a cycle; cycles measured in the "
                f"RTL, operands on chip\n")
    if custom:
        _flat_table(report, rows)
    else:
        _standard_tables(report, rows, modes)
    report.line(f"\n{meter.compared} values equal to numpy's, all cycle counts equal to the golden model's")
    report.data["compared"] = meter.compared
    if args.plot:
        chosen = [r for r in rows if custom or r["section"] == "square"]
        return utilisation_plot(chosen, p.rows * p.cols, args.plot, report)
    return 0


def engine_modes(p: "ComputeEngineParams", wanted: Sequence[str] | None) -> tuple[str, ...]:
    """The modes to measure: those asked for, else all that the engine has.

    Raises
    ------
    UserError
        A mode is not built.
    """
    built = MODES if p.systolic and p.vector else (MODES[0], "systolic" if p.systolic else "vector")
    for mode in wanted or ():
        if mode not in built:
            raise UserError(f"mode {mode} is not built into this engine, only {' and '.join(built)}")
    return tuple(wanted or (built if len(built) == len(MODES) else built[1:]))


def _custom(args: argparse.Namespace) -> list[Case]:
    ms, ks, ns = (getattr(args, name) or DEFAULT_SIZES[name] for name in "mkn")
    return [Case("custom", m, k, n) for k in ks for n in ns for m in ms]


def _standard(config: "Config") -> list[Case]:
    cases = [Case("square", m, 64, 64) for m in DEFAULT_SIZES["m"]]
    cases += [Case("named", m, k, n) for m, k, n in NAMED]
    for model in bench_models(config):
        cases += [Case("model", m, k, n, model.name, tuple(names))
                  for (k, n), names in model.shapes.items() for m in MODEL_ROWS]
    return cases


def measure_rows(meter: "EngineMeter", cases: Sequence[Case], modes: Sequence[str], seed: int,
                 report: Report) -> list[dict[str, Any]]:
    """Rows of all cases in all modes; equal ones are measured once."""
    known: dict[tuple[int, int, int, str], Measured] = {}
    rows = []
    with report.progress("measuring", len(cases)) as progress:
        for case in cases:
            for mode in modes:
                key = case.m, case.k, case.n, mode
                if key not in known:
                    known[key] = meter.measure(*operands(meter.p, *key[:3], seed), mode)
                rows.append({"section": case.section, "model": case.model, "matrices": list(case.matrices),
                             **row(meter.p, *key, known[key])})
            progress.step(f"{case.m} x {case.k} x {case.n}")
    return rows


def _standard_tables(report: Report, rows: Sequence[dict[str, Any]], modes: Sequence[str]) -> None:
    square = [r for r in rows if r["section"] == "square"]
    _pivot(report, f"K = N = 64; {LEGEND}", square, modes, ("m",), tuple(FIGURES))
    report.line()
    for model in dict.fromkeys(r["model"] for r in rows if r["section"] == "model"):
        mine = [r | {"matrix": _names(r["matrices"])} for r in rows if r["model"] == model]
        _pivot(report, f"weight matrices of {model}", mine, modes, ("matrix", "k", "n", "m"), tuple(FIGURES)[1:])
        report.line()
    if "auto" not in modes:
        return
    auto = {(r["m"], r["k"], r["n"]): r for r in rows if r["mode"] == "auto"}
    table = []
    for target in TARGETS:
        got = min(auto[shape][target.figure] for shape in target.shapes)
        table.append([target.what, target.wanted, got, "met" if got >= target.wanted else "missed"])
    report.table(["utilisation in mode auto", "target", "lowest", ""], table)
    report.data["targets"] = [dict(zip(("what", "wanted", "measured", "state"), t, strict=True)) for t in table]


def _names(matrices: Sequence[str]) -> str:
    """``wq wo x 4`` for the matrices of four layers."""
    kinds = [name.rpartition(".")[2] for name in matrices]
    distinct = dict.fromkeys(kinds)
    count = len(kinds) // len(distinct)
    return " ".join(distinct) + (f" x {count}" if count > 1 else "")


def _pivot(report: Report, title: str, rows: Sequence[dict[str, Any]], modes: Sequence[str],
           keys: Sequence[str], figures: Sequence[str]) -> None:
    """A line for each shape, a column for each mode and figure."""
    columns = [key.upper() if len(key) == 1 else key for key in keys]
    columns += [f"{SHORT[mode]} {FIGURES[name]}" for mode in modes for name in figures]
    lines: dict[tuple[Any, ...], list[Any]] = {}
    for r in rows:
        line = lines.setdefault(tuple(r[key] for key in keys), [])
        line += [_short(r[name]) if name == "interval" else r[name] for name in figures]
    report.table(columns, [[*key, *line] for key, line in lines.items()], title)


def _flat_table(report: Report, rows: Sequence[dict[str, Any]]) -> None:
    report.table(["M", "K", "N", "mode", "alone", "used", "b2b", "used", "commands", "b2b bound by"],
                 [[r["m"], r["k"], r["n"], r["mode"], r["cycles"], r["utilisation"], _short(r["interval"]),
                   r[BACK_TO_BACK], r["commands"], r["bound"]] for r in rows], LEGEND)


def _short(value: float) -> float | int:
    return round(value, 1) if isinstance(value, float) else value


def _sizes(text: str) -> list[int]:
    """``1-17,32`` as a list without repetitions, in the order given."""
    found: dict[int, None] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?", part, re.ASCII)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= low <= high <= LARGEST_SIZE or high - low > 4096:
            raise argparse.ArgumentTypeError(f"sizes from 1 to {LARGEST_SIZE} were wanted, as 9 or 1-17 or 1,8,64, "
                                             f"not {text!r}")
        found.update(dict.fromkeys(range(low, high + 1)))
    return list(found)


def _modes(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in MODES:
            from gen.config.config import guess
            raise argparse.ArgumentTypeError(f"there is no mode {name!r}{guess(name, MODES)}, "
                                             f"only {', '.join(MODES)}")
    return list(dict.fromkeys(names))
