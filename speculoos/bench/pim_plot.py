"""The plot of ``speculoos bench pim``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from speculoos.plots import BLUE, GREEN, GREY, ORANGE, new_figure, save
from speculoos.report import Report

__all__ = ["pim_plot"]


def pim_plot(rows: Sequence[Mapping[str, Any]], path: Path, report: Report) -> int:
    """Share of the bank limit over the words of a product, and cycles of attention over its length.

    Parameters
    ----------
    rows:
        As of ``speculoos.bench.pim``.

    Returns
    -------
    int
        0 when the plot was written, 1 when matplotlib is missing.
    """
    figure = new_figure(report, 9.6, 3.6)
    if figure is None:
        return 1
    left, right = figure.subplots(1, 2)
    for opened, colour in ((2, BLUE), (1, ORANGE)):
        mine = [r for r in rows if r["open_rows"] == opened]
        if not mine:
            continue
        name = "two open rows" if opened == 2 else "one open row"
        products = [r for r in mine if r["what"] == "gemv"]
        for figure_name, label, marker in (("share", "in a row", "o"), ("share_alone", "alone", "x")):
            left.plot([r["words"] for r in products], [100 * r[figure_name] for r in products], linestyle="",
                      marker=marker, color=colour, label=f"{name}, {label}")
        heads = [r for r in mine if r["what"] == "attention"]
        right.plot([r["n"] for r in heads], [r["cycles"] for r in heads], marker="o", color=colour, label=name)
        if opened == 2:
            right.plot([r["n"] for r in heads], [r["bank_cycles"] for r in heads], color=GREY, linestyle=":",
                       label="what the banks need")
    left.axhline(90, color=GREEN, linewidth=1, linestyle="--", label="target for K, N >= 512")
    left.set(xscale="log", xlabel="words of each bank", ylabel="bytes a cycle, % of the bank limit", ylim=(0, 105),
             title="GEMV of the models' matrices")
    right.set(xlabel="positions", ylabel="cycles", title="Attention of one head, alone", ylim=(0, None))
    for ax in (left, right):
        ax.legend(fontsize=7)
    return save(figure, path, report)
