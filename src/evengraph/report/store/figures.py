"""Figures of experiments, by matplotlib: SVG for pages and print, PNG for slides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evengraph.report.store.boards import Board, Cell
from evengraph.report.store.canvas import (
    COLOURS,
    MANY,
    METRIC,
    OURS,
    STYLE,
    Draw,
    best_first,
    colour_of,
    grid,
    pyplot,
    styled,
)
from evengraph.report.store.cost import cost_figure
from evengraph.report.store.statistics import interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def figures(board: Board) -> Iterator[tuple[str, Figure]]:
    """Every figure of a board, with a name for its file."""
    draw: dict[str, Draw] = {
        "comparison": methods_figure,
        "ablation": ablation_figure,
        "sensitivity": curves_figure,
        "recall": recall_figure,
        "confusion": confusion_figure,
        "cost": cost_figure,
        "map": map_figure,
    }
    more = ("recall", "confusion", "cost", "map") if board.draws == "comparison" else ()
    for name in (board.draws, *more):
        found = draw[name](board)
        if found is not None:
            yield f"{board.name}-{name}", found


def save(figure: Figure, path: Path) -> list[Path]:
    """Write a figure as SVG and PNG."""
    plt = pyplot()
    written = []
    for kind, options in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": 160})):
        goal = path.with_name(f"{path.name}.{kind}")
        with plt.rc_context(STYLE):
            figure.savefig(goal, **options)
        written.append(goal)
    plt.close(figure)
    return written


@styled
def methods_figure(board: Board) -> Figure | None:
    """Every method in every set-up, with its interval; the paper's mean as a dash."""
    if len(board.labels) > MANY:
        return _lying(board)
    setups, labels = board.setups, board.labels
    figure, places = grid(len(setups), width=2.6, height=2.4)
    for place, setup in zip(places, setups, strict=True):
        for position, label in enumerate(labels):
            cell = board.find(setup, label)
            if cell is None:
                continue
            _dot(place, position, cell, colour_of(board, label))
            paper = cell.published(METRIC)
            if paper is not None:
                place.plot([position - 0.4, position + 0.4], [paper, paper], color="black", lw=1.2)
        place.set_title(setup, fontsize=9)
        place.set_xticks(range(len(labels)), labels, rotation=60, ha="right", fontsize=7)
        place.grid(visible=False, axis="x")
    places[0].set_ylabel("balanced accuracy, %")
    figure.suptitle(f"{board.title}: mean and 95% interval; dash: the paper's mean", fontsize=10)
    return figure


def _lying(board: Board) -> Figure:
    """The same for many methods: one below the other, those that do best over all at the top."""
    setups, labels = board.setups, best_first(board)
    figure, places = grid(len(setups), width=2.6, height=0.15 * len(labels) + 0.5)
    for place, setup in zip(places, setups, strict=True):
        for position, label in enumerate(labels):
            cell = board.find(setup, label)
            if cell is None:
                continue
            _dot(place, position, cell, OURS if label == "Uni-GNN" else COLOURS[6], lying=True)
            paper = cell.published(METRIC)
            if paper is not None:
                place.plot([paper, paper], [position - 0.4, position + 0.4], color="black", lw=1.2)
        place.set_title(setup, fontsize=9)
        shown = labels if _leftmost(place) else [""] * len(labels)
        place.set_yticks(range(len(labels)), shown, fontsize=7)
        place.set_ylim(len(labels) - 0.5, -0.5)
        place.grid(visible=True, axis="both")
        place.set_xlabel("balanced accuracy, %", fontsize=7)
    words = "mean and 95% interval, best over all at the top"
    if any(cell.published(METRIC) is not None for cell in board.cells):
        words += "; bar: as published"
    figure.suptitle(f"{board.title}: {words}", fontsize=10)
    return figure


@styled
def ablation_figure(board: Board) -> Figure | None:
    """How far each variant falls below the whole method, with the interval of the difference."""
    setups = board.setups
    whole = board.whole
    labels = [label for label in board.labels if label != whole]
    figure, places = grid(len(setups), width=2.6, height=3.0)
    for place, setup in zip(places, setups, strict=True):
        full = board.find(setup, whole)
        for position, label in enumerate(labels):
            cell = board.find(setup, label)
            if cell is None or full is None:
                continue
            one, two = cell.by_seed(METRIC), full.by_seed(METRIC)
            gaps = [one[seed] - two[seed] for seed in one if seed in two]
            if not gaps:
                continue
            low, high = interval(gaps) or (gaps[0], gaps[0])
            mean = float(np.mean(gaps))
            place.barh(position, mean, color=COLOURS[0] if high > 0 else OURS, height=0.7)
            place.plot([low, high], [position, position], color="black", lw=1)
            ours, theirs = cell.published(METRIC), full.published(METRIC)
            if ours is not None and theirs is not None:
                paper = [ours - theirs] * 2
                place.plot(paper, [position - 0.35, position + 0.35], color="black", lw=2)
        place.axvline(0, color="black", lw=0.8)
        place.set_title(setup, fontsize=9)
        place.set_yticks(range(len(labels)), labels if _leftmost(place) else [""] * len(labels))
        place.invert_yaxis()
        place.grid(visible=True, axis="x")
        place.grid(visible=False, axis="y")
        place.set_xlabel("points of bAcc")
    figure.suptitle(
        f"{board.title}: difference to {whole} on the same seeds, 95% interval", fontsize=10
    )
    return figure


@styled
def curves_figure(board: Board) -> Figure | None:
    """A curve for each field, with a band of its 95% interval."""
    curves = board.curves()
    if not curves:
        return None
    figure, places = grid(len(curves), width=2.6, height=2.4)
    for place, (name, cells) in zip(places, curves.items(), strict=True):
        values = range(len(cells))
        means = [cell.mean(METRIC) for cell in cells]
        ends = [
            interval(cell.values(METRIC)) or (m, m) for cell, m in zip(cells, means, strict=True)
        ]
        place.fill_between(
            values, [e[0] for e in ends], [e[1] for e in ends], color=OURS, alpha=0.2
        )
        place.plot(values, means, color=OURS, marker="o", ms=4)
        place.set_xticks(list(values), [str(cell.value) for cell in cells], fontsize=7)
        place.set_xlabel(name)
    ends = [place.get_ylim() for place in places]
    for place in places:
        place.set_ylim(min(end[0] for end in ends), max(end[1] for end in ends))
        if _leftmost(place):
            place.set_ylabel("balanced accuracy, %")
    figure.suptitle(f"{board.title}, {board.setups[0]}: mean and 95% interval", fontsize=10)
    return figure


@styled
def recall_figure(board: Board) -> Figure | None:
    """Recall of each class, from the largest in training to the smallest."""
    setups = board.setups
    figure, places = grid(len(setups), width=2.6, height=2.2)
    third = "LTE4G" if len(board.labels) <= MANY else best_first(board)[0]
    shown = [label for label in dict.fromkeys(("GCN", third, "Uni-GNN")) if label in board.labels]
    for place, setup in zip(places, setups, strict=True):
        for label in shown or board.labels:
            cell = board.find(setup, label)
            if cell is None or "per_class" not in cell.rows[0].outcome:
                continue
            recall = np.mean([_head_to_tail(row.outcome) for row in cell.rows], axis=0)
            colour = colour_of(board, label)
            place.plot(range(len(recall)), recall, marker="o", ms=3, color=colour, label=label)
        place.set_title(setup, fontsize=9)
        place.set_xticks([])
        place.set_xlabel("classes, largest to smallest", fontsize=7)
    places[0].set_ylabel("recall, %")
    lines = places[0].get_lines()
    if lines:
        places[0].legend(
            lines, [str(line.get_label()) for line in lines], fontsize=7, frameon=False
        )
    figure.suptitle(f"{board.title}: recall from head to tail", fontsize=10)
    return figure


def _head_to_tail(outcome: Any) -> list[float]:
    """Recalls in the order of the training classes' sizes, the largest first."""
    recall = outcome["per_class"]["recall"]
    counts = outcome.get("class_counts") or [0] * len(recall)
    order = sorted(range(len(recall)), key=lambda c: -counts[c])
    return [recall[c] for c in order]


@styled
def confusion_figure(board: Board) -> Figure | None:
    """Where the nodes of each class go, GCN beside ours, in the first set-up."""
    setup = board.setups[0]
    cells = [board.find(setup, label) for label in ("GCN", "Uni-GNN")]
    cells = [c for c in cells if c is not None and "confusion_matrix" in c.rows[0].outcome]
    if not cells:
        return None
    figure, places = grid(len(cells), width=3.2, height=3.2)
    for place, cell in zip(places, cells, strict=True):
        assert cell is not None
        total = np.sum([row.outcome["confusion_matrix"] for row in cell.rows], axis=0)
        share = 100 * total / np.maximum(total.sum(axis=1, keepdims=True), 1)
        place.imshow(share, cmap="Oranges", vmin=0, vmax=100)
        for (row, column), value in np.ndenumerate(share):
            colour = "white" if value > 60 else "black"
            text = f"{value:.0f}"
            place.text(column, row, text, ha="center", va="center", fontsize=7, color=colour)
        place.set_title(cell.label, fontsize=9)
        place.set_xlabel("predicted class")
        place.grid(visible=False)
    places[0].set_ylabel("true class")
    figure.suptitle(f"{setup}: percent of each class, all seeds", fontsize=10)
    return figure


@styled
def map_figure(board: Board) -> Figure | None:
    """Where the nodes of one run lie, by class and by cluster."""
    if board.map is None:
        return None
    found = board.map
    kinds = [("class", found["classes"]), ("cluster", found["clusters"])]
    kinds = [(name, values) for name, values in kinds if values is not None]
    figure, places = grid(len(kinds), width=4.2, height=4.0)
    for place, (name, values) in zip(places, kinds, strict=True):
        many = max(values) + 1
        colours = "tab10" if many <= 10 else "turbo"
        # neighbouring numbers get colours that lie far apart
        shuffled = [value * 0.618034 % 1 for value in values] if many > 10 else values
        dots = place.scatter(found["x"], found["y"], c=shuffled, cmap=colours, s=4, lw=0)
        if name == "class" and many <= 10:
            words = found["class_names"] or [f"class {n}" for n in range(many)]
            handles = dots.legend_elements(num=None)[0]  # type: ignore[arg-type]
            shown = [words[n] for n in sorted(set(values)) if 0 <= n < len(words)]
            if len(handles) == len(shown):
                place.legend(handles, shown, fontsize=6, frameon=False, loc="best")
        place.set_title(f"by {name}", fontsize=9)
        place.set_xticks([])
        place.set_yticks([])
        place.grid(visible=False)
    figure.suptitle(f"{board.setups[0]}: embeddings of one run of Uni-GNN, t-SNE", fontsize=10)
    return figure


def _leftmost(place: Axes) -> bool:
    spec = place.get_subplotspec()
    return spec is None or spec.is_first_col()


def _dot(place: Axes, position: int, cell: Cell, colour: str, *, lying: bool = False) -> None:
    """Dots, not bars: an axis that does not start at zero would make bars lie."""
    ends, mean = interval(cell.values(METRIC)), cell.mean(METRIC)
    if ends is not None:
        line = [ends, [position] * 2] if lying else [[position] * 2, ends]
        place.plot(*line, color=colour, lw=2)
    dot = (mean, position) if lying else (position, mean)
    place.plot(*dot, "o", color=colour, ms=4 if lying else 6, zorder=3)
