"""Under-reaching made visible: how far nodes lie from the labelled nodes of each class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evengraph.inspection.edges import Bools, Ints, Wiring

Words = NDArray[np.uint64]
BITS = 64


@dataclass(frozen=True, kw_only=True)
class Reach:
    """How many nodes without a label lie near a labelled one.

    Args:
        hops: How far was looked.
        nodes: Nodes without a label, the hidden ones included.
        per_class: For each class, the nodes within 1, 2, ... hops of a labelled node of it.
        any_class: The nodes within 1, 2, ... hops of any labelled node.
        beyond: Nodes further than `hops` from every labelled node.
        never_per_class: For each class, the nodes that no path joins to a labelled node of it.
        never: The nodes that no path joins to any labelled node.
    """

    hops: int
    nodes: int
    per_class: tuple[tuple[int, ...], ...]
    any_class: tuple[int, ...]
    beyond: int
    never_per_class: tuple[int, ...]
    never: int


def measure_reach(
    wiring: Wiring, component: Ints, labels: Ints, labelled: Bools, num_classes: int, hops: int
) -> Reach:
    """Search breadth-first from the labelled nodes of all classes at once.

    A node keeps one bit a class, and a hop is one pass over the edges for each 64 classes.

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
        mine = labelled & (labels >= first) & (labels < first + width)
        state = np.zeros(len(labels), dtype=np.uint64)
        state[mine] = np.uint64(1) << (labels[mine] - first).astype(np.uint64)
        counts = np.zeros((hops, width), dtype=np.int64)
        for hop in range(hops):
            state = _one_hop(wiring, state)
            near[hop] |= state != 0
            counts[hop] = _count_bits(state[others], width)
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


def _one_hop(wiring: Wiring, state: Words) -> Words:
    """Every node takes over the bits of its neighbours."""
    rows = np.flatnonzero(np.diff(wiring.indptr))  # reduceat has no notion of an empty row
    wider = state.copy()
    if len(rows):
        wider[rows] |= np.bitwise_or.reduceat(state[wiring.indices], wiring.indptr[rows])
    return wider


def _count_bits(state: Words, width: int) -> list[int]:
    return [int(np.count_nonzero(state & np.uint64(1 << bit))) for bit in range(width)]


def _never(
    component: Ints, labels: Ints, labelled: Bools, num_classes: int
) -> tuple[tuple[int, ...], int]:
    """Nodes whose component holds no labelled node of a class, and of any class."""
    waiting = np.bincount(component[~labelled], minlength=int(component.max()) + 1)
    total = int(waiting.sum())
    found = []
    for label in range(num_classes):
        reached = np.unique(component[labelled & (labels == label)])
        found.append(total - int(waiting[reached].sum()))
    reached = np.unique(component[labelled])
    return tuple(found), total - int(waiting[reached].sum())
