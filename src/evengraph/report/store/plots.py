"""Plots of experiments as inline SVG, which take colours from the page and answer to the pointer.

Horizontal places are percentages, so a plot narrows with the screen and its text keeps its size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from evengraph.report.store.boards import Board, Cell
from evengraph.report.store.canvas import MANY
from evengraph.report.store.statistics import interval
from evengraph.report.svg.charts import percent, ticks
from evengraph.report.svg.markup import Markup, join, tag

ROW = 22  # pixels of a method's line
SHADES = 10  # colours of a map


def dots_panel(board: Board, setup: str, metric: str) -> Markup:
    """Methods of a set-up one below the other: mean, interval, seeds, the paper's mean.

    Many of them stand in order, the best at the top.
    """
    cells = [cell for cell in board.cells if cell.setup == setup and cell.varies is None]
    if len(cells) > MANY:
        cells.sort(key=lambda cell: -cell.mean(metric))
    values = [value for cell in cells for value in cell.values(metric)]
    values += [paper for cell in cells if (paper := cell.published(metric)) is not None]
    best = max(cell.mean(metric) for cell in cells)
    rows = [_dots(cell, metric, best, *_around(values)) for cell in cells]
    return _panel(setup, rows, *_around(values))


def _dots(cell: Cell, metric: str, best: float, low: float, high: float) -> Markup:
    mean, ends, paper = cell.mean(metric), interval(cell.values(metric)), cell.published(metric)
    words = f"{cell.label}: {mean:.1f}"
    if ends:
        words += f", 95% interval {ends[0]:.1f} to {ends[1]:.1f}"
    words += f", {len(cell.rows)} seeds"
    if paper is not None:
        words += f"; paper {paper:.1f}"
    at = _scale(low, high)
    seeds = [
        tag("circle", cx=at(value), cy="50%", r=2.5, class_="seed") for value in cell.values(metric)
    ]
    marks = [tag("line", y1="50%", y2="50%", x2="100%", class_="grid"), *seeds]
    if paper is not None:
        marks.append(tag("line", x1=at(paper), x2=at(paper), y1="15%", y2="85%", class_="paper"))
    if ends:
        line = {"x1": at(ends[0]), "x2": at(ends[1]), "y1": "50%", "y2": "50%"}
        marks.append(tag("line", **line, class_="whisker"))
    marks.append(tag("circle", cx=at(mean), cy="50%", r=5, class_="mean"))
    return _line(cell.label, words, marks, f"{mean:.1f}", mean == best)


def gaps_panel(board: Board, setup: str, metric: str) -> Markup:
    """Variants of a set-up by their difference to the method that was searched over."""
    whole = board.find(setup, board.whole)
    cells = [c for c in board.cells if c.setup == setup and c is not whole and c.varies is None]
    found: list[tuple[Cell, list[float], float | None]] = []
    for cell in cells:
        one = cell.by_seed(metric)
        two = whole.by_seed(metric) if whole is not None else {}
        gaps = [one[seed] - two[seed] for seed in one if seed in two]
        ours, theirs = cell.published(metric), whole.published(metric) if whole else None
        paper = None if ours is None or theirs is None else ours - theirs
        if gaps:
            found.append((cell, gaps, paper))
    values = [0.0, *(end for _, gaps, _ in found for end in interval(gaps) or gaps)]
    values += [paper for _, _, paper in found if paper is not None]
    low, high = _around(values)
    rows = [_gap(cell.label, gaps, paper, low, high) for cell, gaps, paper in found]
    return _panel(setup, rows, low, high)


def _gap(label: str, gaps: Sequence[float], paper: float | None, low: float, high: float) -> Markup:
    mean, ends = fmean(gaps), interval(gaps)
    at = _scale(low, high)
    words = f"{label}: {mean:+.1f} points"
    marks = [tag("line", x1=at(0), x2=at(0), y2="100%", class_="axis")]
    if ends:
        words += f", 95% interval {ends[0]:+.1f} to {ends[1]:+.1f}, {len(gaps)} seeds"
    if paper is not None:
        marks.append(tag("line", x1=at(paper), x2=at(paper), y1="15%", y2="85%", class_="paper"))
        words += f"; paper {paper:+.1f}"
    if ends:
        line = {"x1": at(ends[0]), "x2": at(ends[1]), "y1": "50%", "y2": "50%"}
        marks.append(tag("line", **line, class_="whisker"))
    marks.append(tag("circle", cx=at(mean), cy="50%", r=5, class_="mean"))
    return _line(
        label, words, marks, f"{round(mean, 1) + 0.0:+.1f}", ends is not None and ends[1] < 0
    )


def curve_panel(name: str, cells: Sequence[Cell], metric: str, low: float, high: float) -> Markup:
    """A field along the axis, the mean over seeds upwards, its interval as a band."""
    low, high = _around([low, high])

    def up(value: float) -> float:
        return 100 * (high - value) / (high - low)

    places = [100 * (n + 0.5) / len(cells) for n in range(len(cells))]
    means = [cell.mean(metric) for cell in cells]
    ends = [interval(c.values(metric)) or (c.mean(metric),) * 2 for c in cells]
    top = [f"{x:.2f},{up(e[1]):.2f}" for x, e in zip(places, ends, strict=True)]
    bottom = [f"{x:.2f},{up(e[0]):.2f}" for x, e in zip(places, ends, strict=True)]
    line = " ".join(f"{x:.2f},{up(m):.2f}" for x, m in zip(places, means, strict=True))
    stretched = tag(
        "svg",
        tag("polygon", points=" ".join([*top, *reversed(bottom)]), class_="band"),
        tag("polyline", points=line, class_="curve"),
        viewBox="0 0 100 100",
        preserveAspectRatio="none",
        width="100%",
        height="100%",
    )
    marks = [stretched]
    for tick in ticks(low, high, 4):
        height = percent(up(tick))
        marks.insert(0, tag("line", y1=height, y2=height, x2="100%", class_="grid"))
        marks.append(tag("text", f"{tick:g}", x=-8, y=height, dy=".35em", class_="tick end"))
    for x, cell, mean, end in zip(places, cells, means, ends, strict=True):
        words = f"{name} = {cell.value}: {mean:.1f}, {end[0]:.1f} to {end[1]:.1f}"
        words += f", {len(cell.rows)} seeds"
        dot = tag("circle", tag("title", words), cx=percent(x), cy=percent(up(mean)), r=5)
        marks.append(tag("g", dot, class_="point"))
        text = {"x": percent(x), "y": "100%", "dy": "1.4em"}
        marks.append(tag("text", str(cell.value), **text, class_="tick middle"))
    label = f"{name} from {cells[0].value} to {cells[-1].value}: bAcc {min(means):.1f} to "
    picture = tag("svg", *marks, role="img", aria_label=f"{label}{max(means):.1f}", class_="curves")
    caption = tag("figcaption", tag("h3", name))
    note = tag("p", cells[0].note, class_="note") if cells[0].note else ""
    return tag("figure", caption, tag("div", picture, class_="plot"), note)


def map_panel(found: Mapping[str, Any], title: str) -> Markup:
    """Where the nodes of a run lie; a button shows classes or clusters in colour."""
    clusters = found["clusters"] or [None] * len(found["x"])
    names = found["class_names"]
    dots = []
    parts = (found["x"], found["y"], found["classes"], clusters, found["train"])
    for x, y, own, cluster, train in zip(*parts, strict=True):
        word = names[own] if 0 <= own < len(names) else f"class {own}"
        words = word + ("" if cluster is None else f", cluster {cluster}")
        words += ", labelled" if train else ""
        shades = f"k{own % SHADES}" + ("" if cluster is None else f" m{cluster % SHADES}")
        shades += " train" if train else ""
        place = {"cx": percent(x), "cy": percent(100 - y)}
        dots.append(tag("circle", tag("title", words), **place, r=4 if train else 2, class_=shades))
    words = f"{len(dots):,} nodes laid out by likeness of their embeddings"
    picture = tag("svg", *dots, role="img", aria_label=words, class_="map", data_colours="class")
    buttons = [
        tag("button", f"by {kind}", type="button", data_colours=kind, aria_pressed=pressed)
        for kind, pressed in (("class", "true"), ("cluster", "false"))
        if kind == "class" or found["clusters"]
    ]
    caption = tag("figcaption", tag("h3", title), tag("div", *buttons, class_="switch"))
    note = tag("p", "Ringed nodes had a label in training.", class_="note")
    return tag("figure", caption, picture, note)


def _panel(title: str, rows: Sequence[Markup], low: float, high: float) -> Markup:
    at = _scale(low, high)
    marks = [
        tag("text", f"{tick:g}", x=at(tick), y="1.1em", class_="tick middle")
        for tick in ticks(low, high, 4)
    ]
    scale = tag("svg", *marks, class_="scale", aria_hidden="true")
    axis = tag("li", tag("span"), scale, tag("span"), class_="axis-row", aria_hidden="true")
    caption = tag("figcaption", tag("h3", title))
    return tag("figure", caption, tag("ul", *rows, axis, class_="dots"))


def _line(label: str, words: str, marks: Sequence[Markup], value: str, strong: bool) -> Markup:
    picture = tag(
        "svg", tag("title", words), join(marks), class_="row", role="img", aria_label=words
    )
    return tag(
        "li",
        tag("span", label, class_="name"),
        picture,
        tag("span", value, class_="value"),
        class_="strong" if strong else None,
        data_method=label,
    )


def _around(values: Sequence[float]) -> tuple[float, float]:
    """The range of values with some room on both sides."""
    low, high = min(values), max(values)
    room = max((high - low) * 0.06, 0.5)
    return low - room, high + room


def _scale(low: float, high: float) -> Callable[[float], str]:
    """From a value to a place along the axis."""

    def place(value: float) -> str:
        return percent(100 * (value - low) / (high - low))

    return place
