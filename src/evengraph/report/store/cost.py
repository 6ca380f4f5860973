"""What accuracy costs: seconds and memory of methods against their score."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from evengraph.report.store.boards import Board
from evengraph.report.store.canvas import COLOURS, MANY, METRIC, OURS, colour_of, grid, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation


@styled
def cost_figure(board: Board) -> Figure | None:
    """Seconds and memory of a run against balanced accuracy, over all set-ups.

    Runs that shared a card share its seconds, too. Of many methods those are named that nothing
    beats at a lower cost, and whose names do not lie upon better ones.
    """
    figure, places = grid(2, width=3.6, height=2.8)
    for place, name, words in zip(
        places,
        ("seconds", "memory"),
        (f"seconds a run, shared{_mixed(board)}", "GiB that a run added"),
        strict=True,
    ):
        points = _points(board, name)
        many = len(points) > MANY
        named = {*_front(points), "GCN", "Uni-GNN"} if many else set(points)
        names = []
        order = sorted(points, key=lambda label: -points[label][1]) if many else list(points)
        for label in order:
            point = points[label]
            other = COLOURS[6] if many else colour_of(board, label)
            colour = OURS if label == "Uni-GNN" else other if label in named else COLOURS[0]
            place.scatter(*point, color=colour, s=36 if label in named else 14, zorder=3)
            if label in named:
                names.append(
                    place.annotate(
                        label, point, xytext=(4, 3), textcoords="offset points", fontsize=7
                    )
                )
        _log_axis(place)
        if many:
            _keep_apart(figure, names)
        place.set_xlabel(words)
        place.grid(visible=True, axis="both")
        place.set_visible(bool(place.collections))
    places[0].set_ylabel("mean balanced accuracy, %")
    figure.suptitle(f"{board.title}: what accuracy costs, mean over set-ups", fontsize=10)
    return figure


def _mixed(board: Board) -> str:
    """A warning where runs had different devices: their seconds do not compare."""
    rows = [row for cell in board.cells for row in cell.rows]
    devices = {str(row.environment.get("device", "")).partition(" ")[0] for row in rows}
    return "; some on a CPU, some on a card" if len(devices) > 1 else ""


def _keep_apart(figure: Figure, names: Sequence[Annotation]) -> None:
    """Take away a name that would lie upon one before it."""
    figure.draw_without_rendering()
    kept: list[Any] = []
    for name in names:
        box = name.get_window_extent()
        if any(box.overlaps(other) for other in kept):
            name.set_visible(False)
        else:
            kept.append(box)


def _points(board: Board, name: str) -> dict[str, tuple[float, float]]:
    """Mean cost and mean score of each method that has them."""
    points = {}
    for label in board.labels:
        rows = [row for cell in board.cells if cell.label == label for row in cell.rows]
        pairs = [(_cost(row.outcome, name), row.outcome["metrics"][METRIC]) for row in rows]
        known = [(cost, score) for cost, score in pairs if cost]
        if known:
            costs, scores = zip(*known, strict=True)
            points[label] = (fmean(costs), fmean(scores))
    return points


def _front(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """Those that nothing cheaper is as good as."""
    best, front = -math.inf, []
    for label, (_, score) in sorted(points.items(), key=lambda item: (item[1][0], -item[1][1])):
        if score > best:
            best = score
            front.append(label)
    return front


def _log_axis(place: Axes) -> None:
    """Powers of ten and what lies between them, as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    place.set_xscale("log")
    least, most = place.get_xlim()
    subs = (1, 2, 5) if most < 1000 * least else (1,)
    place.xaxis.set_major_locator(LogLocator(subs=subs))
    place.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    place.xaxis.set_minor_formatter(NullFormatter())
    place.margins(x=0.2)  # room for the names beside the dots


def _cost(outcome: Any, name: str) -> float | None:
    cost: float | None = outcome.get(name)
    if cost is None or name != "seconds":
        return cost
    return cost / float(outcome.get("together", 1))
