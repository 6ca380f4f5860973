"""Charts of an inspection: class sizes, homophily, degrees, reach of the labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evengraph.core.untrusted import items, lookup, number, part
from evengraph.report import page
from evengraph.report import result as captions
from evengraph.report.charts import (
    COLOURS,
    GRID,
    bar,
    curve,
    dot_row,
    line_plot,
    percent,
    swatch,
)
from evengraph.report.markup import DASH, Markup, decimals, integer, join, percentage, plural, tag
from evengraph.report.page import DENSE, Link, copy_script, origin_section

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


STYLE = page.read_asset(__package__, "inspect.css")
MARKS = {"warning": "!", "note": "i", "good": "✓"}

_GLOSSARY = {
    "Labelled": "Nodes whose class is known and may be used. Hidden labels are known, but set "
    "aside for this inspection as in a test.",
    "Edge homophily": "Share of the edges between labelled nodes that join nodes of the same "
    "class. A large class raises it by chance; adjusted homophily is 0 at chance and 1 if all "
    "neighbours agree.",
    "Reach": "A graph network of two layers sees nodes at most two hops away. A node further from "
    "every labelled node of a class receives no signal of that class, which is called "
    "under-reaching.",
    "Component": "A set of nodes that no edge connects to the rest of the graph.",
}


def write_inspection(
    inspection: Mapping[str, Any], path: Path, *, links: Sequence[Link] = ()
) -> None:
    """Write the page atomically.

    Args:
        inspection: Content of an inspect.json.
        path: Where the page goes; an older page there is replaced.
        links: Other files beside it.
    """
    page.write_html(render_inspection(inspection, links=links), path)


def render_inspection(inspection: Mapping[str, Any], *, links: Sequence[Link] = ()) -> str:
    """Render an inspection as HTML.

    Args:
        inspection: Content of an inspect.json.
        links: Other files beside the page.
    """
    rows = class_summaries(inspection)
    name = inspection.get("name")
    title = f"Inspection of {captions.dataset(name) if name else 'the graph'}"
    main = tag(
        "main",
        *inspection_sections(inspection),
        _reach(inspection, rows),
        _structure(inspection),
        _features(inspection),
        origin_section(inspection, links),
        page.glossary("Glossary", _GLOSSARY),
    )
    closing = page.footer(inspection.get("evengraph"))
    body = (_header(inspection, rows, title), main, closing)
    return page.html_page(title, *body, style=STYLE, script=copy_script(inspection))


def inspection_sections(inspection: Mapping[str, Any]) -> list[Markup]:
    """Findings, key numbers and classes."""
    rows = class_summaries(inspection)
    return [_findings(inspection), _cards(inspection, rows), _classes(inspection, rows)]


def class_summaries(inspection: Mapping[str, Any]) -> list[ClassSummary]:
    """Return the classes, the largest first."""
    labels, reach = part(inspection, "labels"), part(inspection, "reach")
    labelled = [number(count) or 0.0 for count in items(labels, "labelled")]
    nodes = number(reach.get("nodes")) or 0.0
    ends = [number(count) or 0.0 for count in items(inspection, "homophily", "neighbours")]
    rows = []
    for index, (name, count) in enumerate(zip(items(labels, "names"), labelled, strict=False)):
        share = number(lookup(inspection, "homophily", "per_class", index))
        within = items(reach, "per_class", index) if nodes else ()
        rows.append(
            ClassSummary(
                name=str(name),
                labelled=count,
                hidden=number(lookup(labels, "hidden", index)) or 0.0,
                rare=count < max(labelled) / 2,
                homophily=None if share is None else 100 * share,
                chance=100 * ends[index] / sum(ends) if index < len(ends) and any(ends) else None,
                reach=[100 * (number(value) or 0.0) / nodes for value in within],
            )
        )
    rows.sort(key=lambda row: -row.labelled)
    return coloured(rows) if nodes else rows  # without lines of reach, rare and common are enough


def _header(inspection: Mapping[str, Any], rows: list[ClassSummary], title: str) -> Markup:
    labels, total = part(inspection, "labels"), integer(inspection.get("num_nodes"))
    caption = f"{integer(labels.get('num_labelled'))} of {total} nodes are labelled "
    caption += f"({percentage(labels.get('labelled_share'))}), in "
    caption += plural(len(rows), "class", "classes")
    components = part(inspection, "components").get("count")
    facts = [
        (total, "nodes"),
        (integer(part(inspection, "edges").get("pairs")), "edges"),
        (integer(part(inspection, "features").get("count")), "features"),
        (integer(components), "component" if components == 1 else "components"),
    ]
    return tag("header", tag("h1", title, tag("span", caption)), page.facts(facts))


def _findings(inspection: Mapping[str, Any]) -> Markup:
    lines = []
    for finding in items(inspection, "findings"):
        level = str(finding.get("level"))
        level = level if level in MARKS else "note"
        mark = tag("span", MARKS[level], class_="mark", aria_hidden="true")
        text = tag("span", tag("span", f"{level}: ", class_="unseen"), str(finding.get("text")))
        lines.append(tag("li", mark, text, class_=level))
    advice = join((str(sentence) for sentence in items(inspection, "recommendation")), " ")
    return tag(
        "section",
        tag("h2", "Before training"),
        tag("p", tag("b", "Recommendation. "), advice, class_="advice") if advice else "",
        tag("ul", *lines, class_="findings"),
        tag("p", tag("a", "Commands to run next", href="#next"))
        if items(inspection, "commands")
        else "",
    )


def _cards(inspection: Mapping[str, Any], rows: list[ClassSummary]) -> Markup:
    homophily, reach = part(inspection, "homophily"), part(inspection, "reach")
    ratio = number(part(inspection, "labels").get("ratio"))
    reached = [row for row in rows if len(row.reach) > 1 and row.labelled]
    cards = [
        (
            "Imbalance ratio",
            decimals(ratio, 0 if ratio is not None and ratio >= 10 else 1),
            "to 1",
            "labelled nodes of the largest over the smallest class",
        ),
        (
            "Edge homophily",
            percentage(homophily.get("edge")),
            "",
            f"of {integer(homophily.get('edges'))} edges join nodes of the same class; "
            f"{percentage(homophily.get('by_chance'))} expected by chance, adjusted homophily "
            f"{decimals(homophily.get('adjusted'), 2)}",
        ),
    ]
    if reached:
        worst = min(reached, key=lambda row: row.reach[1])
        text = f"of the unlabelled nodes, for the class with the lowest reach: {worst.name}"
        cards.append(("Within two hops of a label", f"{worst.reach[1]:.0f}%", "", text))
    elif not number(reach.get("nodes")):
        cards.append(("Within two hops of a label", DASH, "", "every node is labelled"))
    heading = tag("h2", "Key numbers", class_="unseen")
    drawn = (
        page.card(title, value, unit, tag("p", text, class_="quiet"))
        for title, value, unit, text in cards
    )
    return tag("section", heading, *drawn, class_="cards")


def _classes(inspection: Mapping[str, Any], rows: list[ClassSummary]) -> Markup:
    largest = max((row.labelled + row.hidden for row in rows), default=0.0)
    lines = [
        page.class_row(
            row.name,
            integer(row.labelled),
            size_bar(row, largest),
            homophily_row(row),
            decimals(row.homophily, 0),
            row.rare,
            row.colour,
        )
        for row in rows
    ]
    marks = []
    rare = "fewer than half the labelled nodes of the largest class"
    if not any(row.colour for row in rows):
        marks.append(tag("li", swatch("bar"), "labelled"))
        if any(row.rare for row in rows):
            marks.append(tag("li", swatch("bar"), rare, class_="rare"))
    if any(row.hidden for row in rows):
        marks.append(tag("li", swatch("hidden"), "hidden label"))
    if any(row.chance is not None for row in rows):
        marks.append(tag("li", swatch("reference"), "expected by chance for this class"))
    columns = ("labelled nodes", "neighbours in the same class, %")
    intro = "Classes are sorted by their number of labelled nodes."
    if any(row.colour and row.rare for row in rows):
        intro += f" Names in orange have {rare}."
    return page.class_section("Classes, head to tail", intro, marks, columns, lines)


def _reach(inspection: Mapping[str, Any], rows: list[ClassSummary]) -> Markup:
    reach = part(inspection, "reach")
    nodes = number(reach.get("nodes")) or 0.0
    heading = tag("h2", "Reach of the labels")
    within = [100 * (number(count) or 0.0) / nodes for count in items(reach, "any_class") if nodes]
    if not within:
        return tag("section", heading, tag("p", "Every node is labelled."))
    text = (
        f"Share of the {integer(nodes)} unlabelled nodes within a number of hops of a labelled "
        "node of each class. A network of as many layers passes no signal of a class further."
    )
    return tag(
        "section",
        heading,
        tag("p", text),
        reach_legend(rows),
        tag("div", reach_panel(rows, within), _reach_table(rows, within), class_="two"),
        class_="long" if len(rows) > DENSE else None,
    )


def _reach_table(rows: list[ClassSummary], within: list[float]) -> Markup:
    heads = (tag("th", plural(hop + 1, "hop"), scope="col") for hop in range(len(within)))
    lines = [
        tag(
            "tr",
            tag("th", name, scope="row"),
            *(page.shaded_cell(value, f"{value:.0f}%") for value in values),
            class_=kind,
        )
        for name, values, kind in [
            *((row.name, row.reach, "rare" if row.rare else None) for row in rows),
            ("any class", within, "sum"),
        ]
    ]
    label = "Percent of the unlabelled nodes within a number of hops of each class"
    table = tag(
        "table",
        tag("caption", label, class_="unseen"),
        tag("thead", tag("tr", tag("td", style="background: none"), *heads)),
        tag("tbody", *lines),
        class_="shares dense" if len(rows) > DENSE else "shares",
    )
    return page.scroll(table, label)


def _structure(inspection: Mapping[str, Any]) -> Markup:
    degrees, edges, components = (
        part(inspection, name) for name in ("degrees", "edges", "components")
    )
    bins = [(int(low), int(high), int(count)) for low, high, count in items(degrees, "bins")]
    values = {
        "median degree": decimals(degrees.get("median"), 0),
        "mean degree": decimals(degrees.get("mean")),
        "largest degree": integer(degrees.get("largest")),
        "isolated nodes": integer(degrees.get("isolated")),
        "components": integer(components.get("count")),
        "nodes in the largest component": integer(components.get("largest")),
        "components without a label": integer(components.get("unlabelled")),
        "nodes in components without a label": integer(components.get("unlabelled_nodes")),
    }
    notes = [str(note) for note in items(inspection, "notes")]
    if not notes:  # otherwise the edges were cleaned before, and the notes say how
        values |= {
            "edges listed in one direction only": integer(edges.get("one_way")),
            "repeated edges": integer(edges.get("repeated")),
            "self-loops": integer(edges.get("to_itself")),
        }
    drawn = tag("div", tag("h3", "Nodes by degree"), degree_bars(bins))
    listed = tag("div", tag("h3", "Summary"), page.definitions(values))
    if notes:
        lines = tag("ul", *(tag("li", note) for note in notes))
        listed = join([listed, tag("div", tag("h3", "Notes from reading the data"), lines)])
    heading = tag("h2", "Degrees and components")
    return tag("section", heading, tag("div", drawn, listed, class_="two"))


def _features(inspection: Mapping[str, Any]) -> Markup:
    features = part(inspection, "features")
    hashed = number(features.get("hashed"))
    columns = {
        "features": integer(features.get("count")),
        **({"of these, hashed text": integer(hashed)} if hashed else {}),
        "non-zero entries": percentage(features.get("density"), 1),
        "constant features": integer(features.get("constant")),
        "missing or infinite entries": integer(features.get("missing")),
    }
    nodes = {
        "nodes with all features zero": integer(features.get("empty_nodes")),
        "nodes with duplicate features": integer(features.get("duplicate_nodes")),
        "labelled nodes with a duplicate in another class": integer(
            features.get("conflicting_nodes")
        ),
        "suspected label leaks": integer(len(items(inspection, "leaks"))),
    }
    lists = tag("div", page.definitions(columns), page.definitions(nodes), class_="two")
    return tag("section", tag("h2", "Features"), lists)
