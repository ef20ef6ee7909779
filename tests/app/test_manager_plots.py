"""Plots of the Manager's figures: nothing lies over the bars, and a single batch is a line."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from speculoos.bench import manager_plots
from speculoos.report import Report

pytest.importorskip("matplotlib")

VARIANTS = {"d = 0": 10, "d = 1": 14, "d = 2": 17, "d = 4": 12, "-d": 15, "-p": 16, "-s": 17,
            "full": 19, "oracle": 20}


def drawn(batches: list[int], path: Path, monkeypatch: pytest.MonkeyPatch,
          variants: dict[str, int] = VARIANTS) -> Any:
    """The figure of these batches, as it was saved."""
    figures = []
    save = manager_plots.save

    def keep(figure: Any, path: Path, report: Report) -> int:
        figures.append(figure)
        return save(figure, path, report)

    monkeypatch.setattr(manager_plots, "save", keep)
    rows = [{"costs": "paper", "batch": batch, "variant": variant, "tokens_per_1000": figure}
            for batch, (variant, figure) in product(batches, variants.items())]
    assert manager_plots.manager_plot(rows, path, Report()) == 0
    assert path.stat().st_size > 1000
    return figures[0]


@pytest.mark.parametrize("batches", [[1], [1, 4, 16]])
def test_legends_lie_beside_the_axes(batches: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No legend covers a part of any axes, and each lies within the figure."""
    figure = drawn(batches, tmp_path / "plot.png", monkeypatch)
    assert len(figure.axes) == 2
    for ax, other in product(figure.axes, repeat=2):
        legend = ax.get_legend().get_window_extent()
        assert not legend.overlaps(other.get_window_extent())
        assert figure.bbox.x0 <= legend.x0
        assert legend.x1 <= figure.bbox.x1


def test_a_single_batch_is_drawn_over_the_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line through the gain of every fixed length."""
    left = drawn([4], tmp_path / "plot.png", monkeypatch).axes[0]
    line = next(line for line in left.lines if line.get_label() == "batch 4")
    assert list(line.get_xdata()) == [1, 2, 4]
    assert list(line.get_ydata()) == [1.4, 1.7, 1.2]
    assert left.get_xlabel() == "draft length d"


def test_several_batches_have_a_line_for_each_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A point for each batch on each line."""
    left = drawn([1, 4, 16], tmp_path / "plot.png", monkeypatch).axes[0]
    lines = {line.get_label(): list(line.get_ydata()) for line in left.lines if line.get_label().startswith("d =")}
    assert lines == {"d = 1": [1.4] * 3, "d = 2": [1.7] * 3, "d = 4": [1.2] * 3}


@pytest.mark.parametrize("batches", [[4], [1, 4]])
def test_a_plot_without_fixed_lengths_has_its_bars(batches: list[int], tmp_path: Path,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``--d 0`` gives: five bars a batch, and no line for the best fixed length."""
    variants = {name: figure for name, figure in VARIANTS.items() if name == "d = 0" or not name.startswith("d = ")}
    left, right = drawn(batches, tmp_path / "plot.png", monkeypatch, variants).axes
    assert left.get_legend() is None
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["-d", "-p", "-s", "full", "oracle"]
    assert len(right.patches) == 5 * len(batches)
