"""Plots of the Manager's figures, in the shapes of SADDLE Fig. 3, 11 and 14."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from speculoos.plots import new_figure, save
from speculoos.report import Report

__all__ = ["manager_plot", "timeline_plot"]

_COLOURS = {"draft": "#56b4e9", "eager": "#009e73", "verify": "#e69f00", "locked": "#cc79a7", "idle": "#999999"}
_BARS = ("-d", "-p", "-s", "full", "oracle")


def manager_plot(rows: Sequence[Mapping[str, Any]], path: Path, report: Report) -> int:
    """Throughput over that of the target alone: fixed lengths, and the variants at their best tau.

    Fixed lengths are drawn over the batch; with a single batch, throughput is drawn over the length.

    Returns
    -------
    int
        0 when the plot was written, 1 when matplotlib is missing.
    """
    drawn = new_figure(report, 9.6, 5.6)
    if drawn is None:
        return 1
    settings = list(dict.fromkeys(r["costs"] for r in rows))
    axes = drawn.subplots(len(settings), 2, squeeze=False)
    for (left, right), setting in zip(axes, settings, strict=True):
        mine = [r for r in rows if r["costs"] == setting]
        batches = list(dict.fromkeys(r["batch"] for r in mine))
        alone = {r["batch"]: r["tokens_per_1000"] for r in mine if r["variant"] == "d = 0"}

        def gain(variant: str, batch: int, mine: Any = mine, alone: Any = alone) -> float:
            return max(r["tokens_per_1000"] for r in mine
                       if (r["variant"], r["batch"]) == (variant, batch)) / alone[batch]

        fixed = [v for v in dict.fromkeys(r["variant"] for r in mine)
                 if v.startswith("d = ") and v != "d = 0" and "alone" not in v]
        if len(batches) == 1:                                # a line for each length would be a single dot
            left.plot([int(v.removeprefix("d = ")) for v in fixed], [gain(v, batches[0]) for v in fixed], marker="o",
                      label=f"batch {batches[0]}")
        else:
            for variant in fixed:
                left.plot(range(len(batches)), [gain(variant, b) for b in batches], marker="o", label=variant)
        for n, variant in enumerate(_BARS):
            right.bar([k + 0.16 * (n - 2) for k in range(len(batches))], [gain(variant, b) for b in batches], 0.15,
                      label=variant)
        if fixed:
            right.hlines([max(gain(v, b) for v in fixed) for b in batches], [k - 0.42 for k in range(len(batches))],
                         [k + 0.42 for k in range(len(batches))], "k", linewidth=1.2, label="best fixed d > 0")
        for ax, title in ((left, "fixed draft length (as Fig. 3)"), (right, "variants, best tau (as Fig. 14)")):
            ax.axhline(1, color="#333333", linewidth=0.8)
            over_length = ax is left and len(batches) == 1
            if over_length:
                ax.xaxis.get_major_locator().set_params(integer=True)
            else:
                ax.set_xticks(range(len(batches)), [str(b) for b in batches])
            ax.set(title=f"{setting}: {title}", xlabel="draft length d" if over_length else "batch",
                   ylabel="throughput, target alone = 1")
            if fixed or ax is right:
                ax.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    return save(drawn, path, report)


def timeline_plot(events: Sequence[Mapping[str, Any]], path: Path, report: Report) -> int:
    """The events of a Chrome trace as bars, a line for each thread.

    Returns
    -------
    int
        0 when the plot was written, 1 when matplotlib is missing.
    """
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    drawn = new_figure(report, 9.6, 0.9 + 0.4 * len(names))
    if drawn is None:
        return 1
    ax = drawn.subplots()
    tids = sorted(names)
    for kind, colour in _COLOURS.items():
        for tid in tids:
            bars = [(e["ts"] / 1000, e["dur"] / 1000) for e in events
                    if e["ph"] == "X" and e["name"] == kind and e["tid"] == tid]
            if bars:
                ax.broken_barh(bars, (tids.index(tid) - 0.4, 0.8), facecolors=colour, edgecolors="white",
                               linewidth=0.3)
        ax.bar(0, 0, color=colour, label=kind)
    ax.set_yticks(range(len(tids)), [names[t] for t in tids])
    ax.set(xlabel="thousand cycles")
    drawn.legend(loc="outside upper center", ncols=len(_COLOURS))
    return save(drawn, path, report)
