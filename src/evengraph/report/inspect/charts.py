"""Figures of an inspection: class bars, degrees, how far labels reach."""

from collections.abc import Sequence
from dataclasses import dataclass

from evengraph.report.run.values import decimals, whole
from evengraph.report.svg.charts import GRID, percent
from evengraph.report.svg.markup import Attribute, Markup, tag

# more lines than this cannot be told apart by colour
COLOURS = 6


@dataclass(frozen=True, kw_only=True)
class ClassLook:
    """One class as the page shows it.

    Args:
        name: What people call it.
        labelled: Its labelled nodes.
        hidden: Nodes of it whose label is known but set aside.
        rare: Whether it has fewer than half the labelled nodes of the largest class.
        own: Share of its neighbours that are of it, too, in percent.
        near: Share of the unlabelled nodes within 1, 2, ... hops of it, in percent.
    """

    name: str
    labelled: float
    hidden: float
    rare: bool
    own: float | None
    near: list[float]


def size_bar(row: ClassLook, largest: float) -> Markup:
    """Draw labelled nodes, and behind them those whose label is set aside."""
    whole_width = _width(row.labelled + row.hidden, largest)
    label = f"{row.name}: {whole(row.labelled)} labelled nodes"
    label += f", {whole(row.hidden)} more set aside" if row.hidden else ""
    place: dict[str, Attribute] = {"y": "22%", "height": "56%", "rx": 2}
    bars = [tag("line", y2="100%", class_="axis")]
    if row.hidden:
        bars.append(tag("rect", width=percent(whole_width), class_="hidden", **place))
    bars.append(tag("rect", width=percent(_width(row.labelled, largest)), class_="bar", **place))
    return _picture(label, *bars)


def own_row(row: ClassLook, chance: float | None) -> Markup:
    """Draw the share of a class's neighbours that are of the class."""
    drawn = [tag("line", x1=f"{x}%", x2=f"{x}%", y2="100%", class_="grid") for x in GRID]
    if chance is not None:
        at = percent(chance)
        drawn.append(tag("line", x1=at, x2=at, y2="100%", class_="reference"))
    if row.own is None:
        return _picture(f"{row.name}: no labelled neighbours", *drawn)
    drawn.append(
        tag("line", x1=0, x2=percent(row.own), y1="50%", y2="50%", class_="whisker"),
    )
    drawn.append(tag("circle", cx=percent(row.own), cy="50%", r=5, class_="mean"))
    return _picture(f"{row.name}: {decimals(row.own)}% of neighbours are of it, too", *drawn)


def degree_bars(bins: Sequence[tuple[int, int, int]]) -> Markup:
    """Draw how many nodes have how many neighbours, each range twice as wide as the last."""
    most = max((count for _, _, count in bins), default=0)
    lines = []
    for low, high, count in bins:
        name = f"{low:,}" if low == high else f"{low:,}–{high:,}"
        words = f"{whole(count)} nodes with {name} neighbours"
        place: dict[str, Attribute] = {"y": "18%", "height": "64%", "rx": 2}
        drawn = tag("rect", width=percent(_width(count, most)), class_="bar", **place)
        picture = _picture(words, tag("line", y2="100%", class_="axis"), drawn)
        value = tag("span", whole(count), class_="value")
        lines.append(tag("li", tag("span", name, class_="name"), picture, value))
    return tag("ul", *lines, class_="bars")


def pick_coloured(rows: Sequence[ClassLook]) -> list[int]:
    """Choose the classes that get a colour: all of a few, the least reached of many."""
    places = list(range(len(rows)))
    if len(rows) <= COLOURS:
        return places
    return sorted(sorted(places, key=lambda place: sum(rows[place].near))[:COLOURS])


def reach_panel(rows: Sequence[ClassLook], any_class: Sequence[float]) -> Markup:
    """Draw the share of unlabelled nodes within so many hops of each class."""
    hops = len(any_class)
    coloured = pick_coloured(rows)
    colours = {place: f"colour-{number}" for number, place in enumerate(coloured)}
    order = sorted(range(len(rows)), key=lambda place: place in colours)  # colours on top
    lines = [
        _line(rows[place].near, rows[place].name, f"curve {colours.get(place, 'faint')}")
        for place in order
    ]
    lines.append(_line(any_class, "any class", "curve all"))
    plot = tag(
        "svg", *lines, width="100%", height="100%", viewBox="0 0 1000 1000",
        preserveAspectRatio="none",
    )  # fmt: skip
    dots = [
        tag(
            "circle",
            tag("title", f"{rows[place].name}: {decimals(value)}% within {hop + 1}"),
            cx=percent(100 * _across(hop, hops)),
            cy=percent(100 - value),
            r=4,
            class_=f"dot {colour}",
        )
        for place, colour in colours.items()
        for hop, value in enumerate(rows[place].near)
    ]
    lowest = min(rows, key=lambda row: sum(row.near)).name if rows else "none"
    label = f"Share of unlabelled nodes within 1 to {hops} hops of each class; least for {lowest}"
    return tag(
        "figure",
        tag(
            "div",
            tag("svg", *_axes(hops), plot, *dots, class_="curves", role="img", aria_label=label),
            class_="plot",
        ),
        tag("p", "hops", class_="axis-name", aria_hidden="true"),
    )


def reach_legend(rows: Sequence[ClassLook]) -> Markup:
    """Name the lines."""
    coloured = pick_coloured(rows)
    entries = [
        tag("li", _sample("curve"), rows[place].name, class_=f"colour-{number}")
        for number, place in enumerate(coloured)
    ]
    if len(coloured) < len(rows):
        entries.append(tag("li", _sample("curve faint"), "other classes"))
    entries.append(tag("li", _sample("curve all"), "any class"))
    return tag("ul", *entries, class_="legend")


def _sample(kind: str) -> Markup:
    line = tag("line", x1=0, x2=16, y1=7, y2=7, class_=kind)
    return tag("svg", line, width=16, height=14, class_="swatch", aria_hidden="true")


def _axes(hops: int) -> list[Markup]:
    marks = []
    for value in GRID:
        y = percent(100 - value)
        marks.append(tag("line", x2="100%", y1=y, y2=y, class_="grid" if value else "axis"))
        text = f"{value}%"
        marks.append(tag("text", text, x=-8, y=y, dy=".35em", text_anchor="end", class_="tick"))
    step = max(-(-hops // 10), 1)
    for hop in range(0, hops, step):
        place = {"x": percent(100 * _across(hop, hops)), "y": "100%", "dy": "1.5em"}
        marks.append(tag("text", str(hop + 1), **place, text_anchor="middle", class_="tick"))
    return marks


def _line(values: Sequence[float], name: str, kind: str) -> Markup:
    places = [
        f"{1000 * _across(hop, len(values)):.1f} {1000 - 10 * value:.1f}"
        for hop, value in enumerate(values)
    ]
    ends = ", ".join(f"{decimals(value)}%" for value in values)
    # a path of one point draws nothing, so it is closed upon itself to leave a dot
    path = "M" + "L".join(places) + ("Z" if len(places) == 1 else "")
    return tag("path", tag("title", f"{name}: {ends}"), d=path, class_=kind)


def _across(hop: int, hops: int) -> float:
    return (hop + 0.25) / (hops - 0.5) if hops > 1 else 0.5


def _width(count: float, largest: float) -> float:
    share = 100 * count / largest if largest > 0 else 0.0
    # a class with a single node among thousands should still be seen
    return max(share, 0.8) if share > 0 else 0.0


def _picture(label: str, *drawn: Markup) -> Markup:
    # the title gives the tooltip, the label what is read aloud
    return tag("svg", tag("title", label), *drawn, class_="row", role="img", aria_label=label)
