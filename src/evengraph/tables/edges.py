"""Edges as the methods want them: undirected, each once in both directions, none to itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evengraph.tables.cells import numbers, place, were
from evengraph.tables.notes import Note, NoteKind

Ints = NDArray[np.int64]


def tidy_edges(source: Ints, target: Ints, num_nodes: int) -> tuple[Tensor, list[Note]]:
    """Drop self edges, merge repeated ones and add the other direction of each.

    Shapes:
        source, target: (M,), positions of nodes
        edge_index: (2, E), sorted, both directions of every edge
    """
    notes = []
    between = source != target
    loops = len(source) - int(between.sum())
    if loops:
        notes.append(Note(NoteKind.DROPPED_EDGES, f"{were(loops, 'self edge')} dropped."))
    source, target = source[between], target[between]
    directed = _once(source * num_nodes + target)
    if len(directed) < len(source):
        text = f"{were(len(source) - len(directed), 'repeated edge')} merged."
        notes.append(Note(NoteKind.MERGED_EDGES, text))
    source, target = directed // num_nodes, directed % num_nodes
    both = _once(np.concatenate([directed, target * num_nodes + source]))
    both_ways = (2 * len(directed) - len(both)) // 2
    if both_ways:
        text = f"{were(both_ways, 'edge')} given in both directions and merged."
        notes.append(Note(NoteKind.MERGED_EDGES, text))
    if both_ways * 2 < len(directed):
        notes.append(Note(NoteKind.UNDIRECTED, "Edges are taken as undirected."))
    edges = np.stack([both // num_nodes, both % num_nodes])
    return torch.from_numpy(edges), notes


def _once(codes: Ints) -> Ints:
    """Each number once, ascending; sorting is many times faster here than numpy's hashing."""
    codes = np.sort(codes)
    return codes[np.diff(codes, prepend=-1) > 0]


def weighed(weights: Any, table: str) -> tuple[NDArray[np.bool_], list[Note]]:
    """Which rows are an edge by their weight, (M,): those above 0; negative ones are refused."""
    found = numbers(weights, table)
    column = str(weights.name)
    negative = found < 0
    if negative.any():
        row = int(negative.argmax())
        raise ValueError(
            f"{place(table, column, row)} is {found[row]:g}; a weight must not be negative: no "
            "method here knows edges that push apart. Leave such rows out."
        )
    kept = found > 0
    notes = []
    for many, what in ((found == 0).sum(), "weight 0"), (np.isnan(found).sum(), "no weight"):
        if many:
            text = f"{were(int(many), 'edge')} dropped: {what}."
            notes.append(Note(NoteKind.DROPPED_EDGES, text))
    if kept.any():
        text = f"Weights (column {column!r}) only tell edges from none: no method uses them."
        notes.append(Note(NoteKind.UNUSED_WEIGHTS, text))
    return kept, notes
