"""Edges as methods need them: undirected, each once in both directions, no self-loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from evengraph.core.arrays import sorted_unique
from evengraph.tables.cells import Bools, Ints, location, plural, to_numbers
from evengraph.tables.notes import NoteKind, Notes


def undirected_edges(source: Ints, target: Ints, num_nodes: int, notes: Notes) -> Tensor:
    """Drop self-loops, merge repeated edges and add the reverse of each.

    Shapes:
        source, target: (M,), row numbers of nodes
        returns: (2, E), sorted, both directions of every edge
    """
    between = source != target
    loops = len(source) - int(between.sum())
    if loops:
        notes.add(NoteKind.DROPPED_EDGES, f"Dropped {plural(loops, 'self-loop')}.")
    source, target = source[between], target[between]
    directed = sorted_unique(source * num_nodes + target)
    repeated = len(source) - len(directed)
    if repeated:
        notes.add(NoteKind.MERGED_EDGES, f"Merged {plural(repeated, 'repeated edge')}.")
    source, target = directed // num_nodes, directed % num_nodes
    both = sorted_unique(np.concatenate([directed, target * num_nodes + source]))
    mutual = (2 * len(directed) - len(both)) // 2
    if mutual:
        text = f"Merged {plural(mutual, 'edge')} given in both directions."
        notes.add(NoteKind.MERGED_EDGES, text)
    if mutual * 2 < len(directed):
        notes.add(NoteKind.UNDIRECTED, "Edges are treated as undirected.")
    return torch.from_numpy(np.stack([both // num_nodes, both % num_nodes]))


def positive_weights(weights: Any, table: str, notes: Notes) -> Bools:
    """Which rows are edges by their weight, (M,): those above 0; negative ones raise an error."""
    numbers = to_numbers(weights, table)
    negative = numbers < 0
    if negative.any():
        row = int(negative.argmax())
        raise ValueError(
            f"{location(table, weights.name, row)} is {numbers[row]:g}; a weight must not be "
            "negative: no method supports signed edges. Leave such rows out."
        )
    zero, missing = int((numbers == 0).sum()), int(np.isnan(numbers).sum())
    for count, reason in (zero, "weight 0"), (missing, "no weight"):
        if count:
            notes.add(NoteKind.DROPPED_EDGES, f"Dropped {plural(count, 'edge')}: {reason}.")
    positive: Bools = numbers > 0
    if positive.any():
        text = f"Weights (column {str(weights.name)!r}) only decide which rows are edges."
        notes.add(NoteKind.UNUSED_WEIGHTS, f"{text} No method uses them.")
    return positive
