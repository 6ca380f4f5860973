"""Charts of an inspection: class sizes, homophily, degrees, reach of the labels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evengraph.report import page
from evengraph.report.formatting import decimals, integer
from evengraph.report.svg.charts import (
    COLOURS,
    GRID,
    bar,
    curve,
    dot_row,
    line_plot,
    percent,
    swatch,
)
from evengraph.report.svg.markup import Markup, tag

ORDER = (0, 3, 2, 4, 5, 1)  # of the colours: the one that is most like orange is the last


@dataclass(frozen=True, kw_only=True)
class ClassSummary:
    """One class as the page shows it."""

    name: str
    labelled: float  # labelled nodes
    hidden: float  # nodes whose label is known but hidden
    rare: bool  # fewer than half the labelled nodes of the largest class
    homophily: float | None  # share of its neighbours that are in the class, in percent
    chance: float | None  # that share if the ends of edges were paired at random, in percent
    reach: list[float]  # share of the unlabelled nodes within 1, 2, ... hops, in percent
    colour: str = ""  # class of the style sheet, the same in all charts; empty: none of its own


def size_bar(row: ClassSummary, largest: float) -> Markup:
    """Draw labelled nodes, and behind them those with a hidden label."""
    label = f"{row.name}: {integer(row.labelled)} labelled nodes"
    label += f", {integer(row.hidden)} more with a hidden label" if row.hidden else ""
    return bar(label, row.labelled, largest, total=row.labelled + row.hidden if row.hidden else 0)


def homophily_row(row: ClassSummary) -> Markup:
    """Draw the share of neighbours in the same class, and that expected by chance."""
    if row.homophily is None:
        return dot_row(f"{row.name}: no labelled neighbours", None, reference=row.chance)
    label = f"{row.name}: {decimals(row.homophily)}% of neighbours are in the same class"
    label += "" if row.chance is None else f", {decimals(row.chance)}% expected by chance"
    return dot_row(label, row.homophily, span=(0.0, row.homophily), reference=row.chance)


def degree_bars(bins: Sequence[tuple[int, int, int]]) -> Markup:
    """Draw a histogram of degrees, each bin twice as wide as the last."""
    largest = max((count for _, _, count in bins), default=0)
    lines = []
    for low, high, count in bins:
        name = f"{low:,}" if low == high else f"{low:,}–{high:,}"
        drawn = bar(f"{integer(count)} nodes of degree {name}", count, largest)
        value = tag("span", integer(count), class_="value")
        lines.append(tag("li", tag("span", name, class_="name"), drawn, value))
    return tag("ul", *lines, class_="bars")


def coloured(rows: Sequence[ClassSummary]) -> list[ClassSummary]:
    """Give each class its colour; if there are many, those with the lowest reach only.

    The smallest is orange if it is rare, as on all pages.
    """
    indices = sorted(range(len(rows)), key=lambda index: sum(rows[index].reach))[:COLOURS]
    colours = {index: f"colour-{ORDER[number]}" for number, index in enumerate(sorted(indices))}
    if rows and rows[-1].rare and len(rows) - 1 in colours:
        colours[len(rows) - 1] = "colour-rare"
    return [replace(row, colour=colours.get(index, "")) for index, row in enumerate(rows)]


def reach_panel(rows: Sequence[ClassSummary], any_class: Sequence[float]) -> Markup:
    """Draw the share of unlabelled nodes within a number of hops of each class."""
    hops = len(any_class)

    def x(hop: int) -> float:
        return 100 * (hop + 0.25) / (hops - 0.5) if hops > 1 else 50.0

    def line(values: Sequence[float], name: str, kind: str) -> Markup:
        tooltip = f"{name}: {', '.join(f'{decimals(value)}%' for value in values)}"
        return curve([(x(hop), 100 - v) for hop, v in enumerate(values)], tooltip, f"curve {kind}")

    order = sorted(rows, key=lambda row: bool(row.colour))  # coloured ones on top
    lines = [line(row.reach, row.name, row.colour or "faint") for row in order]
    dots = [
        tag(
            "circle",
            tag("title", f"{row.name}: {decimals(value)}% within {hop + 1}"),
            cx=percent(x(hop)),
            cy=percent(100 - value),
            r=4,
            class_=f"dot {row.colour}",
        )
        for row in rows
        if row.colour
        for hop, value in enumerate(row.reach)
    ]
    lowest = min(rows, key=lambda row: sum(row.reach)).name if rows else "none"
    plot = line_plot(
        f"Share of unlabelled nodes within 1 to {hops} hops of each class; lowest for {lowest}",
        [*lines, line(any_class, "any class", "all")],
        dots,
        rows=[(100 - value, f"{value}%") for value in GRID],
        columns=[(x(hop), str(hop + 1)) for hop in range(0, hops, max(-(-hops // 10), 1))],
        axis="hops",
    )
    return tag("figure", plot)


def reach_legend(rows: Sequence[ClassSummary]) -> Markup:
    """Name the lines."""
    entries = [
        tag("li", swatch("curve"), row.name, class_=row.colour) for row in rows if row.colour
    ]
    if len(entries) < len(rows):
        entries.append(tag("li", swatch("faint"), "other classes"))
    return page.legend([*entries, tag("li", swatch("all"), "any class")])
