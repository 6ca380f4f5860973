"""What to know about a packed graph: size, classes, and which methods fit the machine.

Nothing is read as a whole: degrees and classes in passes, edges from a sample of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from rich.console import Group, RenderableType
from rich.text import Text

from evengraph.core.machine import available_memory, format_size
from evengraph.disk.learners import LEARNERS
from evengraph.disk.packed_graph import PackedGraph
from evengraph.methods import METHODS
from evengraph.methods.bases.method import TYPICAL_EPOCHS, estimate, stored_width
from evengraph.report.terminal import plain_table

SCHEMA = 1
SAMPLED_BLOCKS, BLOCK_ROWS = 64, 4096
PASS_ROWS = 1 << 22
MAX_CLASSES = 20


def inspect_packed(packed: PackedGraph) -> dict[str, Any]:
    """Measure a packed graph without reading it as a whole; JSON-compatible."""
    largest = isolated = 0
    for start in range(0, packed.num_nodes, PASS_ROWS):
        degrees = np.diff(packed.indptr[start : start + PASS_ROWS + 1])
        largest = max(largest, int(degrees.max(initial=0)))
        isolated += int((degrees == 0).sum())
    same = sampled = 0  # edges between labelled nodes, in blocks of rows across the graph
    step = max(packed.num_nodes // SAMPLED_BLOCKS, BLOCK_ROWS)
    for start in range(0, packed.num_nodes, step):
        pointers = packed.indptr[start : start + BLOCK_ROWS + 1]
        others = packed.y[np.asarray(packed.indices[pointers[0] : pointers[-1]])]
        labels = np.repeat(packed.y[start : start + BLOCK_ROWS], np.diff(pointers))
        known = (labels >= 0) & (others >= 0)
        same += int((labels[known] == others[known]).sum())
        sampled += int(known.sum())
    free, cores, width = available_memory(), torch.get_num_threads(), stored_width(packed.x)
    return {
        "schema": SCHEMA,
        "packed": True,
        "name": str(packed.header.get("name", packed.path.name)),
        "num_nodes": packed.num_nodes,
        "num_edges": packed.num_edges // 2,  # undirected
        "num_features": packed.num_features,
        "class_names": packed.class_names,
        "class_counts": tuple(packed.header.get("class_counts", ())),
        "mean_degree": packed.num_edges / max(packed.num_nodes, 1),
        "largest_degree": largest,
        "isolated": isolated,
        "homophily": same / sampled if sampled else None,
        "sampled_edges": sampled,
        "disk": sum(packed.array(name).nbytes for name in packed.header["arrays"]),
        "free_memory": free,
        "cores": cores,
        "epochs": TYPICAL_EPOCHS,
        "methods": tuple(_method_fit(name, packed, width, free, cores) for name in METHODS),
    }


def _method_fit(
    name: str, packed: PackedGraph, width: float, free: int, cores: int
) -> dict[str, Any]:
    """Memory and seconds that a method takes, about, and whether it fits in memory or on disk.

    None stands for what was not measured; `width` is the stored width of the features.
    """
    method, on_disk = METHODS[name], METHODS[name] in LEARNERS
    cost = estimate(name, packed.num_nodes, packed.num_edges, packed.num_features, width)
    return {
        "method": name,
        "title": method.title,
        "on_disk": on_disk,
        "memory": None if cost is None else cost.memory,
        "seconds": None if cost is None else cost.seconds / cores,
        "fits": on_disk or (None if cost is None else cost.memory <= free),
    }


def packed_view(inspection: Mapping[str, Any]) -> Group:
    """Show size, classes, and what methods need."""
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
    counts = list(zip(inspection["class_names"], inspection["class_counts"], strict=True))
    table = plain_table(["class"], ["labelled", "share"], dim=["share"])
    for name, count in sorted(counts, key=lambda pair: -pair[1])[:MAX_CLASSES]:
        share = count / max(inspection["num_nodes"], 1)
        table.add_row(Text(str(name)), f"{count:,}", f"{share:.2%}")
    labelled = sum(count for _, count in counts)
    table.add_row(Text("unlabelled"), f"{inspection['num_nodes'] - labelled:,}", "")
    parts: list[RenderableType] = [line, Text(), table]
    homophily = inspection["homophily"]
    if homophily is not None:
        text = f"Neighbours share a class on {homophily:.0%} of {inspection['sampled_edges']:,}"
        parts.append(Text(f"{text} sampled edges.", style="dim"))
    return Group(*parts, Text(), methods_view(inspection))


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
