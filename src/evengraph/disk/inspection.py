"""What to know about a packed graph: size, classes and homophily.

Nothing is read as a whole: degrees and classes in passes, edges from a sample of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from evengraph.core.machine import available_memory, format_size
from evengraph.disk.packed_graph import PackedGraph
from evengraph.report.terminal import plain_table

SCHEMA = 2
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
        "free_memory": available_memory(),
    }


def packed_view(inspection: Mapping[str, Any]) -> Group:
    """Show size and classes."""
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
    return Group(*parts)
