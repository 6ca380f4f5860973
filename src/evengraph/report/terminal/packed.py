"""An inspection of a packed graph for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from evengraph.core.sizes import format_size
from evengraph.report.terminal.table import plain_table

MAX_CLASSES = 20


def packed_view(inspection: Mapping[str, Any]) -> Group:
    """Show size, classes, and what methods need."""
    parts: list[RenderableType] = [_facts(inspection), Text(), _classes(inspection)]
    homophily = inspection["homophily"]
    if homophily is not None:
        text = f"Neighbours share a class on {homophily:.0%} of {inspection['sampled_edges']:,}"
        parts.append(Text(f"{text} sampled edges.", style="dim"))
    return Group(*parts, Text(), methods_view(inspection))


def _facts(inspection: Mapping[str, Any]) -> Text:
    line = Text.assemble((str(inspection["name"] or "The graph"), "bold"), "  ")
    facts = [
        f"{inspection['num_nodes']:,} nodes",
        f"{inspection['num_edges']:,} edges",
        f"{inspection['num_features']:,} features",
        f"{len(inspection['class_names'])} classes",
    ]
    degrees = f"degree: mean {inspection['mean_degree']:.1f} · max {inspection['largest_degree']:,}"
    disk, free = (format_size(inspection[name]) for name in ("disk", "free_memory"))
    line.append(" · ".join(facts), style="dim")
    line.append(f"\n{degrees} · isolated {inspection['isolated']:,}", style="dim")
    line.append(f"\n{disk} on disk · {free} of memory free", style="dim")
    return line


def _classes(inspection: Mapping[str, Any]) -> RenderableType:
    counts = list(zip(inspection["class_names"], inspection["class_counts"], strict=True))
    table = plain_table(["class"], ["labelled", "share"], dim=["share"])
    for name, count in sorted(counts, key=lambda pair: -pair[1])[:MAX_CLASSES]:
        share = count / max(inspection["num_nodes"], 1)
        table.add_row(Text(str(name)), f"{count:,}", f"{share:.2%}")
    labelled = sum(count for _, count in counts)
    table.add_row(Text("unlabelled"), f"{inspection['num_nodes'] - labelled:,}", "")
    return table


def methods_view(inspection: Mapping[str, Any]) -> Group:
    """A table of the methods that fit, then the names of the others."""
    measured = [item for item in inspection["methods"] if item["memory"] is not None]
    fitting = sorted((item for item in measured if item["fits"]), key=lambda item: item["seconds"])
    table = plain_table(["method", "data"], ["memory", "time"])
    free = inspection["free_memory"]
    for item in fitting:
        in_memory = item["memory"] <= free
        memory = format_size(item["memory"]) if in_memory else "any"
        where = "in memory" if in_memory else "on disk"
        also = ", or on disk" if in_memory and item["on_disk"] else ""
        table.add_row(item["title"], where + also, memory, _duration(item["seconds"]))
    cores = inspection["cores"]
    key = (
        f"time: about, for {inspection['epochs']} epochs on {cores} core{'s' if cores > 1 else ''}"
    )
    parts: list[RenderableType] = [table, Text(key, style="dim")]
    for title, names in (
        ("Too large for this machine", [i["title"] for i in measured if not i["fits"]]),
        ("Not measured", [i["title"] for i in inspection["methods"] if i["memory"] is None]),
    ):
        if names:
            parts.append(Text(f"{title}: {', '.join(names)}."))
    return Group(*parts)


def _duration(seconds: float) -> str:
    """Such as 40 s, 12 min or 3.5 h."""
    if seconds < 100:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"
