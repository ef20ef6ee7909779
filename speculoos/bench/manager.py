"""``speculoos bench manager``: the RTL Manager on the shipped pair's own tokens and probabilities.

The engines around it are behavioural, with stated costs in cycles that depend on where operators run
(:mod:`sim_models.specdec.costs`). Every text is compared with that of the target alone; a difference ends the command
with exit code 1.
"""

import argparse
import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gen.errors import UserError
from speculoos.arguments import build_dir
from speculoos.bench.manager_report import WAITING
from speculoos.bench.manager_trace import chrome_trace
from speculoos.report import Report, write_atomic

if TYPE_CHECKING:
    from gen.config.config import Config
    from sim_models.golden.manager.manager import Switches
    from sim_models.params.manager.manager import ManagerParams
    from sim_models.specdec.costs import MappedCosts
    from tb.manager.manager_meter import ManagerMeter

__all__ = ["Case", "add_arguments", "cases", "costs", "maker", "row", "run"]

FIXED = (2, 4, 8)
#: how many times faster than the paper's the engines of the tables are, and those of the share of deciding
TABLES, DECIDING = 200, 20
DECIDING_TARGET = 0.0083
#: rows of a pass from which the tiles are bound by arithmetic, in the second setting
FEW_ROWS = 20
#: OPT's vocabulary
PAPER_VOCABULARY = 50_272


@dataclasses.dataclass(frozen=True)
class Case:
    """A variant.

    Members
    -------
    switches: tuple of Switches
        Settings to be tried, of which the best counts: starts of a pass, if there are several.
    """

    variant: str
    tau: float | None
    switches: "tuple[Switches, ...]"


def costs() -> "dict[str, MappedCosts]":
    """The two settings: the paper's machine, whose tiles take many rows in the time of one, and one that does not."""
    from sim_models.specdec.costs import PAPER
    paper = PAPER.scaled(TABLES)
    return {"bandwidth-bound": paper, "compute-bound": dataclasses.replace(paper, row=paper.weights // FEW_ROWS)}


def add_arguments(parser: "argparse._ArgumentGroup") -> None:
    """Batches, thresholds, tokens and the timeline."""
    parser.add_argument("--batch", type=_batches, metavar="LIST", default=[1, 4, 16],
                       help="batch sizes, as 1,4,16 (default)")
    parser.add_argument("--tau", type=_taus, metavar="LIST", default=[0.01, 0.1, 0.5],
                       help="thresholds of H, as 0.01,0.1,0.5 (default)")
    parser.add_argument("--tokens", type=_tokens, metavar="N", default=24,
                        help="tokens of each request (default: 24)")
    parser.add_argument("--timeline", type=Path, metavar="FILE.json",
                       help="also write one run as a Chrome trace, and FILE.png")


def maker(args: argparse.Namespace) -> "Callable[[ManagerParams, int, int], ManagerMeter]":
    """What builds a Manager of so many tokens a request and different prompts, when its turn has come."""
    def make(p: "ManagerParams", tokens: int, prompts: int) -> "ManagerMeter":
        from gen.flows.doctor import require
        require("g++", "make", "perl", "verilator")
        from tb.manager.manager_meter import ManagerMeter
        return ManagerMeter(p, build_dir(args), tokens=tokens, prompts=prompts)

    return make


def run(args: argparse.Namespace, report: Report, make: "Callable[[ManagerParams, int, int], ManagerMeter]",
        config: "Config") -> int:
    """Measure all variants.

    Raises
    ------
    UserError
        A batch has more requests than the Manager, or a file cannot be written.
    """
    from speculoos.bench.manager_report import print_rows, print_summary
    from speculoos.plots import check_target
    p: ManagerParams = config.params      # pyright: ignore[reportAssignmentType]
    if max(args.batch) > p.requests:
        raise UserError(f"the Manager has {p.requests} requests, a batch of {max(args.batch)} is too many")
    if args.plot:
        check_target(args.plot)
    if args.timeline and not args.timeline.parent.is_dir():
        raise UserError(f"--timeline {args.timeline}: there is no folder {args.timeline.parent}")
    report.note("building the Manager and recording the pair")
    meter = make(p, args.tokens, min(max(args.batch), 16))
    rows = _measure(args, report, meter, p)
    report.data.update(params=dataclasses.asdict(p), tokens=args.tokens, rows=rows,
                       costs={name: dataclasses.asdict(c) for name, c in costs().items()})
    print_rows(report, rows, costs())
    report.data["summary"] = print_summary(report, rows)
    _deciding(report, meter, p, max(args.batch))
    report.line(f"{meter.compared} tokens equal to the target's own")
    report.data["compared"] = meter.compared
    code = 0
    if args.timeline:
        code = _timeline(args.timeline, report, meter, p, min(max(args.batch), 8))
    if args.plot:
        from speculoos.bench.manager_plots import manager_plot
        code = manager_plot(rows, args.plot, report) or code
    return code


def _deciding(report: Report, meter: "ManagerMeter", p: "ManagerParams", batch: int) -> None:
    """The share of deciding, softmax included, at a ratio of costs near the paper's."""
    from sim_models.golden.manager.manager import Switches
    from sim_models.params.manager.softmax.softmax_unit import SoftmaxUnitParams
    from sim_models.specdec.costs import PAPER
    from sim_models.specdec.fixed import quantise
    scaled = PAPER.scaled(DECIDING)
    switches = Switches(tau=quantise(0.3), max_draft=16, start=p.entries, capacity=p.entries + p.requests)
    c = meter.run_with_softmax(switches, batch, scaled)
    share, softmax = c["deciding"] / c["cycles"], c["softmax"] / c["cycles"]
    state = "met" if share < DECIDING_TARGET else "missed"
    report.line(f"deciding (softmax, H, tau, pools) at the paper's costs, {DECIDING} times faster: a step of "
                f"{scaled.fc} cycles a request near the banks, a pass of {scaled.weights}; full, batch {batch}: "
                f"{100 * share:.2f}% of all cycles, of which with logits in the softmax unit {100 * softmax:.2f}% "
                f"(target below {100 * DECIDING_TARGET:.2f}%: {state})")
    unit = SoftmaxUnitParams()
    beats = -(-PAPER_VOCABULARY // unit.lanes)
    large = (c["drafted"] * (beats + unit.latency) + c["deciding"] - c["softmax"]) / (DECIDING * c["cycles"])
    report.line(f"the shipped pair has {meter.vocab_size} tokens; with OPT's {PAPER_VOCABULARY} a vector takes "
                f"{beats} cycles at {unit.lanes} logits a cycle, and the share at the paper's own costs would be "
                f"{100 * large:.2f}% (computed)")
    report.data["deciding"] = {"costs": dataclasses.asdict(scaled), "batch": batch, "share": share,
                               "softmax": softmax, "target": DECIDING_TARGET, "state": state,
                               "paper_vocabulary": large, "counters": c}


def _measure(args: argparse.Namespace, report: Report, meter: "ManagerMeter",
             p: "ManagerParams") -> list[dict[str, Any]]:
    rows = []
    settings = costs()
    with report.progress("measuring", len(list(cases(args.tau, 1, p))) * len(args.batch) * len(settings)) as progress:
        for setting, cost in settings.items():
            for batch in args.batch:
                for case in cases(args.tau, batch, p):
                    tried = [row(setting, batch, case, s.start,
                                 meter.run(s, batch, cost, oracle=case.variant == "oracle")[0])
                             for s in case.switches]
                    rows.append(max(tried, key=lambda r: r["tokens_per_1000"]))
                    progress.step(f"{setting}, batch {batch}, {case.variant}")
    return rows


def cases(taus: Sequence[float], batch: int, p: "ManagerParams") -> "Iterator[Case]":
    """All variants for a batch.

    Fixed lengths have the mapping that is best for the batch (PIM-SD, found offline); -d, -p and -s have the FC
    layers on tiles and attention near the banks (SADDLE VI-C); full moves them. A pass takes all that is pending.
    With ``eager`` an idle verifier starts with a token for each request, or only when nobody drafts or could.
    """
    from sim_models.golden.manager.draft_controller import CONFIDENCE
    from sim_models.golden.manager.draft_controller import FIXED as LENGTH_ALONE
    from sim_models.golden.manager.manager import Switches
    from sim_models.specdec.costs import PIM, RATIO, TILES
    from sim_models.specdec.fixed import ONE, quantise
    offline = PIM if batch < RATIO * p.lanes else TILES
    change = dataclasses.replace
    base = Switches(max_draft=min(16, 1 << p.draft_width), capacity=p.entries + p.requests, start=p.entries,
                    initial=(TILES, PIM))
    length = change(base, policy=LENGTH_ALONE, eager=False, dynamic=False, initial=(offline, PIM))
    for d in (0, *FIXED):
        yield Case(f"d = {d}", None, (change(length, max_draft=d),))
    yield Case("d = 4 alone", None, (change(length, max_draft=4, shared=False),))
    for tau in taus:
        full = change(base, tau=quantise(tau))
        fixed = change(full, dynamic=False)
        yield Case("-d", tau, (change(fixed, shared=False, eager=False),))
        yield Case("-p", tau, (change(fixed, eager=False),))
        yield Case("-s", tau, _starts(fixed, batch))
        yield Case("full", tau, _starts(full, batch))
        yield Case("confidence", tau, (change(full, policy=CONFIDENCE),))
    low, high = quantise(min(taus)), quantise(max(taus))
    # light load: long drafts
    table = tuple(low + (high - low) * n // 7 for n in range(8))
    yield Case("table", None, (change(base, taus=table),))
    yield Case("oracle", None, _starts(change(base, tau=ONE // 2), batch))


def _starts(switches: "Switches", batch: int) -> "tuple[Switches, ...]":
    return switches, dataclasses.replace(switches, start=batch)


def row(setting: str, batch: int, case: Case, start: int, c: dict[str, int]) -> dict[str, Any]:
    """One run as the JSON document has it."""
    return {
        "costs": setting, "batch": batch, "variant": case.variant, "tau": case.tau, "start": start,
        "cycles": c["cycles"], "tokens_per_1000": 1000 * c["emitted"] / c["cycles"],
        "draft_length": (c["rows"] - c["served"]) / c["served"],
        "acceptance": c["accepted"] / c["drafted"] if c["drafted"] else 0.0, "wasted": c["drafted"] - c["accepted"],
        **{name: c[name] for name in WAITING}, "deciding_share": c["deciding"] / c["cycles"], "counters": c}


def _timeline(path: Path, report: Report, meter: "ManagerMeter", p: "ManagerParams", batch: int) -> int:
    from sim_models.golden.manager.manager import Switches
    from sim_models.specdec.fixed import quantise
    from speculoos.bench.manager_plots import timeline_plot
    # slow drafting, on tiles: something to be seen
    switches = Switches(tau=quantise(0.05), start=batch, dynamic=False, initial=(1, 0))
    _, intervals = meter.run(switches, batch, dataclasses.replace(costs()["bandwidth-bound"], weights=20_000))
    events = chrome_trace(intervals)
    write_atomic(path, json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}))
    report.line(f"wrote {path}")
    return timeline_plot(events, path.with_suffix(".png"), report)


def _batches(text: str) -> list[int]:
    return _list(text, r"[0-9]{1,3}", int, lambda n: 1 <= n <= 256, "batch sizes from 1 to 256, as 1,4,16")


def _taus(text: str) -> list[float]:
    return _list(text, r"[0-9]*\.?[0-9]+", float, lambda t: 0 <= t <= 1, "thresholds from 0 to 1, as 0.05,0.3")


def _tokens(text: str) -> int:
    return _list(text, r"[0-9]{1,3}", int, lambda n: 1 <= n <= 200, "a number of tokens from 1 to 200")[0]


def _list(text: str, form: str, kind: Callable[[str], Any], good: Callable[[Any], bool], wanted: str) -> list[Any]:
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(form, part, re.ASCII) and good(kind(part)) for part in parts):
        raise argparse.ArgumentTypeError(f"{wanted} were wanted, not {text!r}")
    return list(dict.fromkeys(map(kind, parts)))
