"""Figure of accuracy against cost: seconds and memory per run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from evengraph.report.store.canvas import (
    COLOURS,
    HIGHLIGHT,
    MANY,
    METRIC,
    colour_of,
    panel_grid,
)
from evengraph.report.store.experiment_results import ExperimentResults

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation


def cost_figure(results: ExperimentResults) -> Figure | None:
    """Draw balanced accuracy against seconds and memory per run, mean over all settings.

    The seconds of runs that shared a GPU are divided by their number. Of many methods only the
    Pareto front, the baseline and the highlighted method are named.
    """
    figure, panels = panel_grid(2, width=3.6, height=2.8)
    titles = f"amortized seconds per run{_device_note(results)}", "GiB of memory per run"
    for axes, quantity, title in zip(panels, ("seconds", "memory"), titles, strict=True):
        points = _costs(results, quantity)
        names = _draw_costs(axes, results, points)
        if len(points) > MANY:
            _hide_overlapping(figure, names)
        axes.set_xlabel(title)
        axes.grid(visible=True, axis="both")
        axes.set_visible(bool(axes.collections))
    panels[0].set_ylabel("mean balanced accuracy, %")
    figure.suptitle(f"{results.title}: accuracy and cost, mean over settings")
    return figure


def _draw_costs(
    axes: Axes, results: ExperimentResults, points: Mapping[str, tuple[float, float]]
) -> list[Annotation]:
    many = len(points) > MANY
    named, order = set(points), list(points)
    if many:
        named = {*_pareto_front(points), results.baseline, results.highlight}
        order.sort(key=lambda label: -points[label][1])
    names = []
    for label in order:
        other = COLOURS[6 if label in named else 0] if many else colour_of(results, label)
        colour = HIGHLIGHT if label == results.highlight else other
        axes.scatter(*points[label], color=colour, s=36 if label in named else 14, zorder=3)
        if label in named:
            offset: Any = {"xytext": (4, 3), "textcoords": "offset points"}
            names.append(axes.annotate(label, points[label], **offset, fontsize=7))
    _log_axis(axes)
    return names


def _device_note(results: ExperimentResults) -> str:
    """Warn about runs on different kinds of device, whose seconds cannot be compared."""
    rows = [row for cell in results.cells for row in cell.rows]
    devices = {str(row.environment.get("device", "")).partition(" ")[0] for row in rows}
    return " (some on CPU, some on GPU)" if len(devices) > 1 else ""


def _hide_overlapping(figure: Figure, names: Sequence[Annotation]) -> None:
    """Hide each name that would overlap an earlier one."""
    figure.draw_without_rendering()
    boxes: list[Any] = []
    for name in names:
        box = name.get_window_extent()
        if any(box.overlaps(other) for other in boxes):
            name.set_visible(False)
        else:
            boxes.append(box)


def _costs(results: ExperimentResults, quantity: str) -> dict[str, tuple[float, float]]:
    """Mean cost and mean score of each method with known costs."""
    points = {}
    for label in results.labels:
        cells = [cell for cell in results.cells if cell.label == label]
        costs = [cost for cell in cells for cost in getattr(cell.numbers, quantity)]
        scores = [score for cell in cells for score in cell.values(METRIC)]
        known = [pair for pair in zip(costs, scores, strict=True) if pair[0]]
        if known:
            points[label] = fmean(cost for cost, _ in known), fmean(score for _, score in known)
    return points


def _pareto_front(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """Methods that no cheaper one equals."""
    best, front = -math.inf, []
    for label, (_, score) in sorted(points.items(), key=lambda item: (item[1][0], -item[1][1])):
        if score > best:
            best = score
            front.append(label)
    return front


def _log_axis(axes: Axes) -> None:
    """Make the x axis logarithmic, with plain numbers as ticks."""
    from matplotlib.ticker import LogLocator

    axes.set_xscale("log")
    low, high = axes.get_xlim()
    steps = (1, 2, 5) if high < 1000 * low else (1,)
    axes.xaxis.set_major_locator(LogLocator(subs=steps))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.margins(x=0.2)  # room for the names beside the points
