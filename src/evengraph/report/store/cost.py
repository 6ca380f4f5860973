"""Figure of accuracy against cost: seconds and memory per run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from textwrap import fill
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


Offset = tuple[float, float, Any]  # points to the right, points up, alignment
OFFSETS: tuple[Offset, ...] = (
    *((5, 3, "left"), (-5, 3, "right"), (0, 7, "center"), (0, -12, "center")),
    *((5, -9, "left"), (-5, -9, "right"), (12, 12, "left"), (12, -18, "left")),
)
LISTED = 6  # methods named as missing


def cost_figure(results: ExperimentResults) -> Figure | None:
    """Draw balanced accuracy against seconds and memory per run, mean over all settings.

    The seconds of runs that shared a GPU are divided by their number. Of many methods only the
    Pareto front, the baseline and the highlighted method are named.
    """
    figure, panels = panel_grid(2, width=4.2, height=3.4)
    titles = f"amortized seconds per run{_device_note(results)}", "GiB of memory per run"
    for axes, quantity, title in zip(panels, ("seconds", "memory"), titles, strict=True):
        points = _costs(results, quantity)
        names = _draw_costs(axes, results, points)
        axes.set_xlabel(title + _missing_note(results, points), fontsize=8)
        axes.grid(visible=True, axis="both")
        axes.set_visible(bool(axes.collections))
        if points:
            _place_names(figure, axes, names, points, hide=len(points) > MANY)
    panels[0].set_ylabel("mean balanced accuracy, %")
    note = "; named: no cheaper method is better" if len(results.labels) > MANY else ""
    figure.suptitle(f"{results.title}: accuracy and cost, mean over settings{note}")
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


def _missing_note(results: ExperimentResults, points: Mapping[str, Any]) -> str:
    """Say which methods a panel lacks, because no run of theirs measured it."""
    missing = [label for label in results.labels if label not in points]
    if not missing:
        return ""
    shown = ", ".join(missing[:LISTED]) + (", …" if len(missing) > LISTED else "")
    return "\n" + fill(f"not measured ({len(missing)}): {shown}", 52)


def _place_names(
    figure: Figure,
    axes: Axes,
    names: Sequence[Annotation],
    points: Mapping[str, tuple[float, float]],
    *,
    hide: bool,
) -> None:
    """Put each name where it meets no point and no earlier name; else hide it, if asked to."""
    figure.draw_without_rendering()
    dots = axes.transData.transform(list(points.values()))
    for name in names:
        offsets = [offset for offset in OFFSETS if _is_free(name, offset, axes, dots, names)]
        _move(name, (offsets or OFFSETS)[0])
        name.set_visible(bool(offsets) or not hide)


def _move(name: Annotation, offset: Offset) -> None:
    """Move a name to an offset of its point."""
    x, y, align = offset
    name.set_position((x, y))
    name.set_horizontalalignment(align)


def _is_free(
    name: Annotation, offset: Offset, axes: Axes, dots: Any, names: Sequence[Annotation]
) -> bool:
    """Whether a name at an offset is inside the panel and meets no dot and no earlier name."""
    _move(name, offset)
    box, panel = name.get_window_extent().padded(3), axes.get_window_extent()
    earlier = [other for other in names[: names.index(name)] if other.get_visible()]
    inside = panel.x0 <= box.x0 and box.x1 <= panel.x1 + 30 and panel.y0 <= box.y0
    met = any(box.overlaps(other.get_window_extent()) for other in earlier)
    return inside and not met and not any(box.contains(*dot) for dot in dots)


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
    """Make the x axis logarithmic, with plain numbers as ticks, three at least."""
    from matplotlib.ticker import FixedLocator

    axes.set_xscale("log")
    axes.margins(x=0.25)  # room for the names beside the points
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(FixedLocator(_ticks(low, high)))
    axes.xaxis.set_minor_locator(FixedLocator([]))
    axes.xaxis.set_major_formatter("{x:g}")


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers of a logarithmic axis: the coarsest steps of which three are within."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), tuple(n / 10 for n in range(10, 100))):
        ticks = [step * 10**power for power in powers for step in steps]
        within = [tick for tick in ticks if low <= tick <= high]
        if len(within) >= 3:
            break
    return within
