"""``speculoos bench --baselines``: whole passes of a model on the dual-mode engine and on SPECTRA's two baselines.

SPECTRA 2.2 and Fig. 6 compare a reconfigurable array with a systolic-only and a vector-lane-only one. Here all three
come from the same source; only the parameter ``modes`` differs. A pass runs every weight matrix once, in the
order of the model, its operands streamed in at one word of each memory a cycle while the matrix before is computed.
"""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gen.errors import UserError
from speculoos.bench.measured import check_work, row
from speculoos.bench.models import BenchModel, bench_models, operands
from speculoos.plots import baselines_plot
from speculoos.report import Report

if TYPE_CHECKING:
    from gen.config.config import Config
    from sim_models.params.tile.engine.compute_engine import ComputeEngineParams
    from tb.tile.engine.engine_meter import EngineMeter

__all__ = ["ENGINES", "NOTES", "baseline_engines", "run", "weight_reads"]

#: the engines by name, with what makes them
ENGINES: dict[str, dict[str, str]] = {
    "auto": {"modes": "both"},
    "systolic-only": {"modes": "systolic"},
    "vector-only": {"modes": "vector"},
}
ROWS = list(range(1, 18))
NOTES = (
    "Cycles: measured from the end of one pass to the end of the next, every weight streamed from outside once a "
    "pass, one rows x cols sub-tile a cycle. Memories beyond the engine are not modelled: SPECTRA's Fig. 6 (1.16 to "
    "2.09x over systolic-only, 3.80 to 8.02x over vector-only) includes their traffic, this table does not.",
    "Vector-only ties with auto in cycles because weights stay in the local memory while all M rows use them. What "
    "auto saves there is reads of that memory: a systolic pass reads a sub-tile once for all its rows.",
)


def baseline_engines(p: "ComputeEngineParams") -> "dict[str, ComputeEngineParams]":
    """The three engines of the size of ``p``."""
    return {name: p.replace(**changes) for name, changes in ENGINES.items()}


def weight_reads(p: "ComputeEngineParams", m: int, k: int, n: int) -> int:
    """Words that GEMMs in mode auto read from the local weight memory: computed, not measured.

    A systolic pass of up to ``rows`` rows reads each word once, a vector-lane row reads each word for itself.
    """
    whole, rest = divmod(m, p.rows)
    passes = m if not p.systolic else -(-m // p.rows) if not p.vector else whole + rest
    return passes * -(-k // p.rows) * -(-n // p.cols)


def run(args: argparse.Namespace, report: Report, make: "Callable[..., EngineMeter]", config: "Config",
        p: "ComputeEngineParams") -> int:
    """Measure passes and single matrices of each model on each engine.

    Raises
    ------
    UserError
        ``--k``, ``--n`` or ``--mode`` was given, which the models and the engines decide here.
    """
    for option, given in (("--k", args.k), ("--n", args.n), ("--mode", args.mode)):
        if given:
            raise UserError(f"{option} and --baselines exclude each other: the models decide K and N, the engines "
                            f"their modes")
    models, rows = bench_models(config), args.m or ROWS
    engines = baseline_engines(p)
    for model in models:
        for q in engines.values():
            check_work(q, ((m, k, n, "auto") for m in rows for _, k, n in model.matrices))
    report.note("building three engines")
    meters = {name: make(q) for name, q in engines.items()}
    passes: list[dict[str, Any]] = []
    shapes: list[dict[str, Any]] = []
    with report.progress("measuring", len(models) * len(rows) * len(meters)) as progress:
        for model in models:
            for m in rows:
                for name, meter in meters.items():
                    passes.append(_pass(model, m, name, meter, args.seed))
                    shapes += _shapes(model, m, name, meter, args.seed)
                    progress.step(f"{model.name}, {m} rows, {name}")
    for model in models:
        _tables(report, model, [r for r in passes if r["model"] == model.name],
                [r for r in shapes if r["model"] == model.name])
    for note in NOTES:
        report.line(note)
    compared = sum(meter.compared for meter in meters.values())
    report.line(f"\n{compared} values equal to numpy's, all cycle counts equal to the golden model's")
    report.data.update(passes=passes, rows=shapes, notes=list(NOTES), compared=compared)
    if args.plot:
        return baselines_plot([r for r in passes if r["model"] == models[0].name], args.plot, report)
    return 0


def _pass(model: BenchModel, m: int, engine: str, meter: "EngineMeter", seed: int) -> dict[str, Any]:
    gemms = [(name, *operands(meter.p, m, k, n, seed)) for name, k, n in model.matrices]
    got = meter.measure_pass(gemms)
    macs = m * model.weights
    return {"model": model.name, "m": m, "engine": engine, "matrices": len(gemms), "macs": macs,
            "cycles": got.interval, "first_pass_cycles": got.total, "busy_cycles": got.busy,
            "utilisation": macs / (got.interval * meter.p.rows * meter.p.cols),
            "weight_reads": sum(weight_reads(meter.p, m, k, n) for _, k, n in model.matrices)}


def _shapes(model: BenchModel, m: int, engine: str, meter: "EngineMeter", seed: int) -> list[dict[str, Any]]:
    return [{"model": model.name, "engine": engine, "matrices": names,
             **row(meter.p, m, k, n, "auto", meter.measure(*operands(meter.p, m, k, n, seed), "auto"))}
            for (k, n), names in model.shapes.items()]


def _tables(report: Report, model: BenchModel, passes: list[dict[str, Any]], shapes: list[dict[str, Any]]) -> None:
    first, *others = ENGINES
    by = {(r["m"], r["engine"]): r for r in passes}
    rows = list(dict.fromkeys(r["m"] for r in passes))
    report.table(["M", *ENGINES, *(f"over {e}" for e in others)],
                 [[m, *(by[m, e]["cycles"] for e in ENGINES),
                   *(f"{by[m, e]['cycles'] / by[m, first]['cycles']:.2f}x" for e in others)] for m in rows],
                 f"{model.name}: cycles a pass of all {len(model.matrices)} weight matrices ({model.weights} "
                 f"weights), speed-up of auto")
    report.line()
    short = [e.removesuffix("-only") for e in ENGINES]
    report.table(["M", *(f"{e} used" for e in short), *(f"{e} reads" for e in short)],
                 [[m, *(by[m, e]["utilisation"] for e in ENGINES), *(by[m, e]["weight_reads"] for e in ENGINES)]
                  for m in rows],
                 f"{model.name}: share of MACs used (measured), words read from the local weight memory (computed)")
    report.line()
    each = {(r["m"], r["k"], r["n"], r["engine"]): r["interval"] for r in shapes}
    sizes = list(model.shapes)
    report.table(["M", *(f"{k} x {n}" for k, n in sizes)],
                 [[m, *(" / ".join(f"{each[m, k, n, e] / each[m, k, n, first]:.2f}" for e in others)
                        for k, n in sizes)] for m in rows],
                 f"{model.name}: speed-up of auto over {' / '.join(others)}, each K x N repeated by itself")
    report.line()
