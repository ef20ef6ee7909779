"""The demonstration: a real language model's weight matrices through the engine's Verilog, bit for bit.

::

    prompt -> tokenizer -> int8 target and draft (numpy) -> text, and the operands of every weight matrix
    engine x 3 -> Verilog -> Verilator -> the same matrices on the same activations -> compared with numpy
"""

import argparse
import dataclasses
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gen.errors import UserError
from speculoos.arguments import seed
from speculoos.bench.baselines import baseline_engines
from speculoos.bench.models import engine_params
from speculoos.demo.models import GAMMA, Models, Pass, Spoken, load_models, speak
from speculoos.plots import passes_plot
from speculoos.report import Report, write_atomic

if TYPE_CHECKING:
    from gen.emit.emit import Design
    from sim_models.params.tile.engine.compute_engine import ComputeEngineParams
    from tb.tile.engine.engine_meter import EngineMeter

__all__ = ["add_arguments", "chosen", "run"]

NEXT = "speculoos bench engine --baselines --plot baselines.png"
#: array cycles that the demonstration may take in all before it leaves layers out, and the least it takes
MOST_CYCLES, FEWEST_LAYERS = 12_000_000, 2
CLASSIFIER = "wcls"
#: weights that are queued at once
QUEUE = 1 << 20
#: rounds of speculation that are shown
SHOWN_ROUNDS = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Prompt, models, and where files go."""
    parser.add_argument("--prompt", metavar="TEXT", help="what the models are to continue (default: one that they "
                                                         "were not trained on)")
    parser.add_argument("--tokens", type=_count, default=48, metavar="N", help="tokens to generate (default: 48)")
    parser.add_argument("--model", type=Path, metavar="FILE", help="another target: llama2.c or GGUF checkpoint")
    parser.add_argument("--draft", type=Path, metavar="FILE", help="another draft, of the target's vocabulary")
    parser.add_argument("--tokenizer", type=Path, metavar="FILE", help="tokenizer.bin of a llama2.c target")
    parser.add_argument("--engine", default="engine", metavar="DESIGN",
                        help="the engine: a preset or TOML file (default: engine)")
    parser.add_argument("--layers", type=_count, metavar="N",
                        help="layers to run in the RTL (default: all that fit a minute, at least 2)")
    parser.add_argument("--seed", type=seed, default=0, metavar="N",
                        help="picks the prompt, and what uninitialised memory holds (default: 0)")
    parser.add_argument("-o", "--output", type=Path, default=Path("build/demo"), metavar="DIR",
                        help="folder for what is written (default: build/demo)")


def run(args: argparse.Namespace, report: Report, make: "Callable[..., EngineMeter]") -> int:
    """Speak, generate, build, run, compare; 1 when speculation changed a token.

    Raises
    ------
    UserError
        A model, the prompt or the folder is wrong; before anything is built.
    """
    from gen.config.config import resolve
    from sim_models.mapping.gemm import GemmError
    params = engine_params(resolve(args.engine), "--engine needs")
    if params.operand_width < 8:
        raise UserError(f"--engine needs an engine that takes int8 operands, operand_width is {params.operand_width}")
    if isinstance(report.stream, io.TextIOWrapper):
        report.stream.reconfigure(errors="replace")     # a model may say what the terminal cannot show
    models = load_models(args.model, args.draft, args.tokenizer, args.prompt, args.seed)
    spoken = speak(models, args.tokens)
    engines = baseline_engines(params)
    layers = chosen(spoken.passes, list(engines.values()), args.layers)
    passes = [dataclasses.replace(p, gemms=[g for g in p.gemms if _layer(g[0]) in layers[p.model]])
              for p in spoken.passes]
    _make_folder(args.output)
    same = _show_text(report, models, spoken)
    designs = _write_verilog(args.output / "verilog", engines, report)
    meters = _build(report, engines, designs, make)
    try:
        rows = _run_passes(report, passes, meters)
    except GemmError as e:
        raise UserError(f"a matrix does not fit the engine: {e}") from e
    _show_rows(report, rows, spoken.passes, passes)
    compared = sum(m.compared for m in meters.values())
    gemms = sum(len(p.gemms) for p in passes)
    report.line(f"{compared} results of {gemms} GEMMs on {len(meters)} engines: every bit "
                f"equal to numpy's, every cycle count to the golden model's")
    report.data.update(
        prompt=models.prompt, prompt_tokens=spoken.prompt, tokens=spoken.tokens, same_tokens=same, rows=rows,
        text=_text(models, spoken.tokens), compared=compared, engine=dataclasses.asdict(params),
        rounds=spoken.rounds and [dataclasses.asdict(r) for r in spoken.rounds])
    write_atomic(args.output / "demo.json", json.dumps(report.data, indent=1) + "\n")
    report.line(f"wrote {args.output / 'demo.json'}")
    passes_plot(rows, args.output / "demo.png", report)
    report.line(f"next: {NEXT}")
    return 0 if same else 1


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise UserError(f"--output {path}: the folder cannot be made: {e.strerror}") from e


def _show_text(report: Report, models: Models, spoken: Spoken) -> bool:
    """Print what the models say; returns whether speculation left every token as it was."""
    report.line(f"prompt:   {_printable(models.prompt)}")
    report.line(f"target:   {_printable(_text(models, spoken.tokens))}")
    if spoken.rounds is None:
        report.line("no draft: the target's own tokens stand in for drafts in the verification below\n")
        return True
    taken = sum(r.accepted for r in spoken.rounds)
    same = spoken.speculated == spoken.tokens
    report.line(f"with the draft's help: {'the same tokens' if same else 'OTHER TOKENS'}, {len(spoken.tokens)} in "
                f"{len(spoken.rounds)} verifications, {taken / len(spoken.rounds):.1f} of {GAMMA} drafts accepted on "
                f"average")
    report.line()
    report.table(["round", "accepted", "drafted and right", "target's own", "drafted and dropped"], [
        [i, r.accepted, *(_piece(_text(models, part)) for part in (
            r.drafted[:r.accepted], [r.own], r.drafted[r.accepted:]))]
        for i, r in enumerate(spoken.rounds[:SHOWN_ROUNDS], 1)], "how they came about (_ is a space)")
    if len(spoken.rounds) > SHOWN_ROUNDS:
        report.line(f"... and {len(spoken.rounds) - SHOWN_ROUNDS} rounds more")
    report.line()
    return same


def _write_verilog(folder: Path, engines: "dict[str, ComputeEngineParams]", report: Report) -> "dict[str, Design]":
    """The Verilog of each engine with its file list, in a folder of its own."""
    from gen.flows.doctor import require
    require("amaranth", "pyosys")
    from gen.emit.emit import emit
    from gen.products import write_products
    from rtl.tile.engine.compute_engine import ComputeEngine
    designs = {name: emit(ComputeEngine(p)) for name, p in engines.items()}
    for name, design in designs.items():
        write_products(design, folder / name)
        report.line(f"wrote {folder / name}: {design.top}, {len(design.modules)} modules, "
                    f"{len(design.verilog) // 1024} KiB of Verilog")
    return designs


def _build(report: Report, engines: "dict[str, ComputeEngineParams]", designs: "dict[str, Design]",
           make: "Callable[..., EngineMeter]") -> "dict[str, EngineMeter]":
    meters = {}
    if not report.rich:
        report.line("building them with Verilator: half a minute each, the first time")
    with report.progress("building with Verilator", len(engines)) as progress:
        for name, p in engines.items():
            meters[name] = make(p, designs[name])
            progress.step(f"built {name}")
    return meters


def chosen(passes: Sequence[Pass], engines: "Sequence[ComputeEngineParams]",
           layers: int | None) -> dict[str, set[str]]:
    """Layers to run (``layers.0`` ... and ``wcls``), by model: from the first on, the classifier last.

    Parameters
    ----------
    layers:
        Of the target and, as far as it has so many, of the draft. None takes what :data:`MOST_CYCLES` has room
        for, and at least :data:`FEWEST_LAYERS`.

    Raises
    ------
    UserError
        The target has fewer layers than were asked for.
    """
    from sim_models.golden.tile.engine.compute_engine import steps
    costs: dict[str, dict[str, int]] = {}
    for p in passes:
        cost = costs.setdefault(p.model, {})
        for name, x, w in p.gemms:
            cycles = sum(steps(e, len(x), *w.shape) for e in engines)
            cost[_layer(name)] = cost.get(_layer(name), 0) + cycles
    there = len(costs["target"]) - 1
    if layers is not None and layers > there:
        raise UserError(f"--layers asks for {layers} layers, the target has {there}")
    left = MOST_CYCLES
    taken: dict[str, set[str]] = {}
    for model, cost in costs.items():
        taken[model] = set()
        for number, (layer, cycles) in enumerate(cost.items()):
            fits = cycles <= left if layers is None or layer == CLASSIFIER else number < layers
            if fits or (number < FEWEST_LAYERS and layers is None and layer != CLASSIFIER):
                taken[model].add(layer)
                left -= cycles
    return taken


def _layer(matrix: str) -> str:
    """``layers.0`` of ``layers.0.wq``; the classifier stands for itself."""
    return matrix.rpartition(".")[0] or matrix


def _run_passes(report: Report, passes: Sequence[Pass], meters: "dict[str, EngineMeter]") -> list[dict[str, Any]]:
    """Each pass on each engine, in queues of at most :data:`QUEUE` weights (or one matrix)."""
    rows = []
    queues = {id(p): _queues(p) for p in passes}
    total = len(meters) * sum(map(len, queues.values()))
    with report.progress("running the RTL", total) as progress:
        for p in passes:
            for name, meter in meters.items():
                before, busy, elapsed = meter.compared, 0, 0
                for queue in queues[id(p)]:
                    got = meter.measure_pass(queue, repeats=1)
                    busy, elapsed = busy + got.busy, elapsed + got.total
                    progress.step(f"{p.model}, {p.phase}, {name}")
                macs = sum(x.size * w.shape[1] for _, x, w in p.gemms)
                rows.append({
                    "model": p.model, "phase": p.phase, "m": p.m, "engine": name, "matrices": len(p.gemms),
                    "macs": macs, "cycles": busy, "utilisation": macs / (busy * meter.p.rows * meter.p.cols),
                    "cycles_with_loading": elapsed, "compared": meter.compared - before})
                if not report.rich:
                    report.line(f"{p.model}, {p.phase}, {name}: {len(p.gemms)} matrices equal")
    return rows


def _queues(p: Pass) -> list[list[Any]]:
    queues: list[list[Any]] = []
    size = QUEUE
    for gemm in p.gemms:
        size += gemm[2].size
        if size > QUEUE:
            queues.append([])
            size = gemm[2].size
        queues[-1].append(gemm)
    return queues


def _show_rows(report: Report, rows: Sequence[dict[str, Any]], whole: Sequence[Pass], run: Sequence[Pass]) -> None:
    report.line()
    cycles = {(r["model"], r["phase"], r["engine"]): r["cycles"] for r in rows}
    report.table(["model", "pass", "M", "engine", "cycles", "used", "auto gains", "in all"], [
        [r["model"], r["phase"], r["m"], r["engine"], r["cycles"], r["utilisation"],
         f"{r['cycles'] / cycles[r['model'], r['phase'], 'auto']:.2f}x", r["cycles_with_loading"]] for r in rows],
        "weight matrices in the RTL, with the activations of this prompt")
    report.line("cycles: from first operand to last result, summed over commands; used: share of the MACs in them;\n"
                "in all: from the first operand word in to the last result out, a word of each memory a cycle\n")
    for before, after in zip(whole, run, strict=True):
        if before.phase == "decode" and len(before.gemms) != len(after.gemms):
            report.line(f"{before.model}: {len(after.gemms)} of its {len(before.gemms)} weight matrices were run, "
                        f"--layers chooses how many")


def _text(models: Models, tokens: Sequence[int]) -> str:
    return models.tokenizer.decode(list(tokens)).decode("utf-8", "replace")


def _printable(text: str) -> str:
    """One line, whatever the text holds."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "?" for c in text)


def _piece(text: str) -> str:
    """A part of a text, the spaces at its ends visible."""
    shown = _printable(text)
    inner = shown.strip(" ")
    left = len(shown) - len(shown.lstrip(" ")) if inner else len(shown)
    return "_" * left + inner + "_" * (len(shown) - left - len(inner))


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= 4096:
        raise argparse.ArgumentTypeError(f"a number from 1 to 4096 was wanted, not {text!r}")
    return int(text)
