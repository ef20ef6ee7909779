"""``speculoos bench manager``: the RTL Manager on a pair's own tokens and probabilities.

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
from speculoos.arguments import build_dir, check_distinct
from speculoos.bench import manager_inputs
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

#: how many times faster than the paper's the engines of the tables are
TABLES = 200
DECIDING_TARGET = 0.0083
#: options of the tables and what they are by default; they say nothing about deciding
TABLE_OPTIONS: dict[str, Any] = {
    "d": [2, 4, 8], "tau": [0.01, 0.1, 0.3, 0.5, 0.7, 0.9], "start": None, "repeats": 1, "machine": None,
    "plot": None, "timeline": None}
#: options of deciding, and what they are by default
DECIDING_OPTIONS: dict[str, Any] = {"vocabulary": 50_272, "logit_lanes": [8, 16, 32, 64]}
#: logits a cycle that a softmax unit may take
LOGIT_LANES = (1, 2, 4, 8, 16, 32, 64)
#: rows of a pass from which the tiles are bound by arithmetic, in the second setting
FEW_ROWS = 20
#: starts of a pass that are tried, as multiples of the batch; and one pending token, and all
STARTS = (0.25, 0.5, 1, 2)


@dataclasses.dataclass(frozen=True)
class Case:
    """A variant.

    Members
    -------
    variant: str
        Its name in the tables.
    tau: float or None
        Threshold of H, where there is one.
    switches: tuple of Switches
        Settings to be tried, of which the best counts: starts of a pass, and lengths for the oracle.
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
    parser.add_argument("--d", type=_lengths, metavar="LIST", default=TABLE_OPTIONS["d"],
                        help="fixed draft lengths beside 0, as 2,4,8 (default)")
    parser.add_argument("--tau", type=_taus, metavar="LIST", default=TABLE_OPTIONS["tau"],
                        help="thresholds of H, as 0.01,0.1,0.5 (default: 0.01,0.1,0.3,0.5,0.7,0.9)")
    parser.add_argument("--start", type=_starts_given, metavar="LIST",
                        help="pending tokens with which an idle verifier starts while others draft, as 1,4; the best "
                             "of each variant counts (default: 1, a quarter, half, once and twice the batch, all)")
    parser.add_argument("--repeats", type=_repeats, metavar="N", default=1,
                        help="batches of different prompts that each figure is the mean of (default: 1)")
    parser.add_argument("--tokens", type=_tokens, metavar="N", default=24,
                        help="tokens of each request (default: 24)")
    parser.add_argument("--vocabulary", type=_vocabulary, metavar="N",
                        help="tokens of the vocabulary with --deciding (default: 50272, OPT's)")
    parser.add_argument("--deciding", action="store_true",
                        help="measure deciding at the paper's costs instead, for the largest batch, without RTL")
    parser.add_argument("--logit-lanes", type=_logit_lanes, metavar="LIST",
                        help="logits a cycle with --deciding, as 8,16 (default: 8,16,32,64)")
    parser.add_argument("--timeline", type=Path, metavar="FILE.json",
                        help="also write one run as a Chrome trace, and FILE.png")
    manager_inputs.add_arguments(parser)


def maker(args: argparse.Namespace) -> "Callable[[ManagerParams, int, int], ManagerMeter]":
    """What builds a Manager for so many tokens a request and different prompts, when its turn has come."""
    def make(p: "ManagerParams", tokens: int, prompts: int) -> "ManagerMeter":
        from gen.flows.doctor import require
        if not args.deciding:
            require("g++", "make", "perl", "verilator")
        from tb.manager.manager_meter import ManagerMeter
        return ManagerMeter(p, build_dir(args), manager_inputs.recorded(args, tokens, prompts))

    return make


def run(args: argparse.Namespace, report: Report, make: "Callable[[ManagerParams, int, int], ManagerMeter]",
        config: "Config") -> int:
    """Measure all variants.

    Raises
    ------
    UserError
        A batch has more requests than the Manager, a length is beyond its limit, the vocabulary is beyond its
        tokens, or a file cannot be read or written.
    """
    from speculoos.bench.manager_report import print_rows, print_summary
    from speculoos.plots import check_target
    p: ManagerParams = config.params      # pyright: ignore[reportAssignmentType]
    _check_options(args)
    machines = manager_inputs.load_machines(args.machine) if args.machine else costs()
    if max(args.batch) > p.requests:
        raise UserError(f"the Manager has {p.requests} requests, a batch of {max(args.batch)} is too many")
    if max(args.d) > 1 << p.draft_width:
        raise UserError(f"the Manager drafts at most {1 << p.draft_width} tokens (draft_width), not {max(args.d)}")
    _check_files(args, report)
    if args.plot:
        check_target(args.plot)
    for option, path in (("--timeline", args.timeline), ("--record", args.record)):
        if path and not path.parent.is_dir():
            raise UserError(f"{option} {path}: there is no folder {path.parent}")
    if args.deciding:
        return _deciding(args, report, make, p)
    report.note("recording the pair and building the Manager")
    meter = make(p, args.tokens, max(args.batch) * args.repeats)
    rows = _measure(args, report, meter, p, machines)
    report.data.update(params=dataclasses.asdict(p), tokens=args.tokens, repeats=args.repeats, prompts=meter.prompts,
                       rows=rows, costs={name: dataclasses.asdict(c) for name, c in machines.items()})
    print_rows(report, rows, machines)
    report.data["summary"] = print_summary(report, rows)
    report.line(f"{meter.compared} tokens equal to the target's own")
    report.data["compared"] = meter.compared
    code = 0
    if args.timeline:
        code = _timeline(args.timeline, report, meter, p, min(max(args.batch), 8))
    if args.plot:
        from speculoos.bench.manager_plots import manager_plot
        code = manager_plot(rows, args.plot, report) or code
    return code


def _check_files(args: argparse.Namespace, report: Report) -> None:
    """Refuse files that would be written over one another, or over what is read."""
    picture = args.timeline and args.timeline.with_suffix(".png")
    check_distinct({"--json": report.json_file, "--plot": args.plot, "--timeline": args.timeline,
                    "the picture of --timeline": picture, "--record": args.record},
                   {f"--{name}": getattr(args, name)
                    for name in ("target", "draft", "tokenizer", "prompts", "traces", "machine")})


def _check_options(args: argparse.Namespace) -> None:
    """Refuse options that what is measured has no use for."""
    useless, what = (TABLE_OPTIONS, "with") if args.deciding else (dict.fromkeys(DECIDING_OPTIONS), "without")
    for name, default in useless.items():
        if getattr(args, name) != default:
            raise UserError(f"--{name.replace('_', '-')} says nothing {what} --deciding")


def _deciding(args: argparse.Namespace, report: Report, make: "Callable[[ManagerParams, int, int], ManagerMeter]",
              p: "ManagerParams") -> int:
    """The share of deciding at the paper's costs, softmax over a whole vocabulary included, measured."""
    from sim_models.golden.manager.manager import Switches
    from sim_models.params.base import ParamError
    from sim_models.params.manager.saddle_manager import SaddleManagerParams
    from sim_models.specdec.costs import PAPER
    from sim_models.specdec.fixed import quantise
    vocabulary, lanes = (getattr(args, name) or default for name, default in DECIDING_OPTIONS.items())
    batch = max(args.batch)
    if vocabulary > 1 << p.token_width:
        raise UserError(f"the Manager's tokens have {p.token_width} bits, a vocabulary of {vocabulary} is too large")
    try:
        for n in lanes:
            SaddleManagerParams(**dataclasses.asdict(p) | {"logit_lanes": n})
    except ParamError as e:
        raise UserError(f"the Manager with softmax unit: {e}") from e
    report.note("recording the pair")
    meter = make(p, args.tokens, batch)
    switches = Switches(tau=quantise(0.3), max_draft=16, start=p.entries, capacity=p.entries + p.requests)
    rows = []
    with report.progress("deciding", len(lanes)) as progress:
        for n in lanes:
            c, open_ = meter.decide(switches, batch, PAPER, vocabulary, n)
            share = c["deciding"] / c["cycles"]
            rows.append({"logit_lanes": n, "share": share, "softmax": c["softmax"] / c["cycles"],
                         "drafter_waits": open_.drafter / c["cycles"], "exposed": open_.machine / c["cycles"],
                         "state": "met" if share < DECIDING_TARGET else "missed", "counters": c})
            progress.step(f"{n} logits a cycle")
    report.table(
        ["logits a cycle", "deciding %", "softmax %", "draft engine waits %", "exposed %",
         f"below {100 * DECIDING_TARGET:.2f}%"],
        [[r["logit_lanes"], *(f"{100 * r[name]:.3f}" for name in ("share", "softmax", "drafter_waits", "exposed")),
          r["state"]] for r in rows],
        f"deciding (softmax, H, tau, pools), share of all cycles at the paper's costs, a step of {PAPER.fc} cycles "
        f"a request near the banks, a pass of {PAPER.weights}; {vocabulary} logits a draft token, full, batch "
        f"{batch}")
    report.line("softmax: logits in the softmax unit; draft engine waits: deciding while no step is computed; "
                "exposed: deciding while neither engine computes")
    report.data["deciding"] = {"costs": dataclasses.asdict(PAPER), "batch": batch, "vocabulary": vocabulary,
                               "target": DECIDING_TARGET, "rows": rows}
    report.line(f"{meter.compared} tokens equal to the target's own")
    report.data["compared"] = meter.compared
    return 0


def _measure(args: argparse.Namespace, report: Report, meter: "ManagerMeter", p: "ManagerParams",
             machines: "dict[str, MappedCosts]") -> list[dict[str, Any]]:
    rows = []
    work = [(name, batch, case) for name, cost in machines.items() for batch in args.batch
            for case in cases(args.d, args.tau, batch, p, cost, args.start)]
    with report.progress("measuring", len(work)) as progress:
        for name, batch, case in work:
            tried = [row(name, batch, case, s, [
                meter.run(s, batch, machines[name], oracle=case.variant == "oracle", first=batch * repeat)[0]
                for repeat in range(args.repeats)]) for s in case.switches]
            rows.append(max(tried, key=lambda r: r["tokens_per_1000"]))
            progress.step(f"{name}, batch {batch}, {case.variant}")
    return rows


def cases(lengths: Sequence[int], taus: Sequence[float], batch: int, p: "ManagerParams", cost: "MappedCosts",
          starts: Sequence[int] | None = None) -> "Iterator[Case]":
    """All variants for a batch on a machine.

    Fixed lengths have the mapping that is best for the batch (PIM-SD, found offline); -d, -p and -s have the FC
    layers on tiles and attention near the banks (SADDLE VI-C); full moves them. A pass takes all that is pending.
    With ``eager`` an idle verifier starts with so many pending tokens, or only when nobody drafts or could. The
    oracle's drafts end before their first wrong token, at the best of all lengths and starts.
    """
    from sim_models.golden.manager.draft_controller import CONFIDENCE
    from sim_models.golden.manager.draft_controller import FIXED as LENGTH_ALONE
    from sim_models.golden.manager.manager import Switches
    from sim_models.specdec.costs import PIM, TILES
    from sim_models.specdec.fixed import ONE, quantise
    offline = PIM if batch < cost.ratio * p.lanes else TILES
    change = dataclasses.replace
    longest = min(16, 1 << p.draft_width)
    base = Switches(max_draft=longest, capacity=p.entries + p.requests, start=p.entries, initial=(TILES, PIM))
    length = change(base, policy=LENGTH_ALONE, eager=False, dynamic=False, initial=(offline, PIM))
    fixed_lengths = [d for d in dict.fromkeys(lengths) if d]
    for d in (0, *fixed_lengths):
        yield Case(f"d = {d}", None, (change(length, max_draft=d),))
    if fixed_lengths:
        middle = fixed_lengths[len(fixed_lengths) // 2]
        yield Case(f"d = {middle} alone", None, (change(length, max_draft=middle, shared=False),))
    for tau in taus:
        full = change(base, tau=quantise(tau))
        fixed = change(full, dynamic=False)
        yield Case("-d", tau, (change(fixed, shared=False, eager=False),))
        yield Case("-p", tau, (change(fixed, eager=False),))
        yield Case("-s", tau, _starts(fixed, batch, starts))
        yield Case("full", tau, _starts(full, batch, starts))
        yield Case("confidence", tau, _starts(change(full, policy=CONFIDENCE), batch, starts))
    low, high = quantise(min(taus)), quantise(max(taus))
    # light load: long drafts
    table = tuple(low + (high - low) * n // 7 for n in range(8))
    yield Case("table", None, _starts(change(base, taus=table), batch, starts))
    foreseen = [s for d in dict.fromkeys((*fixed_lengths, longest))
                for s in _starts(change(base, tau=ONE // 2, max_draft=d), batch, starts)]
    yield Case("oracle", None, (change(length, max_draft=0), *foreseen))


def _starts(switches: "Switches", batch: int, starts: Sequence[int] | None) -> "tuple[Switches, ...]":
    """The same with each start: those given, or 1, parts and multiples of the batch, and all that can be pending."""
    tried = starts or sorted({1, *(max(1, round(part * batch)) for part in STARTS)})
    return switches, *(dataclasses.replace(switches, start=start) for start in tried if start < switches.start)


def row(setting: str, batch: int, case: Case, switches: "Switches", runs: Sequence[dict[str, int]]) -> dict[str, Any]:
    """Runs of one variant as the JSON document has them: sums of their counters, and the spread of their speeds."""
    c = {name: sum(run[name] for run in runs) for name in runs[0]}
    speeds = [1000 * run["emitted"] / run["cycles"] for run in runs]
    return {
        "costs": setting, "batch": batch, "variant": case.variant, "tau": case.tau, "start": switches.start,
        "max_draft": switches.max_draft, "cycles": c["cycles"], "tokens_per_1000": 1000 * c["emitted"] / c["cycles"],
        "slowest": min(speeds), "fastest": max(speeds),
        "draft_length": (c["rows"] - c["served"]) / c["served"],
        "acceptance": c["accepted"] / c["drafted"] if c["drafted"] else 0.0, "wasted": c["drafted"] - c["accepted"],
        "verifying_share": c["verifying"] / c["cycles"],
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
    return _one(text, 1, 4096, "a number of tokens")


def _lengths(text: str) -> list[int]:
    return _list(text, r"[0-9]{1,2}", int, lambda n: n <= 64, "draft lengths from 0 to 64, as 2,4,8")


def _starts_given(text: str) -> list[int]:
    return _list(text, r"[0-9]{1,4}", int, lambda n: 1 <= n <= 4096, "numbers of pending tokens from 1 to 4096")


def _repeats(text: str) -> int:
    return _one(text, 1, 100, "a number of batches")


def _vocabulary(text: str) -> int:
    return _one(text, 2, 1 << 20, "a number of tokens")


def _logit_lanes(text: str) -> list[int]:
    return _list(text, r"[0-9]{1,2}", int, lambda n: n in LOGIT_LANES, "powers of two from 1 to 64, as 8,16")


def _one(text: str, low: int, high: int, wanted: str) -> int:
    if not re.fullmatch(r"[0-9]{1,7}", text, re.ASCII) or not low <= int(text) <= high:
        raise argparse.ArgumentTypeError(f"{wanted} from {low} to {high} was wanted, not {text!r}")
    return int(text)


def _list(text: str, form: str, kind: Callable[[str], Any], good: Callable[[Any], bool], wanted: str) -> list[Any]:
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(form, part, re.ASCII) and good(kind(part)) for part in parts):
        raise argparse.ArgumentTypeError(f"{wanted} were wanted, not {text!r}")
    return list(dict.fromkeys(map(kind, parts)))
