"""Small charts as inline SVG.

Written by hand rather than drawn with matplotlib: its SVG carries fixed colours and a fixed size,
while these take their colours from CSS variables, so that one page serves light, dark and print.
Horizontal places are percentages, so a chart narrows with the screen and its text keeps its size.
"""

import math
from collections.abc import Sequence

from evengraph.report.run.values import ClassRow, average, decimals, whole
from evengraph.report.svg.markup import Markup, join, tag

GRID = (0, 25, 50, 75, 100)


def percent(value: float) -> str:
    """Write a place along an axis as SVG wants it."""
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


def thin(values: Sequence[float | None], limit: int = 400) -> list[tuple[int, float]]:
    """Keep at most about `limit` points of a long series, and every extreme the eye would see.

    The series is cut into buckets and each gives its lowest and highest point, since a mean or
    every n-th point would hide the spikes. Both ends stay. Undefined points are skipped.
    """
    points = [(index, value) for index, value in enumerate(values) if value is not None]
    if len(points) <= limit:
        return points
    buckets = max((limit - 2) // 2, 1)
    kept = {points[0], points[-1]}
    for bucket in range(buckets):
        piece = points[len(points) * bucket // buckets : len(points) * (bucket + 1) // buckets]
        kept.add(min(piece, key=lambda point: point[1]))
        kept.add(max(piece, key=lambda point: point[1]))
    return sorted(kept)


def count_bar(row: ClassRow, largest: float) -> Markup:
    """Draw one bar of the class histogram."""
    share = 100 * (row.count or 0.0) / largest if largest > 0 else 0.0
    # a class with a single node among thousands should still be seen
    width = max(share, 0.8) if share > 0 else 0.0
    label = f"{row.name}: {whole(row.count)} training nodes"
    bar = tag("rect", y="22%", width=percent(width), height="56%", rx=2, class_="bar")
    return _picture(label, tag("line", y2="100%", class_="axis"), bar)


def recall_row(row: ClassRow, reference: float | None) -> Markup:
    """Draw the recall of one class: a dot a seed, their range, and their mean.

    Args:
        row: The class.
        reference: Balanced accuracy, marked so that one sees who is below the average.
    """
    found = [min(max(value, 0.0), 100.0) for value in row.recalls if value is not None]
    lines = [tag("line", x1=f"{x}%", x2=f"{x}%", y2="100%", class_="grid") for x in GRID]
    if reference is not None:
        place = percent(min(max(reference, 0.0), 100.0))
        lines.append(tag("line", x1=place, x2=place, y2="100%", class_="reference"))
    label = f"{row.name}: recall undefined"
    if found:
        low, high, mean = min(found), max(found), average(found) or 0.0
        label = f"{row.name}: mean recall {decimals(average(row.recalls))}"
        if len(found) > 1:
            label += f", from {decimals(low)} to {decimals(high)}"
            ends = {"x1": percent(low), "x2": percent(high), "y1": "50%", "y2": "50%"}
            lines.append(tag("line", class_="whisker", **ends))
            lines += [tag("circle", cx=percent(x), cy="50%", r=2.5, class_="seed") for x in found]
        lines.append(tag("circle", cx=percent(mean), cy="50%", r=5, class_="mean"))
        if (f1 := average(row.f1s)) is not None:
            label += f"; mean F1 {decimals(f1)}"
    return _picture(label, *lines)


def scale_row() -> Markup:
    """Write the figures along the recall axis, shared by all rows below it."""
    texts = (
        tag("text", str(x), x=f"{x}%", y="72%", class_="tick", text_anchor="middle") for x in GRID
    )
    return tag("svg", *texts, class_="scale", aria_hidden="true")


def strip(
    values: Sequence[float | None],
    mean: float | None,
    paper: tuple[float | None, float | None],
    label: str,
) -> Markup:
    """Draw the seeds of one metric along a line, with the published figure behind them.

    Args:
        values: One figure a seed.
        mean: Their mean.
        paper: Published mean and deviation, either of them `None` where unknown.
        label: What a screen reader says.
    """
    seeds = [value for value in values if value is not None]
    middle, width = paper[0], paper[1] or 0.0
    ends = [] if middle is None else [middle - width, middle + width]
    every = [*seeds, *ends, *([] if mean is None else [mean])]
    # a single dot on a scale of its own making says nothing
    if len(seeds) < 2 and middle is None:
        return Markup("")
    # at least two points wide, so that a hair's breadth between seeds does not look like a gulf
    pad = max((max(every) - min(every)) * 0.12, (2.0 - (max(every) - min(every))) / 2)
    low, high = min(every) - pad, max(every) + pad

    def place(value: float) -> float:
        return 100 * (value - low) / (high - low)

    drawn = [tag("line", y1=14, x2="100%", y2=14, class_="axis")]
    if middle is not None:
        begin, span = place(middle - width), 200 * width / (high - low)
        drawn.append(
            tag("rect", x=percent(begin), y=4, width=percent(span), height=20, class_="band")
        )
        drawn.append(_upright(percent(place(middle)), "paper"))
    drawn += [tag("circle", cx=percent(place(x)), cy=14, r=4, class_="seed") for x in seeds]
    if mean is not None:
        drawn.append(_upright(percent(place(mean)), "mean"))
    drawn += [
        tag("text", f"{x:g}", x=percent(place(x)), y=40, class_="tick", text_anchor="middle")
        for x in ticks(low, high, 3)
        if 3 < place(x) < 97
    ]
    return _picture(label, *drawn, kind="strip")


def swatch(kind: str) -> Markup:
    """Draw the small sample of a mark that stands in a legend."""
    shapes = {
        "bar": tag("rect", x=1, y=2, width=14, height=10, rx=2, class_="bar"),
        "mean": tag("circle", cx=8, cy=7, r=4, class_="mean"),
        "seed": tag("circle", cx=8, cy=7, r=2.5, class_="seed"),
        "whisker": tag("line", x1=0, x2=16, y1=7, y2=7, class_="whisker"),
        "reference": tag("line", x1=8, x2=8, y2=14, class_="reference"),
        "curve": tag("line", x1=0, x2=16, y1=7, y2=7, class_="curve"),
        "best": tag("circle", cx=8, cy=7, r=4, class_="best"),
        "tick": tag("line", x1=8, x2=8, y1=1, y2=13, class_="mean"),
        "paper": tag("line", x1=8, x2=8, y1=1, y2=13, class_="paper"),
        "band": tag("rect", x=0, y=1, width=16, height=12, class_="band"),
    }
    drawn = join(shapes[name] for name in kind.split())
    return tag("svg", drawn, width=16, height=14, class_="swatch", aria_hidden="true")


def _upright(place: str, kind: str) -> Markup:
    return tag("line", x1=place, x2=place, y1=4, y2=24, class_=kind)


def _picture(label: str, *drawn: Markup, kind: str = "row") -> Markup:
    # the title gives the tooltip, the label what is read aloud
    return tag("svg", tag("title", label), *drawn, class_=kind, role="img", aria_label=label)
