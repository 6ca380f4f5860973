"""Distinct pairs of neighbours from an edge list; degrees and connected components.

All measurements except the counts of listed edges ignore the direction of edges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from evengraph.core.arrays import sorted_unique

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Neighbours:
    """The undirected graph, without repeated edges and self-loops.

    Shapes:
        pairs: (2, P), the smaller node first
        indptr: (N + 1,), indices: (2 P,), the rows of a symmetric CSR matrix
    """

    num_nodes: int
    pairs: Ints
    indptr: Ints
    indices: Ints

    @property
    def degrees(self) -> Ints:
        """Number of neighbours, (N,)."""
        return np.diff(self.indptr)


@dataclass(frozen=True, kw_only=True)
class Edges:
    """How the edges are listed."""

    listed: int  # columns of edge_index
    pairs: int  # distinct pairs of different nodes, in either direction
    repeated: int  # repeats of an earlier edge in the same direction
    to_itself: int  # self-loops
    one_way: int  # pairs listed in one direction only
    directed: bool  # whether there is such a pair
    weighted: bool = False
    relations: tuple[str, ...] = ()  # kinds of edges that are averaged apart


@dataclass(frozen=True, kw_only=True)
class Degrees:
    """Numbers of neighbours."""

    median: float  # of all nodes, isolated ones included
    mean: float
    largest: int
    isolated: int  # nodes without neighbours
    isolated_share: float
    bins: tuple[tuple[int, int, int], ...]  # lowest and highest degree, number of nodes


@dataclass(frozen=True, kw_only=True)
class Components:
    """Connected components."""

    count: int  # an isolated node is one
    largest: int  # nodes in the largest component
    unlabelled: int  # components without a labelled node
    unlabelled_nodes: int  # nodes in these


def read_edges(edge_index: Ints, num_nodes: int) -> tuple[Neighbours, Edges]:
    """Build the undirected graph and count edges.

    Args:
        edge_index: Sources and targets, in any order, with repeats and self-loops.
        num_nodes: Number of nodes, isolated ones included.

    Shapes:
        edge_index: (2, E)
    """
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise ValueError(f"graph.edge_index must have two rows, got shape {edge_index.shape}.")
    source, target = edge_index.astype(np.int64, copy=False)
    if source.size and not 0 <= edge_index.min() <= edge_index.max() < num_nodes:
        bad = edge_index.min() if edge_index.min() < 0 else edge_index.max()
        raise ValueError(
            f"graph.edge_index must hold node ids from 0 to {num_nodes - 1}, got {bad}."
        )
    arcs = sorted_unique(source * num_nodes + target)
    first, second = np.divmod(arcs, num_nodes)
    different = first != second
    first, second = first[different], second[different]
    keys = _pairs(first, second, num_nodes)
    pairs = np.stack(np.divmod(keys, num_nodes))
    both = np.concatenate([keys, pairs[1] * num_nodes + pairs[0]])
    both.sort()
    row, indices = np.divmod(both, num_nodes)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=num_nodes))])
    one_way = 2 * len(keys) - len(first)  # a pair listed in both directions has two arcs
    edges = Edges(
        listed=source.size,
        pairs=len(keys),
        repeated=source.size - len(arcs),
        to_itself=int((source == target).sum()),
        one_way=one_way,
        directed=one_way > 0,
    )
    return Neighbours(num_nodes, pairs, indptr, indices), edges


def count_edges(edge_index: Ints, num_nodes: int) -> int:
    """Number of distinct pairs of different nodes, in either direction.

    Shapes:
        edge_index: (2, E)
    """
    source, target = edge_index.astype(np.int64, copy=False)
    different = source != target
    return len(_pairs(source[different], target[different], num_nodes))


def count_degrees(neighbours: Neighbours) -> Degrees:
    """Count the neighbours of every node."""
    degrees = neighbours.degrees
    isolated = int((degrees == 0).sum())
    # bin 0 holds degree 0, bin 1 degree 1, bin 2 degrees 2 and 3, bin 3 degrees 4 to 7
    counts = np.bincount(np.frexp(degrees)[1])
    bins = tuple((2**n // 2, max(2**n - 1, 0), int(count)) for n, count in enumerate(counts))
    return Degrees(
        median=float(np.median(degrees)),
        mean=float(degrees.mean()),
        largest=int(degrees.max()),
        isolated=isolated,
        isolated_share=isolated / neighbours.num_nodes,
        bins=bins,
    )


def component_ids(neighbours: Neighbours) -> Ints:
    """Component of each node, (N,)."""
    ones = np.ones(len(neighbours.indices), dtype=np.int8)
    shape = (neighbours.num_nodes, neighbours.num_nodes)
    matrix = sp.csr_matrix((ones, neighbours.indices, neighbours.indptr), shape=shape)
    ids: Ints = connected_components(matrix, directed=False)[1].astype(np.int64)
    return ids


def count_components(component: Ints, labelled: Bools) -> Components:
    """Count components, and those without a labelled node.

    Shapes:
        component, labelled: (N,)
    """
    sizes = np.bincount(component)
    without = np.bincount(component[labelled], minlength=len(sizes)) == 0
    return Components(
        count=len(sizes),
        largest=int(sizes.max()),
        unlabelled=int(without.sum()),
        unlabelled_nodes=int(sizes[without].sum()),
    )


def _pairs(source: Ints, target: Ints, num_nodes: int) -> Ints:
    """One key per pair of joined nodes, sorted."""
    small, large = np.minimum(source, target), np.maximum(source, target)
    return sorted_unique(small * num_nodes + large)


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
