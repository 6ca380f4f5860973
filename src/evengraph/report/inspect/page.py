"""One self-contained page for what `evengraph inspect` found."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evengraph.core.files import write_atomic
from evengraph.report.inspect.charts import (
    ClassLook,
    degree_bars,
    own_row,
    reach_legend,
    reach_panel,
    size_bar,
)
from evengraph.report.inspect.style import STYLE
from evengraph.report.run.matrix import DENSE, FLIP
from evengraph.report.run.page import head
from evengraph.report.run.values import DASH, decimals, items, number, part, plural, whole
from evengraph.report.run.words import dataset_title
from evengraph.report.svg.charts import scale_row, swatch
from evengraph.report.svg.markup import Markup, join, tag

MARKS = {"warning": "!", "note": "i", "good": "✓"}

_MEANINGS = {
    "Labelled": "Nodes whose class is known and may be used. Set aside are those whose class is "
    "known but hidden for this look, as a test would.",
    "Neighbours share a class": "Share of the edges between two labelled nodes whose ends are of "
    "one class. A large class makes it large by chance; the adjusted figure is 0 at chance and 1 "
    "when all neighbours agree.",
    "Reach": "A graph network of two layers hears from nodes at most two hops away. What lies "
    "further from every labelled node of a class hears nothing of that class: papers call it "
    "under-reaching.",
    "Component": "A part of the graph that no edge joins to the rest.",
}


def write_inspection(found: Mapping[str, Any], path: Path) -> None:
    """Write the page, whole or not at all.

    Args:
        found: An inspection, as its inspect.json holds it.
        path: Where the page goes; an older page there is replaced.
    """
    content = render_inspection(found).encode("utf-8", errors="xmlcharrefreplace")
    write_atomic(content, Path(path))


def render_inspection(found: Mapping[str, Any]) -> str:
    """Draw an inspection as HTML.

    Args:
        found: An inspection, as its inspect.json holds it.
    """
    rows = _class_looks(found)
    main = tag(
        "main",
        _findings(found),
        _cards(found, rows),
        _classes(found, rows),
        _reach(found, rows),
        _graph(found),
        _features(found),
        _notes(),
    )
    version = found.get("evengraph")
    footer = tag("footer", tag("p", f"evengraph {version}" if version else "evengraph"))
    body = tag("body", _header(found, rows), main, footer)
    title = f"A look at {_name(found)}"
    return f"<!doctype html>\n{tag('html', head(title, STYLE), body, lang='en')}\n"


def _name(found: Mapping[str, Any]) -> str:
    name = found.get("name")
    return dataset_title({"dataset": {"name": name}}) if name else "the graph"


def _class_looks(found: Mapping[str, Any]) -> list[ClassLook]:
    """The classes, the commonest first."""
    labels, reach = part(found, "labels"), part(found, "reach")
    labelled = [number(count) or 0.0 for count in items(labels, "labelled")]
    hidden, own = items(labels, "hidden"), items(part(found, "homophily"), "per_class")
    nodes, near = number(reach.get("nodes")) or 0.0, items(reach, "per_class")
    rows = []
    for place, (name, count) in enumerate(zip(items(labels, "names"), labelled, strict=False)):
        share = number(own[place]) if place < len(own) else None
        within = near[place] if place < len(near) and nodes else ()
        rows.append(
            ClassLook(
                name=str(name),
                labelled=count,
                hidden=(number(hidden[place]) or 0.0) if place < len(hidden) else 0.0,
                rare=count < max(labelled) / 2,
                own=None if share is None else 100 * share,
                near=[100 * (number(value) or 0.0) / nodes for value in within],
            )
        )
    return sorted(rows, key=lambda row: -row.labelled)


def _header(found: Mapping[str, Any], rows: list[ClassLook]) -> Markup:
    labels = part(found, "labels")
    share = decimals(_hundred(labels.get("labelled_share")), 0)
    told = f"{whole(labels.get('num_labelled'))} of {whole(found.get('num_nodes'))} nodes are"
    told += f" labelled ({share}%), in {plural(len(rows), 'class', 'classes')}"
    facts = [
        (whole(found.get("num_nodes")), "nodes"),
        (whole(part(found, "edges").get("pairs")), "edges"),
        (whole(part(found, "features").get("count")), "features"),
        (whole(part(found, "components").get("count")), "components"),
    ]
    lines = (tag("li", tag("b", figure), f" {word}") for figure, word in facts)
    h1 = tag("h1", f"A look at {_name(found)}", tag("span", told))
    return tag("header", h1, tag("ul", *lines, class_="facts"))


def _findings(found: Mapping[str, Any]) -> Markup:
    lines = []
    for finding in items(found, "findings"):
        level = str(finding.get("level"))
        level = level if level in MARKS else "note"
        mark = tag("span", MARKS[level], class_="mark", aria_hidden="true")
        words = tag("span", tag("span", f"{level}: ", class_="unseen"), str(finding.get("text")))
        lines.append(tag("li", mark, words, class_=level))
    advice = join((str(sentence) for sentence in items(found, "recommendation")), " ")
    return tag(
        "section",
        tag("h2", "What to know before training"),
        tag("p", tag("b", "What to do. "), advice, class_="advice") if advice else "",
        tag("ul", *lines, class_="findings"),
    )


def _cards(found: Mapping[str, Any], rows: list[ClassLook]) -> Markup:
    homophily, reach = part(found, "homophily"), part(found, "reach")
    ratio = number(part(found, "labels").get("ratio"))
    cards = [
        _card(
            "Largest class over smallest",
            DASH if ratio is None else f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}",
            "times",
            "by labelled nodes",
        ),
        _card(
            "Neighbours share a class",
            decimals(_hundred(homophily.get("edge")), 0),
            "% of edges",
            f"chance {decimals(_hundred(homophily.get('by_chance')), 0)}%; adjusted "
            f"{decimals(homophily.get('adjusted'), 2)}; from {whole(homophily.get('edges'))} edges",
        ),
    ]
    near = [row for row in rows if len(row.near) > 1 and row.labelled]
    if near:
        worst = min(near, key=lambda row: row.near[1])
        words = f"of the unlabelled nodes, for the least reached class: {worst.name}"
        cards.append(_card("Within two hops of a label", f"{worst.near[1]:.0f}", "%", words))
    elif not number(reach.get("nodes")):
        cards.append(_card("Within two hops of a label", DASH, "", "every node is labelled"))
    heading = tag("h2", "Headline figures", class_="unseen")
    return tag("section", heading, *cards, class_="cards")


def _card(title: str, figure: str, unit: str, words: str) -> Markup:
    shown = tag("p", tag("b", figure), tag("span", unit) if unit else "", class_="figure")
    return tag("article", tag("h3", title), shown, tag("p", words, class_="quiet"), class_="card")


def _classes(found: Mapping[str, Any], rows: list[ClassLook]) -> Markup:
    chance = _hundred(part(found, "homophily").get("by_chance"))
    largest = max((row.labelled + row.hidden for row in rows), default=0.0)
    aside = any(row.hidden for row in rows)
    headings = tag(
        "li",
        tag("span", class_="name"),
        tag("span", "labelled nodes", class_="counts"),
        tag("span", "neighbours of the same class, %"),
        class_="head",
    )
    lines = (
        tag(
            "li",
            tag("span", row.name, class_="name", title=row.name),
            tag("span", whole(row.labelled), class_="value"),
            size_bar(row, largest),
            own_row(row, chance),
            tag("span", decimals(row.own, 0), class_="value"),
            class_="rare" if row.rare else None,
        )
        for row in rows
    )
    scale = tag("li", scale_row(), class_="axis-row", aria_hidden="true")
    box = tag("rect", x=1, y=2, width=14, height=10, rx=2, class_="hidden")
    pale = tag("svg", box, width=16, height=14, class_="swatch", aria_hidden="true")
    text = "fewer than half the labelled nodes of the largest class"
    entries = [
        tag("li", swatch("bar"), "labelled"),
        tag("li", swatch("bar"), text, class_="rare") if any(row.rare for row in rows) else "",
        tag("li", pale, "set aside, class known") if aside else "",
        tag("li", swatch("reference"), "all edges, by chance") if chance is not None else "",
    ]
    kind = "ladder dense" if len(rows) > DENSE else "ladder"
    return tag(
        "section",
        tag("h2", "Classes, head to tail"),
        tag("ul", *(entry for entry in entries if entry), class_="legend"),
        tag("ul", headings, *lines, scale, class_=kind),
        class_="long" if len(rows) > DENSE else None,
    )


def _reach(found: Mapping[str, Any], rows: list[ClassLook]) -> Markup:
    reach = part(found, "reach")
    nodes = number(reach.get("nodes")) or 0.0
    heading = tag("h2", "How far the labels reach")
    within = [100 * (number(count) or 0.0) / nodes for count in items(reach, "any_class") if nodes]
    if not within:
        text = "Every node is labelled, so there is nothing to reach."
        return tag("section", heading, tag("p", text))
    text = f"Of the {whole(nodes)} nodes without a label, how many lie within so many hops of a "
    text += "labelled node of each class. What is far from a class hears nothing of it."
    return tag(
        "section",
        heading,
        tag("p", text),
        reach_legend(rows),
        tag("div", reach_panel(rows, within), _reach_table(rows, within), class_="two"),
        class_="long" if len(rows) > DENSE else None,
    )


def _reach_table(rows: list[ClassLook], within: list[float]) -> Markup:
    hops = range(1, len(within) + 1)
    heads = (tag("th", f"{hop} hop{'s' if hop > 1 else ''}", scope="col") for hop in hops)
    lines = [
        tag(
            "tr",
            tag("th", name, scope="row"),
            *(_shade(value) for value in values),
            class_=kind,
        )
        for name, values, kind in [
            *((row.name, row.near, "rare" if row.rare else None) for row in rows),
            ("any class", within, "sum"),
        ]
    ]
    label = "Percent of the unlabelled nodes within so many hops of each class"
    table = tag(
        "table",
        tag("caption", label, class_="unseen"),
        tag("thead", tag("tr", tag("td", style="background: none"), *heads)),
        tag("tbody", *lines),
        class_="shares dense" if len(rows) > DENSE else "shares",
    )
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=label)


def _shade(value: float) -> Markup:
    share = round(value / 100, 2)
    style, kind = f"--share: {share:.2f}", "strong" if share >= FLIP else None
    return tag("td", f"{value:.0f}%", style=style, class_=kind)


def _graph(found: Mapping[str, Any]) -> Markup:
    degrees, edges, parts = (part(found, name) for name in ("degrees", "edges", "components"))
    bins = [(int(low), int(high), int(count)) for low, high, count in items(degrees, "bins")]
    figures = {
        "neighbours, median": decimals(degrees.get("median"), 0),
        "neighbours, mean": decimals(degrees.get("mean")),
        "neighbours, most": whole(degrees.get("largest")),
        "nodes without a neighbour": whole(degrees.get("isolated")),
        "components": whole(parts.get("count")),
        "nodes in the largest": whole(parts.get("largest")),
        "components without a label": whole(parts.get("unlabelled")),
        "nodes in these": whole(parts.get("unlabelled_nodes")),
    }
    notes = [str(note) for note in items(found, "notes")]
    if not notes:  # else the edges were tidied before, and the notes say how
        figures |= {
            "edges listed in one direction only": whole(edges.get("one_way")),
            "repeated edges": whole(edges.get("repeated")),
            "edges from a node to itself": whole(edges.get("to_itself")),
        }
    drawn = tag("div", tag("h3", "Nodes by number of neighbours"), degree_bars(bins))
    listed = tag("div", tag("h3", "In figures"), _pairs(figures))
    if notes:
        listed = join([listed, tag("div", tag("h3", "On reading"), _list(notes))])
    return tag(
        "section", tag("h2", "Neighbours and parts"), tag("div", drawn, listed, class_="two")
    )


def _list(lines: Sequence[str]) -> Markup:
    return tag("ul", *(tag("li", line) for line in lines))


def _features(found: Mapping[str, Any]) -> Markup:
    features = part(found, "features")
    hashed = number(features.get("hashed"))
    figures = {
        "features": whole(features.get("count")),
        **({"of these, hashed text": whole(hashed)} if hashed else {}),
        "entries that are not zero": f"{decimals(_hundred(features.get('density')))}%",
        "features with one value only": whole(features.get("constant")),
        "missing or infinite entries": whole(features.get("missing")),
    }
    nodes = {
        "nodes with nothing but zeros": whole(features.get("empty_nodes")),
        "nodes that repeat another’s features": whole(features.get("duplicate_nodes")),
        "labelled nodes that repeat one of another class": whole(features.get("conflicting_nodes")),
        "suspicious columns": whole(len(items(found, "leaks"))),
    }
    pairs = tag("div", _pairs(figures), _pairs(nodes), class_="two")
    return tag("section", tag("h2", "Features"), pairs)


def _pairs(figures: Mapping[str, str]) -> Markup:
    pairs = (join((tag("dt", name), tag("dd", value))) for name, value in figures.items())
    return tag("dl", *pairs, class_="pairs")


def _notes() -> Markup:
    told = (tag("div", tag("dt", name), tag("dd", words)) for name, words in _MEANINGS.items())
    return tag("section", tag("h2", "What the words mean"), tag("dl", *told, class_="words"))


def _hundred(value: object) -> float | None:
    found = number(value)
    return None if found is None else 100 * found
