"""``speculoos bench pim``: GEMVs of real matrices and decode attention on a PIM stack, measured in the RTL.

*Alone* is from the first command to the last result on an idle stack; *in a row*, a share of many equal products that
follow each other, refreshes included. Both are compared with what the banks allow: 16 words of every pseudo-channel
each ``ccd`` cycles. Every result is compared with the golden model, and every cycle count and row hit with the timing
model; a difference ends the command with exit code 1.
"""

import argparse
import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gen.errors import UserError
from speculoos.arguments import build_dir, seed
from speculoos.report import Report

if TYPE_CHECKING:
    import numpy as np

    from gen.config.config import Config
    from sim_models.params.pim.stack.pim_stack import PimStackParams
    from tb.pim.stack.stack_meter import Measured, StackMeter

__all__ = ["LENGTHS", "TARGET", "add_arguments", "maker", "matrices", "run"]

#: positions of attention, elements of a head
LENGTHS, HEAD = (1, 2, 15, 16, 17, 255, 1024), 64
#: share of what ccd allows that is to be reached in a row, for K and N of at least this
TARGET, LARGE = 0.9, 512
#: shapes that the models give, and those of one layer of SmolLM2-135M
_SMOLLM2 = ("w1", "wk")


def add_arguments(parser: "argparse._ArgumentGroup") -> None:
    """Random shapes, plain banks and the seed."""
    parser.add_argument("--random", type=_count, default=200, metavar="N",
                       help="random shapes whose cycles are compared with the timing model's (default: 200)")
    parser.add_argument("--plain", action="store_true", help="also measure banks with one open row")
    parser.add_argument("--seed", type=seed, default=1, metavar="N", help="seed of the operands (default: 1)")


def maker(args: argparse.Namespace) -> "Callable[[PimStackParams], StackMeter]":
    """What builds a stack, when its turn has come."""
    def make(p: "PimStackParams") -> "StackMeter":
        from gen.flows.doctor import require
        require("g++", "make", "perl", "verilator")
        from tb.pim.stack.stack_meter import StackMeter
        return StackMeter(p, build_dir(args), seed=args.seed)

    return make


def run(args: argparse.Namespace, report: Report, make: "Callable[[PimStackParams], StackMeter]",
        config: "Config") -> int:
    """Measure all shapes.

    Raises
    ------
    UserError
        The stack lacks a format or is too small, or a plot cannot be written.
    """
    from speculoos.plots import check_target
    p: PimStackParams = config.params     # pyright: ignore[reportAssignmentType]
    if p.format != "both":
        raise UserError(f"bench pim measures a stack with both formats, not {p.format} alone")
    if args.plot:
        check_target(args.plot)
    found = matrices(report)
    _check_fit(p, found)
    rows: list[dict[str, Any]] = []
    compared = count = 0
    stacks = [p, p.replace(open_rows=1)] if args.plain and p.open_rows > 1 else [p]
    report.data.update(params=dataclasses.asdict(p), limit_bytes=_limit(p), rows=rows)
    for stack in stacks:
        report.note(f"building a stack with {stack.open_rows} open rows")
        meter = make(stack)
        mine = _measure(meter, found, report)
        rows += mine
        _tables(report, stack, mine)
        if stack is p:
            count = meter.random(args.random)
        compared += meter.compared
    _target(report, [r for r in rows if r["open_rows"] == p.open_rows])
    report.line(f"{compared} results equal to the golden model's; all cycles and row hits equal to the timing "
                f"model's, also those of {count} random shapes")
    report.data.update(compared=compared, random=count)
    if args.plot:
        from speculoos.bench.pim_plot import pim_plot
        return pim_plot(rows, args.plot, report)
    return 0


def _check_fit(p: "PimStackParams", found: Sequence[tuple[str, str, "np.ndarray"]]) -> None:
    """Refuse a stack that cannot take all that is measured, before one is built."""
    import numpy as np

    from sim_models.mapping.pim import Attention, Gemv, PimMappingError
    what = f"attention over {max(LENGTHS)} positions"
    try:
        Attention(p, HEAD, max(LENGTHS))
        for model, name, w in found:
            what = f"{name} of {model}"
            for kind in (np.float16, np.int8):
                Gemv(p, np.zeros(w.shape, kind))
    except PimMappingError as e:
        raise UserError(f"the stack is too small for {what}: {e}") from e


def _limit(p: "PimStackParams") -> float:
    """Bytes a cycle that all banks deliver at most."""
    return 16 * p.pseudo_channels * p.word_width / 8 / p.ccd


def matrices(report: Report) -> list[tuple[str, str, "np.ndarray"]]:
    """Model, name and float32 [K, N] of each shape that the models have, from the first layer that has it."""
    from sim_models.transformer.checkpoint import WEIGHTS, CheckpointError
    from sim_models.transformer.pair import load_pair
    from sim_models.transformer.smollm2 import load_smollm2
    try:
        pair = load_pair()
    except CheckpointError as e:
        raise UserError(f"the models that come with the project are needed: {e}", 1) from e
    found: dict[Any, tuple[str, str, np.ndarray]] = {}
    for model, checkpoint in (("target", pair.target), ("draft", pair.draft)):
        for name in (*WEIGHTS, "wcls"):
            w = checkpoint.classifier.T if name == "wcls" else checkpoint[name][0].T
            found.setdefault((model, w.shape), (model, name, w))
    try:
        large = load_smollm2()
    except CheckpointError as e:
        report.line(f"without SmolLM2-135M: {e}")
        report.data["without"] = "SmolLM2-135M"
    else:
        found |= {("smollm2", (n,)): ("SmolLM2-135M", n, large[n][0].T) for n in _SMOLLM2}
    return list(found.values())


def _measure(meter: "StackMeter", found: Sequence[tuple[str, str, "np.ndarray"]], report: Report) -> list[dict[str,
Any]]:
    import numpy as np

    from sim_models.numerics.rows import quantise
    rows = []
    with report.progress("measuring", 2 * len(found) + len(LENGTHS)) as progress:
        for model, name, w in found:
            for kind in ("fp16", "int8"):
                stored = w.astype(np.float16) if kind == "fp16" else np.ascontiguousarray(quantise(w.T)[0].T)
                size = w.size * stored.itemsize
                rows.append({"what": "gemv", "model": model, "matrix": name, "k": w.shape[0], "n": w.shape[1],
                             "format": kind, **_row(meter, meter.gemv(stored), size)})
                progress.step(f"{model} {name} {kind}")
        for length in LENGTHS:
            rows.append({"what": "attention", "model": "", "matrix": "", "k": HEAD, "n": length, "format": "fp16",
                         **_row(meter, meter.attention(HEAD, length), 4 * HEAD * length)})
            progress.step(f"attention over {length}")
    return rows


def _row(meter: "StackMeter", got: "Measured", size: int) -> dict[str, Any]:
    """A measurement as the JSON document has it; ``size`` is what must be read, in bytes."""
    limit = _limit(meter.p)
    best = got.interval or got.cycles
    return {"open_rows": meter.p.open_rows, **dataclasses.asdict(got), "bytes": size,
            "bytes_per_cycle": size / best, "share": size / best / limit, "share_alone": size / got.cycles / limit}


def _tables(report: Report, p: "PimStackParams", rows: Sequence[dict[str, Any]]) -> None:
    rows_open = "two rows open at a time" if p.open_rows == 2 else "one row open (plain banks)"
    report.line(f"{p.pseudo_channels} pseudo-channels, {16 * p.pseudo_channels} banks, {rows_open}; the banks allow "
                f"{_limit(p):g} bytes a cycle")
    report.table(
        ["model", "matrix", "K", "N", "format", "split", "alone", "in a row", "bytes/cycle", "of the limit",
         "row hits"],
        [[r["model"], r["matrix"], r["k"], r["n"], r["format"], r["split"], r["cycles"], round(r["interval"], 1),
          round(r["bytes_per_cycle"], 1), r["share"], r["hit_rate"]] for r in rows if r["what"] == "gemv"],
        "GEMV: cycles alone and of one among many in a row; bytes a cycle in a row")
    report.line()
    report.table(
        ["positions", "cycles", "of them banks", "row hits"],
        [[r["n"], r["cycles"], r["bank_cycles"], r["hit_rate"]] for r in rows if r["what"] == "attention"],
        f"attention of one head of {HEAD} elements, FP16, alone: scores, softmax, values")
    report.line()


def _target(report: Report, rows: Sequence[dict[str, Any]]) -> None:
    large = [r for r in rows if r["what"] == "gemv" and min(r["k"], r["n"]) >= LARGE]
    if not large:
        return
    lowest = min(r["share"] for r in large)
    state = "met" if lowest >= TARGET else "missed"
    report.line(f"bytes a cycle of the bank limit, K and N at least {LARGE}, in a row: {lowest:.3f} at least "
                f"(target {TARGET}: {state})")
    report.data["target"] = {"wanted": TARGET, "measured": lowest, "state": state}


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"a number of shapes from 1 to 10000 was wanted, not {text!r}")
    return int(text)
