"""What to know about a packed graph: size, classes, and which methods fit the machine.

Nothing is read as a whole: degrees and classes in passes, edges from a sample of rows.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from evengraph.core.sizes import available_memory
from evengraph.disk import PackedGraph
from evengraph.methods import METHODS
from evengraph.methods.bases.costs import TYPICAL_EPOCHS, estimate, stored_width
from evengraph.methods.bases.disk_model import DiskModel

SCHEMA = 1
SAMPLED_BLOCKS, BLOCK_ROWS = 64, 4096
PASS_ROWS = 1 << 22


@dataclass(frozen=True, kw_only=True)
class MethodFit:
    """Whether a method can be trained on this machine.

    Args:
        method: Its name.
        title: Its title.
        on_disk: Whether it can learn from rows on disk, in any memory.
        memory: Bytes in memory, about; None if it was not measured.
        seconds: Time for `epochs` epochs on this number of cores, about.
        fits: Whether it fits, in memory or on disk.
    """

    method: str
    title: str
    on_disk: bool
    memory: float | None
    seconds: float | None
    fits: bool | None


@dataclass(frozen=True, kw_only=True)
class PackedInspection:
    """The result of `inspect_packed`."""

    name: str
    num_nodes: int
    num_edges: int  # undirected
    num_features: int
    class_names: tuple[str, ...]
    class_counts: tuple[int, ...]
    mean_degree: float
    largest_degree: int
    isolated: int
    homophily: float | None  # share of sampled edges between labelled nodes of one class
    sampled_edges: int
    disk: int  # bytes of all arrays
    free_memory: int
    cores: int
    epochs: int
    methods: tuple[MethodFit, ...]

    def as_dict(self) -> dict[str, Any]:
        """The inspection as JSON-compatible values."""
        return {"schema": SCHEMA, "packed": True, **asdict(self)}


def inspect_packed(packed: PackedGraph) -> PackedInspection:
    """Measure a packed graph without reading it as a whole."""
    largest, isolated = _degrees(packed)
    homophily, sampled = _homophily(packed)
    arrays = [packed.array(name) for name in packed.header["arrays"]]
    free, cores, width = available_memory(), torch.get_num_threads(), stored_width(packed.x)
    return PackedInspection(
        name=str(packed.header.get("name", packed.path.name)),
        num_nodes=packed.num_nodes,
        num_edges=packed.num_edges // 2,
        num_features=packed.num_features,
        class_names=packed.class_names,
        class_counts=tuple(packed.header.get("class_counts", ())),
        mean_degree=packed.num_edges / max(packed.num_nodes, 1),
        largest_degree=largest,
        isolated=isolated,
        homophily=homophily,
        sampled_edges=sampled,
        disk=sum(array.nbytes for array in arrays),
        free_memory=free,
        cores=cores,
        epochs=TYPICAL_EPOCHS,
        methods=tuple(_method_fit(name, packed, width, free, cores) for name in METHODS),
    )


def _degrees(packed: PackedGraph) -> tuple[int, int]:
    """The largest degree and the number of nodes without neighbours, in passes."""
    largest = isolated = 0
    for start in range(0, packed.num_nodes, PASS_ROWS):
        degrees = np.diff(packed.indptr[start : start + PASS_ROWS + 1])
        largest = max(largest, int(degrees.max(initial=0)))
        isolated += int((degrees == 0).sum())
    return largest, isolated


def _homophily(packed: PackedGraph) -> tuple[float | None, int]:
    """Share of the edges that join nodes of one class, from blocks of rows across the graph."""
    same = total = 0
    step = max(packed.num_nodes // SAMPLED_BLOCKS, BLOCK_ROWS)
    for start in range(0, packed.num_nodes, step):
        pointers = packed.indptr[start : start + BLOCK_ROWS + 1]
        if len(pointers) < 2:
            continue
        neighbours = np.asarray(packed.indices[pointers[0] : pointers[-1]])
        labels = np.repeat(packed.y[start : start + BLOCK_ROWS], np.diff(pointers))
        others = packed.y[neighbours]
        known = (labels >= 0) & (others >= 0)
        same += int((labels[known] == others[known]).sum())
        total += int(known.sum())
    return (same / total if total else None), total


def _method_fit(name: str, packed: PackedGraph, width: float, free: int, cores: int) -> MethodFit:
    """What a method takes; `width` is the stored width of the features."""
    method = METHODS[name]
    on_disk = all(hasattr(method, part) for part in _disk_parts())
    width = packed.num_features if method.stores_dense else width
    cost = estimate(name, packed.num_nodes, packed.num_edges, width)
    fits = cost.memory <= free if cost is not None else None
    return MethodFit(
        method=name,
        title=method.title,
        on_disk=on_disk,
        memory=None if cost is None else cost.memory,
        seconds=None if cost is None else cost.seconds / cores,
        fits=on_disk or fits,
    )


def _disk_parts() -> list[str]:
    """Names of the functions of a method that learns on disk."""
    return [name for name in vars(DiskModel) if not name.startswith("_")]
