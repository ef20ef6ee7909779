"""``speculoos bench manager``: the RTL Manager on the shipped pair's own tokens and probabilities.

The engines around it are behavioural, with stated costs in cycles. *Bandwidth-bound*: a draft step and a pass take
the time to read the weights, however many rows. *Compute-bound*: a pass takes a time for each row when that is more.
Every text is compared with that of the target alone; a difference ends the command with exit code 1.
"""

import argparse
import dataclasses
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from gen.errors import UserError
from gen.report import Report, write_atomic

if TYPE_CHECKING:
    from sim_models.golden.manager import Switches
    from sim_models.params.manager import ManagerParams
    from sim_models.specdec.simulation import Roofline

__all__ = ["Intervals", "Meter", "MeterFactory", "add_arguments", "chrome_trace", "row", "run"]

Intervals = list[tuple[str, int, int, int]]
"""Kind ("draft", "verify"), micro-batch, begin, end."""

#: cycles: (draft at least, draft a request, pass at least, pass a row)
COSTS = {"bandwidth-bound": (2000, 1, 20_000, 10), "compute-bound": (2000, 50, 20_000, 1000)}
FIXED = (2, 4, 8)
WAITING = ("locked", "eager_full", "pool_full", "idle")
#: the ratio for which the share of deciding has a target: still far shorter than the paper's, whose passes take
#: milliseconds
PAPER_LIKE, DECIDING_TARGET = (20_000, 10, 200_000, 100), 0.0083


class Meter(Protocol):
    """What runs batches; :mod:`tb.manager.manager_meter` provides it."""

    compared: int

    def run(self, switches: "Switches", batch: int, costs: "Roofline", *, oracle: bool = False
            ) -> tuple[dict[str, int], Intervals]:
        """Counters of the Manager, and when the engines worked."""
        ...


MeterFactory = Callable[["ManagerParams", int, int], Meter]
"""From the Manager, the tokens of a request and the number of different prompts."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What is asked of the Manager beside the design."""
    group = parser.add_argument_group("for the manager")
    group.add_argument("--batch", type=_batches, metavar="LIST", default=[1, 4, 16],
                       help="batch sizes, as 1,4,16 (default)")
    group.add_argument("--tau", type=_taus, metavar="LIST", default=[0.05, 0.3],
                       help="thresholds of H, as 0.05,0.3 (default)")
    group.add_argument("--tokens", type=_tokens, metavar="N", default=24, help="tokens of each request (default: 24)")
    group.add_argument("--timeline", type=Path, metavar="FILE.json",
                       help="also write one run as a Chrome trace, and FILE.png")


def run(args: argparse.Namespace, report: Report, make: MeterFactory, p: "ManagerParams") -> int:
    """Measure all variants.

    Raises
    ------
    UserError
        A batch has more requests than the Manager, or a file cannot be written.
    """
    from gen.plots import check_target
    if max(args.batch) > p.requests:
        raise UserError(f"the Manager has {p.requests} requests, a batch of {max(args.batch)} is too many")
    if args.plot:
        check_target(args.plot)
    if args.timeline and not args.timeline.parent.is_dir():
        raise UserError(f"--timeline {args.timeline}: there is no folder {args.timeline.parent}")
    report.note("building the Manager and recording the pair")
    meter = make(p, args.tokens, min(max(args.batch), 16))
    rows = _measure(args, report, meter)
    report.data.update(params=dataclasses.asdict(p), costs=COSTS, tokens=args.tokens, rows=rows)
    for setting, costs in COSTS.items():
        report.table(
            ["batch", "variant", "tau", "tokens/1000", "draft", "accepted", "wasted", *WAITING, "deciding"],
            [[r["batch"], r["variant"], "" if r["tau"] is None else r["tau"], r["tokens_per_1000"], r["draft_length"],
              r["acceptance"], r["wasted"], *(r[name] for name in WAITING), r["deciding_share"]]
             for r in rows if r["costs"] == setting],
            f"{setting}: draft step max({costs[0]}, {costs[1]} a request) cycles, "
            f"pass max({costs[2]}, {costs[3]} a row)")
        report.line()
    report.line("d = 0 to 8: all requests draft, then all are verified; d = 4 alone, -d: each micro-batch by itself; "
                "-p: + Shared Pool; -s: + Eager Pool; full: + dynamic mapping (costs do not depend on it)")
    report.line("draft: tokens of a request in a pass; accepted: share of the draft tokens; wasted: draft tokens; "
                "locked to idle: cycles; deciding: share of cycles in which the Manager works")
    _deciding(report, meter, max(args.batch))
    report.line(f"{meter.compared} tokens equal to the target's own")
    report.data["compared"] = meter.compared
    code = 0
    if args.timeline:
        code = _timeline(args.timeline, report, meter, min(max(args.batch), 8))
    if args.plot:
        from gen.manager_plots import manager_plot
        code = manager_plot(rows, args.plot, report) or code
    return code


def _deciding(report: Report, meter: Meter, batch: int) -> None:
    """The share of deciding where engines take long."""
    from sim_models.golden.manager import Switches
    from sim_models.specdec.simulation import Roofline
    counters, _ = meter.run(Switches(start=8), batch, Roofline(*PAPER_LIKE))
    share = counters["deciding"] / counters["cycles"]
    state = "met" if share < DECIDING_TARGET else "missed"
    report.line(f"deciding at a step of {PAPER_LIKE[0]} and a pass of {PAPER_LIKE[2]} cycles, full, batch {batch}: "
                f"{100 * share:.2f}% (target below {100 * DECIDING_TARGET:.2f}%: {state})")
    report.data["deciding"] = {"costs": PAPER_LIKE, "batch": batch, "share": share, "target": DECIDING_TARGET,
                               "state": state}


def _measure(args: argparse.Namespace, report: Report, meter: Meter) -> list[dict[str, Any]]:
    from sim_models.specdec.simulation import Roofline
    rows = []
    cases = list(_cases(args.tau))
    with report.progress("measuring", len(cases) * len(args.batch) * len(COSTS)) as progress:
        for setting, costs in COSTS.items():
            for batch in args.batch:
                for name, tau, switches in cases:
                    counters, _ = meter.run(switches, batch, Roofline(*costs), oracle=name == "oracle")
                    rows.append(row(setting, batch, name, tau, counters))
                    progress.step(f"{setting}, batch {batch}, {name}")
    return rows


def _cases(taus: Sequence[float]) -> list[tuple[str, float | None, "Switches"]]:
    """Variants: name, tau, settings."""
    from sim_models.golden.manager import Switches
    from sim_models.specdec.fixed import ONE, quantise
    batch = Switches(policy=0, eager=False, dynamic=False)
    cases: list[tuple[str, float | None, Switches]] = [
        (f"d = {d}", None, dataclasses.replace(batch, max_draft=d)) for d in (0, *FIXED)]
    cases.append(("d = 4 alone", None, dataclasses.replace(batch, max_draft=4, shared=False)))
    for tau in taus:
        full = Switches(tau=quantise(tau), max_draft=16, start=8)
        cases += [("-d", tau, dataclasses.replace(full, shared=False, eager=False, dynamic=False)),
                  ("-p", tau, dataclasses.replace(full, eager=False, dynamic=False)),
                  ("-s", tau, dataclasses.replace(full, dynamic=False)), ("full", tau, full)]
    return [*cases, ("oracle", None, Switches(tau=ONE // 2, max_draft=16, start=8))]


def row(setting: str, batch: int, variant: str, tau: float | None, c: dict[str, int]) -> dict[str, Any]:
    """One run as the JSON document has it."""
    return {
        "costs": setting, "batch": batch, "variant": variant, "tau": tau, "cycles": c["cycles"],
        "tokens_per_1000": 1000 * c["emitted"] / c["cycles"], "draft_length": (c["rows"] - c["served"]) / c["served"],
        "acceptance": c["accepted"] / c["drafted"] if c["drafted"] else 0.0, "wasted": c["drafted"] - c["accepted"],
        **{name: c[name] for name in WAITING}, "deciding_share": c["deciding"] / c["cycles"], "counters": c}


def _timeline(path: Path, report: Report, meter: Meter, batch: int) -> int:
    from gen.manager_plots import timeline_plot
    from sim_models.golden.manager import Switches
    from sim_models.specdec.simulation import Roofline
    _, intervals = meter.run(Switches(start=8, engines=2), batch, Roofline(*COSTS["bandwidth-bound"]))
    events = chrome_trace(intervals)
    write_atomic(path, json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}))
    report.line(f"wrote {path}")
    return timeline_plot(events, path.with_suffix(".png"), report)


def chrome_trace(intervals: Intervals) -> list[dict[str, Any]]:
    """Events of a Chrome trace, a cycle as a microsecond.

    A thread for each micro-batch (``draft``, and ``eager`` where the step began during a pass), one for the verify
    engine, one for the Shared Pool (``locked`` during a pass), and one for ``idle``: neither engine works.
    """
    passes = [(begin, end) for kind, _, begin, end in intervals if kind == "verify"]
    lanes = sorted({lane for kind, lane, _, _ in intervals if kind == "draft"})
    names = {0: "verify", 1: "shared pool", 2: "both engines", **{3 + k: f"micro-batch {k}" for k in lanes}}
    events: list[dict[str, Any]] = [{"name": "thread_name", "ph": "M", "pid": 0, "tid": tid, "args": {"name": name}}
                                    for tid, name in names.items()]

    def add(name: str, tid: int, begin: int, end: int) -> None:
        events.append({"name": name, "ph": "X", "pid": 0, "tid": tid, "ts": begin, "dur": end - begin})

    reached = 0
    for kind, lane, begin, end in sorted(intervals, key=lambda i: i[2]):
        if begin > reached:
            add("idle", 2, reached, begin)
        reached = max(reached, end)
        if kind == "verify":
            add("verify", 0, begin, end)
            add("locked", 1, begin, end)
        else:
            add("eager" if any(a <= begin < b for a, b in passes) else "draft", 3 + lane, begin, end)
    return events


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
