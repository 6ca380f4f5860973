"""What `evengraph inspect` found, on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from evengraph.report.run.values import DASH, items, number, part, plural, whole

MOST_CLASSES = 20
BAR = 12  # characters of the longest bar
EIGHTHS = " ▏▎▍▌▋▊▉█"
MARKS = {"warning": ("!", "bold red"), "note": ("·", "yellow"), "good": ("✓", "green")}


def inspection_view(found: Mapping[str, Any]) -> Group:
    """Size, classes with their reach, findings and what to do.

    Args:
        found: An inspection, as its inspect.json holds it.
    """
    parts: list[RenderableType] = [_facts(found), Text(), _classes(found)]
    left = len(items(part(found, "labels"), "names")) - MOST_CLASSES
    if left > 0:
        parts.append(Text(f"and {plural(left, 'smaller class', 'smaller classes')}", style="dim"))
    parts.append(_key(found))
    parts += [Text(), _findings(found), Text(), _recommendation(found)]
    return Group(*parts)


def _facts(found: Mapping[str, Any]) -> Text:
    labels, edges = part(found, "labels"), part(found, "edges")
    name = str(found.get("name") or "The graph")
    line = Text.from_markup(f"[bold]{escape(name)}[/]  ")
    facts = [
        f"{whole(found.get('num_nodes'))} nodes",
        f"{whole(edges.get('pairs'))} edges",
        f"{whole(part(found, 'features').get('count'))} features",
        plural(len(items(labels, "names")), "class", "classes"),
    ]
    line.append(" · ".join(facts), style="dim")
    line.append("\n")
    degrees, parts = part(found, "degrees"), part(found, "components")
    median = number(degrees.get("median"))
    more = [
        f"{whole(labels.get('num_labelled'))} labelled ({share(labels.get('labelled_share'))})",
        f"neighbours: median {median:g}" if median is not None else "",
        f"most {whole(degrees.get('largest'))}",
        f"none {whole(degrees.get('isolated'))}",
        f"{plural(int(number(parts.get('count')) or 0), 'component')}",
    ]
    return line.append(" · ".join(text for text in more if text), style="dim")


def _classes(found: Mapping[str, Any]) -> Table:
    """Classes from the largest to the smallest: labels, own neighbours, reach."""
    labels, reach = part(found, "labels"), part(found, "reach")
    counts = [number(value) or 0.0 for value in items(labels, "labelled")]
    nodes = number(reach.get("nodes")) or 0.0
    hops = int(number(reach.get("hops")) or 0) if nodes else 0
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("class", overflow="ellipsis", max_width=24, no_wrap=True)
    table.add_column("labelled", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("alike", justify="right", no_wrap=True)
    for hop in range(1, hops + 1):
        table.add_column(f"≤{hop}", justify="right", no_wrap=True)
    order = sorted(range(len(counts)), key=lambda place: (-counts[place], place))
    largest = max(counts, default=0.0)
    names, own = items(labels, "names"), items(part(found, "homophily"), "per_class")
    for place in order[:MOST_CLASSES]:
        near = items(reach, "per_class")[place] if hops else ()
        table.add_row(
            escape(str(names[place])),
            whole(counts[place]),
            bar(counts[place], largest),
            share(own[place] if place < len(own) else None),
            *(_shaded((number(count) or 0.0) / nodes) for count in near),
        )
    if hops:
        near = [(number(count) or 0.0) / nodes for count in items(reach, "any_class")]
        table.add_row("any class", "", "", "", *(share(value) for value in near), style="dim")
    return table


def _key(found: Mapping[str, Any]) -> Text:
    words = "alike: neighbours of the same class"
    if number(part(found, "reach").get("nodes")):
        words += "; ≤2: unlabelled nodes within two hops of a labelled node of the class"
    return Text(words, style="dim italic")


def bar(count: float, largest: float) -> str:
    """A bar of blocks, fine to an eighth of one; what is there is always seen."""
    if count <= 0 or largest <= 0:
        return ""
    eighths = max(round(8 * BAR * count / largest), 1)
    full, rest = divmod(eighths, 8)
    return "█" * full + EIGHTHS[rest].strip()


def share(value: object) -> str:
    """A share in whole percent."""
    found = number(value)
    return DASH if found is None else f"{100 * found:.0f}%"


def _shaded(value: float) -> Text:
    style = "red" if value < 0.25 else "yellow" if value < 0.75 else "green"
    return Text(share(value), style=style)


def _findings(found: Mapping[str, Any]) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in items(found, "findings"):
        mark, style = MARKS.get(str(part({"f": finding}, "f").get("level")), MARKS["note"])
        table.add_row(Text(mark, style=style), Text(str(finding["text"])))
    return table


def _recommendation(found: Mapping[str, Any]) -> Text:
    words = " ".join(str(sentence) for sentence in items(found, "recommendation"))
    return Text("What to do: ", style="bold").append(words, style="not bold")
