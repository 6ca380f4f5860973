"""Reach: distances of nodes from the labelled nodes of each class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evengraph.inspection.edges import Bools, Ints, Neighbours

Bits = NDArray[np.uint64]
BITS = 64


@dataclass(frozen=True, kw_only=True)
class Reach:
    """Numbers of unlabelled nodes near labelled ones."""

    hops: int  # largest distance counted
    nodes: int  # unlabelled nodes, including those with a hidden label
    per_class: tuple[tuple[int, ...], ...]  # within 1, 2, ... hops of a label of the class
    any_class: tuple[int, ...]  # within 1, 2, ... hops of any labelled node
    beyond: int  # further than `hops` from every labelled node
    never_per_class: tuple[int, ...]  # without a path to a labelled node of the class
    never: int  # without a path to any labelled node


def measure_reach(
    neighbours: Neighbours,
    component: Ints,
    labels: Ints,
    labelled: Bools,
    num_classes: int,
    hops: int,
) -> Reach:
    """Search breadth-first from the labelled nodes of all classes at once.

    A node holds one bit per class; a hop is one pass over the edges per 64 classes.

    Shapes:
        component, labels, labelled: (N,)
    """
    if hops < 1:
        raise ValueError(f"hops must be at least 1, got {hops}.")
    others = ~labelled
    near = np.zeros((hops, len(labels)), dtype=np.bool_)
    per_class: list[tuple[int, ...]] = []
    for first in range(0, num_classes, BITS):
        width = min(BITS, num_classes - first)
        members = labelled & (labels >= first) & (labels < first + width)
        state = np.zeros(len(labels), dtype=np.uint64)
        state[members] = np.uint64(1) << (labels[members] - first).astype(np.uint64)
        counts = np.zeros((hops, width), dtype=np.int64)
        for hop in range(hops):
            state = _one_hop(neighbours, state)
            near[hop] |= state != 0
            unlabelled = state[others]
            bits = (np.uint64(1 << bit) for bit in range(width))
            counts[hop] = [np.count_nonzero(unlabelled & bit) for bit in bits]
        per_class += [tuple(column) for column in counts.T.tolist()]
    within = tuple(near[:, others].sum(1).tolist())
    nodes = int(others.sum())
    never_per_class, never = _never(component, labels, labelled, num_classes)
    return Reach(
        hops=hops,
        nodes=nodes,
        per_class=tuple(per_class),
        any_class=within,
        beyond=nodes - within[-1],
        never_per_class=never_per_class,
        never=never,
    )


def _one_hop(neighbours: Neighbours, state: Bits) -> Bits:
    """Add the bits of its neighbours to every node."""
    rows = np.flatnonzero(np.diff(neighbours.indptr))  # reduceat does not support empty rows
    result = state.copy()
    if len(rows):
        result[rows] |= np.bitwise_or.reduceat(state[neighbours.indices], neighbours.indptr[rows])
    return result


def _never(
    component: Ints, labels: Ints, labelled: Bools, num_classes: int
) -> tuple[tuple[int, ...], int]:
    """Nodes whose component holds no labelled node of a class, and of any class."""
    sizes = np.bincount(component[~labelled], minlength=int(component.max()) + 1)

    def outside(members: Bools) -> int:
        return int(sizes.sum() - sizes[np.unique(component[members])].sum())

    per_class = [outside(labelled & (labels == label)) for label in range(num_classes)]
    return tuple(per_class), outside(labelled)
