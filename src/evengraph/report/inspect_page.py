"""The page of an inspect.json: findings, class sizes, homophily, reach of the labels, degrees."""

from collections.abc import Mapping, Sequence
from typing import Any

from evengraph.core.untrusted import items, number, part
from evengraph.report import page
from evengraph.report.charts import bar, dot_row, scale_row, swatch
from evengraph.report.markup import DASH, Markup, decimals, integer, percentage, plural, tag
from evengraph.report.view import ClassSummary, InspectionView, dataset_title

STYLE = page.read_asset(__package__, "inspect.css")

_GLOSSARY = {
    "Edge homophily": "Share of the edges between labelled nodes that join nodes of the same "
    "class. A large class raises it by chance; adjusted homophily is 0 at chance and 1 if all "
    "neighbours agree.",
    "Reach": "A graph network of two layers sees nodes at most two hops away. A node further from "
    "every labelled node of a class receives no signal of that class, which is called "
    "under-reaching.",
    "Component": "A set of nodes that no edge connects to the rest of the graph.",
}


def render_inspection(inspection: Mapping[str, Any], *, links: Sequence[page.Link] = ()) -> str:
    """Render the content of an inspect.json as HTML; `links` are other files beside the page."""
    view = InspectionView(inspection)
    title = f"Inspection of {dataset_title(inspection.get('name') or 'the graph')}"
    sections = [
        *inspection_sections(view),
        _reach(view),
        _structure(inspection),
        *_columns(inspection),
        page.origin_section(inspection),
        page.glossary("Glossary", _GLOSSARY),
    ]
    return page.render(inspection, title, _heading(view, title, links), sections, style=STYLE)


def inspection_sections(view: InspectionView) -> list[Markup]:
    """Findings and classes."""
    return [_findings(view), _classes(view)]


def _heading(view: InspectionView, title: str, links: Sequence[page.Link]) -> list[Markup]:
    total, components = view.sizes["nodes"], part(view.content, "components").get("count")
    caption = f"{integer(view.labels.get('num_labelled'))} of {total} nodes are labelled "
    caption += f"({percentage(view.labels.get('labelled_share'))}), in "
    caption += plural(len(view.classes), "class", "classes")
    pairs = [(size, noun) for noun, size in view.sizes.items()]
    pairs.append((integer(components), "component" if components == 1 else "components"))
    return [page.headline(title, caption), page.facts(pairs), page.page_links(links)]


def _findings(view: InspectionView) -> Markup:
    lines = []
    for level, text in view.findings:
        sign = {"warning": "!", "note": "i", "good": "✓"}[level]
        mark = tag("span", sign, class_="mark", aria_hidden="true")
        words = tag("span", tag("span", f"{level}: ", class_="unseen"), text)
        lines.append(tag("li", mark, words, class_=level))
    parts = [tag("ul", *lines, class_="findings")]
    if advice := view.recommendation:
        parts.insert(0, tag("p", tag("b", "Recommendation. "), advice, class_="advice"))
    if items(view.content, "commands"):
        parts.append(tag("p", tag("a", "Commands to run next", href="#next")))
    return page.section("Before training", *parts)


def _classes(view: InspectionView) -> Markup:
    """Of each class a bar of its size, and its homophily on an axis from 0 to 100."""
    largest = max((row.labelled for row in view.classes), default=0.0)
    counts = tag("span", "labelled nodes", class_="counts")
    axis = tag("span", "neighbours in the same class, %")
    lines = [tag("li", tag("span", class_="name"), counts, axis, class_="head")]
    for row in view.classes:
        size = integer(row.labelled)
        drawn = tag(
            "li",
            tag("span", row.name, class_="name", title=row.name),
            tag("span", size, class_="value"),
            bar(f"{row.name}: {size} labelled nodes", row.labelled, largest),
            homophily_row(row),
            tag("span", decimals(row.homophily, 0), class_="value"),
            class_="rare" if row.rare else None,
        )
        lines.append(drawn)
    lines.append(tag("li", scale_row(), class_="axis-row", aria_hidden="true"))
    marks = [tag("li", swatch("bar"), "labelled")]
    if any(row.rare for row in view.classes):
        rare = "fewer than half the labelled nodes of the largest class"
        marks.append(tag("li", swatch("bar"), rare, class_="rare"))
    if any(row.chance is not None for row in view.classes):
        marks.append(tag("li", swatch("reference"), "expected by chance for this class"))
    intro = tag("p", "Classes are sorted by their number of labelled nodes.")
    kinds = ("ladder dense", "long") if len(view.classes) > page.DENSE else ("ladder", None)
    ladder = tag("ul", *lines, class_=kinds[0])
    heading = "Classes, head to tail"
    return page.section(heading, intro, page.legend(marks), ladder, kind=kinds[1])


def homophily_row(row: ClassSummary) -> Markup:
    """Draw the share of neighbours in the same class, and that expected by chance."""
    if row.homophily is None:
        return dot_row(f"{row.name}: no labelled neighbours", None, reference=row.chance)
    label = f"{row.name}: {decimals(row.homophily)}% of neighbours are in the same class"
    label += "" if row.chance is None else f", {decimals(row.chance)}% expected by chance"
    return dot_row(label, row.homophily, span=(0.0, row.homophily), reference=row.chance)


def _columns(content: Mapping[str, Any]) -> list[Markup]:
    """Every column of the nodes table: type, missing cells, values, link to the label, use."""
    rows = []
    for one in items(content, "columns"):
        said = (str(one.get(name) or DASH) for name in ("kind", "values", "becomes"))
        kind, values, becomes = (tag("td", text, class_="text") for text in said)
        shares = (percentage(number(one.get(name))) for name in ("missing", "link"))
        missing, link = (tag("td", text) for text in shares)
        name = tag("th", str(one.get("name")), scope="row")
        rows.append(tag("tr", name, kind, missing, values, link, becomes))
    if not rows:
        return []
    text = (
        "Link: of the uncertainty about the class, the share that the column alone removes among "
    )
    text += "labelled nodes (values are grouped). Near 100% is a leak, near 0% alone says little."
    words = ("column", "type", "missing", "values", "link to the label", "what becomes of it")
    texts = {"type", "values", words[-1]}
    heads = [tag("th", w, scope="col", class_="text" if w in texts else None) for w in words]
    table = page.table("Columns of the nodes table", heads, rows, "columns")
    return [page.section("Columns", tag("p", text), table)]


def _reach(view: InspectionView) -> Markup:
    rows, within, heading = view.classes, view.reach, "Reach of the labels"
    if not within:
        return page.section(heading, tag("p", "Every node is labelled."))
    text = f"Share of the {integer(view.unlabelled)} unlabelled nodes within a number of hops of a "
    text += "labelled node of each class. A network of as many layers passes no signal of a class "
    text += "further."
    lines = [page.shaded_row(r.name, r.reach, "%", "rare" if r.rare else None) for r in rows]
    lines.append(page.shaded_row("any class", within, "%", "sum"))
    heads = [plural(hop + 1, "hop") for hop in range(len(within))]
    label = "Percent of the unlabelled nodes within a number of hops of each class"
    table = page.shaded_table(label, heads, lines)
    kind = "long" if len(rows) > page.DENSE else None
    return page.section(heading, tag("p", text), table, kind=kind)


def _structure(inspection: Mapping[str, Any]) -> Markup:
    degrees, notes = part(inspection, "degrees"), items(inspection, "notes")
    median, mean = decimals(degrees.get("median"), 0), decimals(degrees.get("mean"))
    text = f"Median {median}, mean {mean}, largest {integer(degrees.get('largest'))}."
    parts = [tag("p", text)]
    if notes:
        lines = tag("ul", *(tag("li", str(note)) for note in notes))
        parts.append(tag("div", tag("h3", "Notes from reading the data"), lines))
    return page.section("Neighbours of a node", tag("div", *parts, class_="two"))
