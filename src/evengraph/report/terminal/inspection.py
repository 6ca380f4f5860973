"""An inspection for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text

from evengraph.report.formatting import integer, percentage, plural
from evengraph.report.inspect.page import class_summaries
from evengraph.report.terminal.table import plain_table
from evengraph.report.untrusted import items, lookup, number, part

MAX_CLASSES = 20
BAR = 8  # characters of the longest bar
EIGHTHS = " ▏▎▍▌▋▊▉█"
MARKS = {"warning": ("!", "bold red"), "note": ("·", "yellow"), "good": ("✓", "green")}


def inspection_view(inspection: Mapping[str, Any]) -> Group:
    """Show the content of an inspect.json: size, classes with their reach, findings, advice."""
    parts: list[RenderableType] = [_facts(inspection), Text(), _classes(inspection)]
    omitted = len(items(inspection, "labels", "names")) - MAX_CLASSES
    if omitted > 0:
        text = f"and {plural(omitted, 'smaller class', 'smaller classes')}"
        parts.append(Text(text, style="dim"))
    parts.append(_key(inspection))
    parts += [Text(), _findings(inspection), Text(), _recommendation(inspection)]
    return Group(*parts)


def _facts(inspection: Mapping[str, Any]) -> Text:
    labels, degrees = part(inspection, "labels"), part(inspection, "degrees")
    line = Text.from_markup(f"[bold]{escape(str(inspection.get('name') or 'The graph'))}[/]  ")
    facts = [
        f"{integer(inspection.get('num_nodes'))} nodes",
        f"{integer(lookup(inspection, 'edges', 'pairs'))} edges",
        f"{integer(lookup(inspection, 'features', 'count'))} features",
        plural(len(items(labels, "names")), "class", "classes"),
    ]
    if lookup(inspection, "edges", "weighted"):
        facts[1] += ", weighted"
    if relations := items(inspection, "edges", "relations"):
        facts[1] += f", {len(relations)} relations"
    line.append(" · ".join(facts), style="dim")
    line.append("\n")
    median = number(degrees.get("median"))
    components = int(number(lookup(inspection, "components", "count")) or 0)
    labelled = integer(labels.get("num_labelled"))
    more = [
        f"{labelled} labelled ({percentage(labels.get('labelled_share'))})",
        *([f"degree: median {median:g}"] if median is not None else []),
        f"max {integer(degrees.get('largest'))}",
        f"isolated {integer(degrees.get('isolated'))}",
        plural(components, "component"),
    ]
    return line.append(" · ".join(more), style="dim")


def _classes(inspection: Mapping[str, Any]) -> Table:
    """Classes from the largest to the smallest: labels, homophily, reach."""
    rows = class_summaries(inspection)
    nodes = number(lookup(inspection, "reach", "nodes"))
    within = [(number(n) or 0.0) / nodes for n in items(inspection, "reach", "any_class") if nodes]
    table = plain_table(())
    table.add_column("class", overflow="ellipsis", max_width=20, no_wrap=True)
    for title in ("labelled", "", "same", "chance", *(f"≤{hop + 1}" for hop in range(len(within)))):
        table.add_column(title, justify="right" if title else "left", no_wrap=True)
    for row in rows[:MAX_CLASSES]:
        table.add_row(
            escape(row.name),
            integer(row.labelled),
            bar(row.labelled, rows[0].labelled),
            percentage(None if row.homophily is None else row.homophily / 100),
            _dim(percentage(None if row.chance is None else row.chance / 100)),
            *(_coloured(value / 100) for value in row.reach),
        )
    if within:
        table.add_row("any class", "", "", "", "", *map(percentage, within), style="dim")
    return table


def _key(inspection: Mapping[str, Any]) -> Text:
    text = "same: neighbours in the same class; chance: if neighbours were drawn at random"
    if number(lookup(inspection, "reach", "nodes")):
        text += "; ≤2: unlabelled nodes within two hops of a labelled node of the class"
    return Text(text, style="dim italic")


def bar(count: float, largest: float) -> str:
    """Draw a bar of blocks in steps of an eighth; any count above 0 is visible."""
    if count <= 0 or largest <= 0:
        return ""
    eighths = max(round(8 * BAR * count / largest), 1)
    full, rest = divmod(eighths, 8)
    return "█" * full + EIGHTHS[rest].strip()


def _dim(text: str) -> Text:
    return Text(text, style="dim")


def _coloured(fraction: float) -> Text:
    style = "red" if fraction < 0.25 else "yellow" if fraction < 0.75 else "green"
    return Text(percentage(fraction), style=style)


def _findings(inspection: Mapping[str, Any]) -> Table:
    table = Table.grid(Column(no_wrap=True), Column(overflow="fold"), padding=(0, 1, 0, 0))
    for finding in items(inspection, "findings"):
        mark, style = MARKS.get(str(finding.get("level")), MARKS["note"])
        table.add_row(Text(mark, style=style), Text(str(finding["text"])))
    return table


def _recommendation(inspection: Mapping[str, Any]) -> Text:
    sentences = " ".join(str(sentence) for sentence in items(inspection, "recommendation"))
    return Text("Recommendation: ", style="bold").append(sentences, style="not bold")
