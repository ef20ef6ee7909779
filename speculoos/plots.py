"""Plots of measured figures. The same figures give the same bytes; matplotlib is optional."""

import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gen.errors import UserError
from sim_models.hints import pip_command
from speculoos.report import Report, write_atomic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["HINT", "baselines_plot", "check_target", "new_figure", "panels_of", "passes_plot", "save",
           "utilisation_plot"]

HINT = f"no plot was drawn, since matplotlib is not installed: {pip_command('matplotlib')}"
MOST_PANELS = 12
FORMATS = (".png", ".svg", ".pdf")

#: colours that differ in brightness too (Okabe and Ito)
BLUE, ORANGE, GREEN, GREY = "#0072b2", "#e69f00", "#009e73", "#666666"
#: vector is broad and pale, since auto often lies on it
STYLES: dict[str, Any] = {
    "auto": {"color": BLUE, "linestyle": "-", "marker": "o", "zorder": 4},
    "systolic": {"color": ORANGE, "linestyle": "--", "marker": "s", "zorder": 3},
    "vector": {"color": GREEN, "linestyle": "-", "linewidth": 5, "alpha": 0.4, "zorder": 2,
               "solid_capstyle": "round"},
}
_SETTINGS: Any = {
    "font.size": 9, "axes.titlesize": 9.5, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": "#dddddd", "grid.linewidth": 0.6, "axes.axisbelow": True,
    "legend.frameon": False, "lines.linewidth": 1.4, "lines.markersize": 3, "savefig.dpi": 130,
    "svg.hashsalt": "speculoos", "figure.constrained_layout.use": True,
}


def check_target(path: Path) -> None:
    """Refuse a file that a plot cannot be written to, before any work is done.

    Raises
    ------
    UserError
        Another format than PNG, SVG or PDF, or a folder that is not there or not writable.
    """
    if path.suffix.lower() not in FORMATS:
        raise UserError(f"--plot needs a file that ends in {', '.join(FORMATS)}, not {path}")
    if not path.parent.is_dir():
        raise UserError(f"--plot {path}: there is no folder {path.parent}")
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise UserError(f"--plot {path} cannot be written")


def utilisation_plot(rows: Sequence[Mapping[str, Any]], macs: int, path: Path, report: Report) -> int:
    """Share of MACs used over the size that varies most: a panel for each pair of other sizes, a line for each mode.

    Parameters
    ----------
    rows:
        As of ``speculoos.bench.engine.row``.
    macs:
        MACs a cycle that the engine has.

    Returns
    -------
    int
        0 when the plot was written, 1 when matplotlib is missing.
    """
    over, panels = panels_of(rows)
    width, height = min(len(panels), 3), -(-len(panels) // 3)
    figure = new_figure(report, 7.2 if width == 1 else 9.6, 0.9 + (2.6 if width == 1 else 2.3) * height)
    if figure is None:
        return 1
    grid = figure.subplots(height, width, squeeze=False, sharey=True)
    for ax in grid.flat[len(panels):]:
        ax.set_visible(False)
    for ax, (fixed, points) in zip(grid.flat, panels.items(), strict=False):
        for mode in dict.fromkeys(r["mode"] for r in points):
            line = sorted((r for r in points if r["mode"] == mode), key=lambda r: r[over])
            x = [r[over] for r in line]
            ax.plot(x, [100 * r["utilisation_back_to_back"] for r in line], label=f"{mode}, back to back",
                    **STYLES[mode])
            if mode == "auto":
                ax.plot(x, [100 * r["utilisation"] for r in line], label="auto, alone", color=GREY, linewidth=1,
                        linestyle=":", marker=".", zorder=5)
        ax.set(title=fixed, ylim=(0, 105),
               xlabel={"m": "M, rows of activations", "k": "K, inner size", "n": "N, output channels"}[over])
        ax.xaxis.get_major_locator().set_params(integer=True)
    for ax in grid[:, 0]:
        ax.set_ylabel(f"MACs used, % of {macs}")
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4,
                  title="cycles measured in the RTL, operands on chip")
    return save(figure, path, report)


def panels_of(rows: Sequence[Mapping[str, Any]]) -> tuple[str, dict[str, list[Mapping[str, Any]]]]:
    """The size that varies most, and the rows by the values of the two others.

    Raises
    ------
    UserError
        There are more such pairs than a plot can show.
    """
    over = max("mkn", key=lambda name: len({r[name] for r in rows}))
    panels: dict[str, list[Mapping[str, Any]]] = {}
    for r in rows:
        panels.setdefault(", ".join(f"{o.upper()} = {r[o]}" for o in "mkn" if o != over), []).append(r)
    if len(panels) > MOST_PANELS:
        raise UserError(f"--plot shows one size over at most {MOST_PANELS} pairs of the two others, "
                        f"not {len(panels)}")
    return over, panels


def baselines_plot(passes: Sequence[Mapping[str, Any]], path: Path, report: Report) -> int:
    """Cycles, utilisation and weight reads of whole passes over M, a line for each engine.

    Parameters
    ----------
    passes:
        As of ``speculoos.bench.baselines``.

    Returns
    -------
    int
        0 when the plot was written, 1 when matplotlib is missing.
    """
    figure = new_figure(report, 9.6, 3.3)
    if figure is None:
        return 1
    axes = figure.subplots(1, 3)
    for name in dict.fromkeys(r["engine"] for r in passes):
        mine = [r for r in passes if r["engine"] == name]
        x = [r["m"] for r in mine]
        style = STYLES[name.removesuffix("-only")]
        for ax, y in zip(axes, ([r["cycles"] / 1000 for r in mine], [100 * r["utilisation"] for r in mine],
                                [r["weight_reads"] / 1000 for r in mine]), strict=True):
            ax.plot(x, y, label=name, **style)
    for ax, title, label in zip(axes, ("Cycles a pass (measured)", "Utilisation (measured)",
                                       "Weight words read on chip (computed)"),
                                ("thousand cycles", "MACs used, %", "thousand words"), strict=True):
        ax.set(title=title, xlabel="M (rows: 1 decoding, 9 verification)", ylabel=label)
        ax.set_ylim(0, 105 if "%" in label else None)
        ax.xaxis.get_major_locator().set_params(integer=True)
    axes[0].legend(loc="upper left")
    first = passes[0]
    figure.suptitle(f"{first['model']}: all {first['matrices']} weight matrices of a pass; no memory traffic beyond "
                    f"the engine", fontsize=10)
    return save(figure, path, report)


def passes_plot(passes: Sequence[Mapping[str, Any]], path: Path, report: Report) -> int:
    """Bars: utilisation in each phase of each model, a bar for each engine.

    Parameters
    ----------
    passes:
        With ``model``, ``phase``, ``m``, ``engine``, ``utilisation`` and ``cycles``.

    Returns
    -------
    int
        0 when the plot was written, 1 when matplotlib is missing.
    """
    figure = new_figure(report, 9.0, 3.3)
    if figure is None:
        return 1
    models = list(dict.fromkeys(r["model"] for r in passes))
    engines = list(dict.fromkeys(r["engine"] for r in passes))
    axes = figure.subplots(1, len(models), squeeze=False)[0]
    for ax, model in zip(axes, models, strict=True):
        mine = [r for r in passes if r["model"] == model]
        phases = list(dict.fromkeys((r["phase"], r["m"]) for r in mine))
        for place, engine in enumerate(engines):
            bars = [r for r in mine if r["engine"] == engine]
            x = [phases.index((r["phase"], r["m"])) + (place - (len(engines) - 1) / 2) * 0.27 for r in bars]
            drawn = ax.bar(x, [100 * r["utilisation"] for r in bars], 0.25, label=engine,
                           color=STYLES[engine.removesuffix("-only")]["color"])
            ax.bar_label(drawn, [_thousands(r["cycles"]) for r in bars], fontsize=6.5, padding=1)
        ax.set_xticks(range(len(phases)), [f"{phase}\nM = {m}" for phase, m in phases])
        ax.set(title=model, ylim=(0, 115), ylabel="MACs used, %" if model == models[0] else "")
        ax.grid(axis="x", visible=False)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(engines),
                  title="weight matrices with real activations; cycles above the bars")
    return save(figure, path, report)


def save(figure: "Figure", path: Path, report: Report) -> int:
    """Write a figure, whole or not at all; returns 0."""
    buffer = io.BytesIO()
    kind = path.suffix.lower()[1:]
    metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
    import matplotlib
    with matplotlib.rc_context(_SETTINGS):
        figure.savefig(buffer, format=kind, metadata=metadata)
    write_atomic(path, buffer.getvalue())
    report.line(f"wrote {path}")
    return 0


def new_figure(report: Report, width: float, height: float) -> "Figure | None":
    """A figure of this size in inches; None, and a hint, without matplotlib."""
    import logging
    logging.getLogger("matplotlib").setLevel(logging.ERROR)     # it can do without a folder for its cache
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        report.line(HINT)
        return None
    matplotlib.rcParams.update(_SETTINGS)
    return Figure(figsize=(width, height))


def _thousands(cycles: int) -> str:
    return str(cycles) if cycles < 10_000 else f"{cycles / 1000:.0f}k"
