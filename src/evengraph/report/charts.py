"""Small charts as inline SVG.

Written by hand rather than with matplotlib: its SVG has fixed colours and a fixed size, while
these take their colours from CSS variables, so that one page serves light, dark and print.
Horizontal positions are percentages, so a chart narrows with the screen and its text does not.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from evengraph.report.markup import Attribute, Markup, join, tag

GRID = (0, 25, 50, 75, 100)
COLOURS = 6  # more lines cannot be told apart by colour


def percent(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") + "%"


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Choose round numbers between `low` and `high`, at most about one more than wanted."""
    if not high > low:
        return [low]
    rough = (high - low) / (max(wanted, 1) + 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * unit for unit in (1, 2, 2.5, 5, 10) if power * unit >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{index * step:.10g}") for index in range(first, last + 1)]


def bar(label: str, value: float, largest: float) -> Markup:
    """Draw a horizontal bar."""
    share = 100 * value / largest if largest > 0 else 0.0
    # one node among thousands should still be visible
    width = percent(max(share, 0.8) if share > 0 else 0.0)
    drawn = tag("rect", width=width, class_="bar", y="22%", height="56%", rx=2)
    return _picture(label, tag("line", y2="100%", class_="axis"), drawn)


def dot_row(
    label: str,
    mean: float | None,
    *,
    span: tuple[float, float] | None = None,
    reference: float | None = None,
) -> Markup:
    """Draw values on an axis from 0 to 100: mean, its span, a dashed reference."""

    def x(value: float) -> str:
        return percent(min(max(value, 0.0), 100.0))

    marks = [_upright(f"{at}%", "grid") for at in GRID]
    if reference is not None:
        marks.append(_upright(x(reference), "reference"))
    if span is not None:
        ends = {"x1": x(span[0]), "x2": x(span[1]), "y1": "50%", "y2": "50%"}
        marks.append(tag("line", class_="whisker", **ends))
    if mean is not None:
        marks.append(tag("circle", cx=x(mean), cy="50%", r=5, class_="mean"))
    return _picture(label, *marks)


def scale_row() -> Markup:
    """Label the axis of the dot rows above."""
    look = {"y": "72%", "class_": "tick", "text_anchor": "middle"}
    texts = (tag("text", str(x), x=f"{x}%", **look) for x in GRID)
    return tag("svg", *texts, class_="scale", aria_hidden="true")


def curve(points: Sequence[tuple[float, float]], title: str, kind: str) -> Markup:
    """Draw one line of a `line_plot`; points are percentages from the top left corner."""
    path = "M" + "L".join(f"{10 * x:.1f} {10 * y:.1f}" for x, y in points)
    # a path of one point draws nothing, so it is closed to leave a dot
    return tag("path", tag("title", title), d=path + ("Z" if len(points) == 1 else ""), class_=kind)


def line_plot(
    label: str,
    lines: Sequence[Markup],
    marks: Sequence[Markup],
    *,
    rows: Sequence[tuple[float, str]],
    columns: Sequence[tuple[float, str]],
    axis: str,
) -> Markup:
    """Draw lines from `curve` over labelled axes; marks keep their shape when it is stretched.

    Rows and columns are grid lines and ticks: percent from the top or the left, and text.
    """
    axes = [tag("line", x2="100%", y1="100%", y2="100%", class_="axis")]
    for y, text in rows:
        at = percent(y)
        axes.append(tag("line", x2="100%", y1=at, y2=at, class_="grid"))
        axes.append(tag("text", text, x=-8, y=at, dy=".35em", text_anchor="end", class_="tick"))
    for x, text in columns:
        anchor = "end" if x > 96 else "middle"
        below = {"x": percent(x), "y": "100%", "dy": "1.5em", "text_anchor": anchor}
        axes.append(tag("text", text, class_="tick", **below))
    stretched = tag(
        "svg", *lines, width="100%", height="100%", viewBox="0 0 1000 1000",
        preserveAspectRatio="none",
    )  # fmt: skip
    picture = tag("svg", *axes, stretched, *marks, class_="curves", role="img", aria_label=label)
    name = tag("p", axis, class_="axis-name", aria_hidden="true")
    return join((tag("div", picture, class_="plot"), name))


def swatch(kind: str) -> Markup:
    """Draw the marks of a legend entry."""
    flat: dict[str, Attribute] = {"x1": 0, "x2": 16, "y1": 7, "y2": 7}
    shapes = {
        "bar": tag("rect", x=1, y=2, width=14, height=10, rx=2, class_="bar"),
        "mean": tag("circle", cx=8, cy=7, r=4, class_="mean"),
        "seed": tag("circle", cx=8, cy=7, r=2.5, class_="seed"),
        "whisker": tag("line", **flat, class_="whisker"),
        "reference": _upright(8, "reference", y2=14),
        "curve": tag("line", **flat, class_="curve"),
        "published": _upright(8, "published", y1=2, y2=12),
    }
    marks = join(shapes[name] for name in kind.split())
    return tag("svg", marks, width=16, height=14, class_="swatch", aria_hidden="true")


def _upright(x: Attribute, kind: str, *, y1: Attribute = None, y2: Attribute = "100%") -> Markup:
    return tag("line", x1=x, x2=x, y1=y1, y2=y2, class_=kind)


def _picture(label: str, *marks: Markup) -> Markup:
    # the title is the tooltip, the label is read aloud
    return tag("svg", tag("title", label), *marks, class_="row", role="img", aria_label=label)


Interval = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class ForestRow:
    """One row: what is drawn, and what is written on both sides of it."""

    name: str
    value: str  # beside the row
    text: str  # tooltip, and what a screen reader says
    mean: float
    interval: Interval | None = None
    points: Sequence[float] = ()
    paper: float | None = None  # published mean
    strong: bool = False
    href: str | None = None  # page of the method


def forest_plot(
    title: str, rows: Sequence[ForestRow], *, axis: str, zero: bool = False, wide: bool = False
) -> Markup:
    """Draw rows under a title; `axis` names the quantity, `zero` draws a line there."""
    reached: list[float | None] = [0.0] if zero else []
    for row in rows:
        reached += [row.mean, *(row.interval or ()), *row.points, row.paper]
    limits = padded(reached)
    lines = [_line(row, limits, zero) for row in rows]
    caption = tag("figcaption", tag("h3", title)) if title else Markup("")
    kind = "dots wide" if wide else "dots"
    return tag("figure", caption, tag("ul", *lines, _axis(limits, axis), class_=kind))


def padded(values: Iterable[float | None]) -> Interval:
    """Range of the known values with a margin on both sides."""
    known = [value for value in values if value is not None]
    low, high = min(known, default=0.0), max(known, default=100.0)
    margin = max((high - low) * 0.06, 0.5)
    return low - margin, high + margin


def _line(row: ForestRow, limits: Interval, zero: bool) -> Markup:
    """Single values, a line at zero, the published mean, the interval, the mean."""
    x = _scale(limits)
    marks = [tag("line", y1="50%", y2="50%", x2="100%", class_="grid")]
    if zero:
        marks.append(_upright(x(0), "axis"))
    marks += [tag("circle", cx=x(v), cy="50%", r=2.5, class_="seed") for v in row.points]
    if row.paper is not None:
        marks.append(_upright(x(row.paper), "paper", y1="15%", y2="85%"))
    if row.interval is not None:
        ends = {"x1": x(row.interval[0]), "x2": x(row.interval[1])}
        marks.append(tag("line", **ends, y1="50%", y2="50%", class_="whisker"))
    marks.append(tag("circle", cx=x(row.mean), cy="50%", r=5, class_="mean"))
    name = tag("a", row.name, href=row.href) if row.href else row.name
    label = {"role": "img", "aria_label": row.text}
    return tag(
        "li",
        tag("span", name, class_="name"),
        tag("svg", tag("title", row.text), join(marks), class_="row", **label),
        tag("span", row.value, class_="value"),
        class_="strong" if row.strong else None,
        data_method=row.name,
    )


def _axis(limits: Interval, name: str) -> Markup:
    x = _scale(limits)
    look = {"y": "1.1em", "class_": "tick middle"}
    marks = [tag("text", f"{tick:g}", x=x(tick), **look) for tick in ticks(*limits, 4)]
    below = tag("span", name, class_="axis-title")
    picture = tag("span", tag("svg", *marks, class_="scale", aria_hidden="true"), below)
    return tag("li", tag("span"), picture, tag("span"), class_="axis-row", aria_hidden="true")


def _scale(limits: Interval) -> Callable[[float], str]:
    """Function from a value to its horizontal coordinate."""
    low, high = limits
    return lambda value: percent(100 * (value - low) / (high - low))
