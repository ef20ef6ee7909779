"""Tables of the Manager's figures, and what they say about SADDLE's."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from speculoos.report import Report

if TYPE_CHECKING:
    from sim_models.specdec.costs import MappedCosts

__all__ = ["STEPS", "WAITING", "print_rows", "print_summary", "summary"]

#: counters of cycles in which an engine has nothing to do, and why
WAITING = ("locked", "eager_full", "pool_full", "idle")
#: variant, the one before it, and what SADDLE Fig. 14 has for the ratio (-d: over PIM-SD, 1.22 times slower)
STEPS = (("-d", "best d", 1 / 1.22), ("-p", "-d", 1.52), ("-s", "-p", 1.24), ("full", "-s", 1.13))

_LEGEND = """\
d = 0 to 8: all requests draft, then all are verified; d = 4 alone, -d: each micro-batch by itself; -p: + Shared Pool;
-s: + Eager Pool; full: + dynamic mapping; confidence: full, by each token's own probability; table: full, thresholds
by load; oracle: full, where a draft ends before its first wrong token, at the best of all lengths, or d = 0. Fixed d:
the draft's FC layers where they are best for the batch; -d, -p, -s: on tiles; attention near the banks
start: pending tokens with which an idle verifier starts while requests draft on, the best of those tried; spread:
between the slowest and the fastest batch of prompts; gain: over d = 0; draft: tokens of a request in a pass;
accepted: share of the draft tokens; wasted: draft tokens; verify: share of cycles with a pass; locked to idle:
cycles; deciding: share of cycles in which the Manager works"""


def print_rows(report: Report, rows: Sequence[Mapping[str, Any]], costs: "Mapping[str, MappedCosts]") -> None:
    """A table for each setting."""
    for setting, c in costs.items():
        mine = [r for r in rows if r["costs"] == setting]
        alone = {r["batch"]: r["tokens_per_1000"] for r in mine if r["variant"] == "d = 0"}
        report.table(
            ["batch", "variant", "tau", "start", "tokens/1000", "spread", "gain", "draft", "accepted", "wasted",
             "verify", *WAITING, "deciding"],
            [[r["batch"], r["variant"], "" if r["tau"] is None else r["tau"],
              r["start"] if r["counters"]["eager"] else "", f"{r['tokens_per_1000']:.4f}",
              f"{r['fastest'] - r['slowest']:.4f}",
              r["tokens_per_1000"] / alone[r["batch"]], r["draft_length"], r["acceptance"], r["wasted"],
              r["verifying_share"], *(r[name] for name in WAITING), r["deciding_share"]] for r in mine],
            f"{setting}: draft step {c.fc} a request near the banks or {c.ratio * c.fc} on tiles, and "
            f"{c.draft_attention} a request; pass max({c.weights}, {c.row} a row), and {c.attention} a row near the "
            f"banks or {c.ratio * c.attention} a request on tiles")
        report.line()
    report.line(_LEGEND)
    report.line()


def summary(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each setting and batch: best fixed length, best threshold, oracle, and the ratios of Fig. 14.

    -p, -s and full count at their best threshold, each; ``ratios`` has the steps of :data:`STEPS`.
    """
    out = []
    for setting, batch in dict.fromkeys((r["costs"], r["batch"]) for r in rows):
        mine = [r for r in rows if (r["costs"], r["batch"]) == (setting, batch)]

        def best(names: Sequence[str], mine: Sequence[Mapping[str, Any]] = mine) -> Mapping[str, Any]:
            return max((r for r in mine if r["variant"] in names), key=lambda r: r["tokens_per_1000"])

        fixed = best([r["variant"] for r in mine if r["variant"].startswith("d = ") and "alone" not in r["variant"]])
        found = {name: best([name]) for name in ("-d", "-p", "-s", "full", "confidence", "table", "oracle")}
        found["best d"] = fixed
        speed = {name: r["tokens_per_1000"] for name, r in found.items()}
        out.append({
            "costs": setting, "batch": batch, "fixed": fixed["variant"], "tau": found["full"]["tau"],
            "full_over_fixed": speed["full"] / speed["best d"], "full_over_oracle": speed["full"] / speed["oracle"],
            "confidence_over_full": speed["confidence"] / speed["full"],
            "table_over_full": speed["table"] / speed["full"],
            # what eager drafting would gain by hiding all that is not verification, if passes stayed as they are
            "eager_ceiling": 1 / found["-p"]["verifying_share"],
            "ratios": {name: speed[name] / speed[before] for name, before, _ in STEPS}})
    return out


def print_summary(report: Report, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The summary as a table, with the paper's ordering step by step."""
    found = summary(rows)
    report.table(
        ["costs", "batch", "best d", "best tau", "full/best d", "full/oracle", "confidence/full", "table/full",
         *(f"{name}/{before}" for name, before, _ in STEPS), "1/verify of -p"],
        [*([s["costs"], s["batch"], s["fixed"], s["tau"], s["full_over_fixed"], s["full_over_oracle"],
            s["confidence_over_full"], s["table_over_full"], *s["ratios"].values(), s["eager_ceiling"]]
           for s in found),
         ["SADDLE Fig. 14", "", "", "", "", "", "", "", *(want for _, _, want in STEPS), ""]],
        "best threshold against best fixed length and oracle; steps of SADDLE Fig. 14; what hiding all time in which "
        "-p has no pass would gain, if passes stayed as they are")
    for name, before, want in STEPS:
        kept = [s for s in found if (s["ratios"][name] > 1) == (want > 1)]
        report.line(f"{name} {'above' if want > 1 else 'below'} {before}, as in Fig. 14: {len(kept)} of {len(found)}")
    report.line()
    return found
