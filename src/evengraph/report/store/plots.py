"""Interactive plots of experiments as inline SVG, coloured by the style sheet of the page.

Horizontal coordinates are percentages, so a plot narrows with the screen and its text keeps its
size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from evengraph.report.store.canvas import MANY
from evengraph.report.store.comparisons import variant_gaps
from evengraph.report.store.experiment_results import Cell, Estimate, ExperimentResults
from evengraph.report.store.tables import difference_text, interval_text
from evengraph.report.svg.charts import curve, line_plot, percent, ticks
from evengraph.report.svg.markup import Markup, join, tag

SHADES = 10  # colours of a t-SNE plot

Interval = tuple[float, float]


def dots_panel(results: ExperimentResults, setting: str, metric: str) -> Markup:
    """Draw the methods of a setting, one per row: mean, interval, seeds, published mean.

    Many methods are sorted, the best first.
    """
    rows = [cell.estimate(metric) for cell in results.table_cells(setting)]
    if len(rows) > MANY:
        rows.sort(key=lambda row: -row.mean)
    best = max(row.mean for row in rows)
    limits = _padded(value for row in rows for value in (*row.values, row.paper))
    lines = [_line(row, limits, strong=row.mean == best) for row in rows]
    return _panel(setting, lines, limits)


def gaps_panel(results: ExperimentResults, setting: str, metric: str) -> Markup:
    """Draw the differences of the variants from the full method in a setting, one per row."""
    rows = variant_gaps(results, setting, metric)
    limits = _padded([0.0, *(value for row in rows for value in (*row.band, row.paper))])
    worse = [row.interval is not None and row.interval[1] < 0 for row in rows]
    lines = [_line(row, limits, strong=w, gaps=True) for row, w in zip(rows, worse, strict=True)]
    return _panel(setting, lines, limits)


def _line(row: Estimate, limits: Interval, *, strong: bool, gaps: bool = False) -> Markup:
    """Draw a row: single seeds or a line at zero, the published mean, the interval, the mean."""
    mean, interval, scale = row.mean, row.interval, _scale(limits)
    number = difference_text if gaps else "{:.1f}".format
    text = f"{row.label}: {number(mean)}{' points' if gaps else ''}"
    if gaps:
        marks = [tag("line", x1=scale(0), x2=scale(0), y2="100%", class_="axis")]
    else:
        marks = [tag("line", y1="50%", y2="50%", x2="100%", class_="grid")]
        marks += [tag("circle", cx=scale(v), cy="50%", r=2.5, class_="seed") for v in row.values]
    if row.paper is not None:
        x = {"x1": scale(row.paper), "x2": scale(row.paper)}
        marks.append(tag("line", **x, y1="15%", y2="85%", class_="paper"))
    if interval is not None:
        x = {"x1": scale(interval[0]), "x2": scale(interval[1])}
        marks.append(tag("line", **x, y1="50%", y2="50%", class_="whisker"))
        text += f", 95% interval {interval_text(interval, sign=gaps)}"
    marks.append(tag("circle", cx=scale(mean), cy="50%", r=5, class_="mean"))
    text += f", {len(row.values)} seeds"
    text += "" if row.paper is None else f"; paper {number(row.paper)}"
    return tag(
        "li",
        tag("span", row.label, class_="name"),
        tag("svg", tag("title", text), join(marks), class_="row", role="img", aria_label=text),
        tag("span", number(mean), class_="value"),
        class_="strong" if strong else None,
        data_method=row.label,
    )


def curve_panel(name: str, cells: Sequence[Cell], metric: str, limits: Interval) -> Markup:
    """Draw the mean over seeds along the values of a parameter, its interval as a band."""
    low, high = _padded(limits)

    def height(value: float) -> float:
        return 100 * (high - value) / (high - low)

    estimates = [cell.estimate(metric) for cell in cells]
    bands = [estimate.band for estimate in estimates]
    means = [(100 * (n + 0.5) / len(cells), height(e.mean)) for n, e in enumerate(estimates)]
    xs = [x for x, _ in means]
    edge = [*zip(xs, (top for _, top in bands), strict=True)]
    edge += reversed([*zip(xs, (bottom for bottom, _ in bands), strict=True)])
    points = " ".join(f"{10 * x:.1f},{10 * height(value):.1f}" for x, value in edge)
    dots = []
    for (x, y), cell, estimate in zip(means, cells, estimates, strict=True):
        text = f"{name} = {cell.value}: {estimate.mean:.1f}, {interval_text(estimate.band)}, "
        text += f"{len(cell.rows)} seeds"
        dot = tag("circle", tag("title", text), cx=percent(x), cy=percent(y), r=5)
        dots.append(tag("g", dot, class_="point"))
    label = f"{name} from {cells[0].value} to {cells[-1].value}: bAcc "
    label += " to ".join(f"{end(e.mean for e in estimates):.1f}" for end in (min, max))
    picture = line_plot(
        label,
        [tag("polygon", points=points, class_="band"), curve(means, label, "curve")],
        dots,
        rows=[(height(tick), f"{tick:g}") for tick in ticks(low, high, 4)],
        columns=[(x, str(cell.value)) for x, cell in zip(xs, cells, strict=True)],
        axis="",
    )
    note = tag("p", cells[0].note, class_="note") if cells[0].note else ""
    return tag("figure", tag("figcaption", tag("h3", name)), picture, note)


def tsne_panel(tsne: Mapping[str, Any], title: str) -> Markup:
    """Draw the t-SNE of a run; buttons switch between classes and clusters as colours."""
    clusters = tsne["clusters"] or [None] * len(tsne["x"])
    names = tsne["class_names"]
    dots = []
    columns = (tsne["x"], tsne["y"], tsne["classes"], clusters, tsne["train"])
    for x, y, label, cluster, train in zip(*columns, strict=True):
        text = names[label] if 0 <= label < len(names) else f"class {label}"
        shades = f"k{label % SHADES}"
        if cluster is not None:
            text += f", cluster {cluster}"
            shades += f" m{cluster % SHADES}"
        if train:
            text += ", labelled"
            shades += " train"
        centre = {"cx": percent(x), "cy": percent(100 - y)}
        dots.append(tag("circle", tag("title", text), **centre, r=4 if train else 2, class_=shades))
    text = f"t-SNE of the embeddings of {len(dots):,} nodes"
    picture = tag("svg", *dots, role="img", aria_label=text, class_="map", data_colours="class")
    buttons = [
        tag("button", f"by {group}", type="button", data_colours=group, aria_pressed=pressed)
        for group, pressed in (("class", "true"), ("cluster", "false"))
        if group == "class" or tsne["clusters"]
    ]
    caption = tag("figcaption", tag("h3", title), tag("div", *buttons, class_="switch"))
    note = tag("p", "Training nodes have a ring.", class_="note")
    return tag("figure", caption, picture, note)


def _panel(title: str, rows: Sequence[Markup], limits: Interval) -> Markup:
    scale = _scale(limits)
    marks = [
        tag("text", f"{tick:g}", x=scale(tick), y="1.1em", class_="tick middle")
        for tick in ticks(*limits, 4)
    ]
    picture = tag("svg", *marks, class_="scale", aria_hidden="true")
    axis = tag("li", tag("span"), picture, tag("span"), class_="axis-row", aria_hidden="true")
    caption = tag("figcaption", tag("h3", title))
    return tag("figure", caption, tag("ul", *rows, axis, class_="dots"))


def _padded(values: Iterable[float | None]) -> Interval:
    """Range of the known values with a margin on both sides."""
    known = [value for value in values if value is not None]
    low, high = min(known), max(known)
    margin = max((high - low) * 0.06, 0.5)
    return low - margin, high + margin


def _scale(limits: Interval) -> Callable[[float], str]:
    """Function from a value to its horizontal coordinate."""
    low, high = limits
    return lambda value: percent(100 * (value - low) / (high - low))
