"""Forest plots: one row per method, with its mean, interval and single values on a shared axis."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from evengraph.report.svg.charts import percent, ticks
from evengraph.report.svg.markup import Markup, join, tag

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

    def ends(self) -> list[float]:
        """Everything that the axis must reach."""
        paper = [] if self.paper is None else [self.paper]
        return [self.mean, *(self.interval or ()), *self.points, *paper]


def forest_plot(
    title: str, rows: Sequence[ForestRow], *, axis: str, zero: bool = False, wide: bool = False
) -> Markup:
    """Draw rows under a title; `axis` names the quantity, `zero` draws a line there."""
    limits = padded([*(end for row in rows for end in row.ends()), *([0.0] if zero else [])])
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
        marks.append(tag("line", x1=x(0), x2=x(0), y2="100%", class_="axis"))
    marks += [tag("circle", cx=x(v), cy="50%", r=2.5, class_="seed") for v in row.points]
    if row.paper is not None:
        at = {"x1": x(row.paper), "x2": x(row.paper)}
        marks.append(tag("line", **at, y1="15%", y2="85%", class_="paper"))
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
    marks = [
        tag("text", f"{tick:g}", x=x(tick), y="1.1em", class_="tick middle")
        for tick in ticks(*limits, 4)
    ]
    below = tag("span", name, class_="axis-title")
    picture = tag("span", tag("svg", *marks, class_="scale", aria_hidden="true"), below)
    return tag("li", tag("span"), picture, tag("span"), class_="axis-row", aria_hidden="true")


def _scale(limits: Interval) -> Callable[[float], str]:
    """Function from a value to its horizontal coordinate."""
    low, high = limits
    return lambda value: percent(100 * (value - low) / (high - low))
