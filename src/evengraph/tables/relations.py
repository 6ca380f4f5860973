"""Relations: edges by type and direction, whose neighbours some methods average apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from evengraph.tables.cells import Floats, Ints, canonical_names, import_pandas, is_empty
from evengraph.tables.column_encoders import MIN_FREQUENCY_OF_FEW
from evengraph.tables.notes import NoteKind, Notes

MAX_RELATIONS = 10
"""Types that become relations, the most common first; edges of others only count as edges."""

DIRECTIONS = ("out", "in")


class Relations(NamedTuple):
    """What a graph holds about its relations.

    Shapes:
        arcs: int64, (3, R), relation, node and neighbour
        weight: float32, (R,); None without weights
    """

    names: tuple[str, ...]
    arcs: Tensor
    weight: Tensor | None


def common_types(values: Any, notes: Notes) -> tuple[str, ...]:
    """The types of edges that become relations, sorted."""
    names = canonical_names(values[~is_empty(values)])
    distinct, counts = np.unique(names.astype(str), return_counts=True)
    order = np.argsort(-counts, kind="stable")[:MAX_RELATIONS]
    types = tuple(str(distinct[i]) for i in sorted(order) if counts[i] >= MIN_FREQUENCY_OF_FEW)
    if len(types) < 2:
        notes.add(NoteKind.RELATIONS, "No two types of edges are common: there are no relations.")
    elif len(types) < len(distinct):
        text = f"Edges of the {len(types)} most common of {len(distinct)} types are relations."
        notes.add(NoteKind.RELATIONS, text)
    return types


def make_relations(
    source: Ints,
    target: Ints,
    num_nodes: int,
    *,
    types: Sequence[str] = (),
    type_of: Any = None,
    directed: bool = False,
    weight: Floats | None = None,
) -> Relations | None:
    """Edges as relations: one per type, and one per direction; None if that makes only one.

    Args:
        types: Names of the types that are relations.
        type_of: The type of each edge, (M,).
        directed: Keep targets of a node's edges apart from sources of edges that lead to it.

    Shapes:
        source, target, weight: (M,), without self-loops
    """
    codes = np.zeros(len(source), dtype=np.int64)
    if types:
        index = import_pandas().Index(types, dtype=object)
        codes = np.asarray(index.get_indexer(type_of), dtype=np.int64)
    names = list(types) or [""]
    if directed:
        names = [" ".join(filter(None, (name, way))) for name in names for way in DIRECTIONS]
    if len(names) < 2:
        return None
    kept = codes >= 0
    codes, source, target = codes[kept], source[kept], target[kept]
    values = np.ones(len(codes)) if weight is None else weight[kept]
    forward = 2 * codes if directed else codes
    arcs = np.stack([np.concatenate(pair) for pair in (
        (forward, forward + directed), (source, target), (target, source)
    )])  # fmt: skip
    keys = (arcs[0] * num_nodes + arcs[1]) * num_nodes + arcs[2]
    keys, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    sums = np.bincount(inverse, weights=np.tile(values, 2), minlength=len(keys))
    return Relations(
        tuple(names),
        torch.from_numpy(arcs[:, first]),
        None if weight is None else torch.from_numpy(sums).float(),
    )
