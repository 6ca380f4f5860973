"""Edges as they come, made into distinct pairs of neighbours; degrees and components of these.

Whether a graph can carry a label from one node to another does not depend on the direction in
which an edge was written down, so everything but the count of edges looks at undirected pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Wiring:
    """Neighbours of every node, without repeats and without itself.

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
    """How the edges were listed.

    Args:
        listed: Entries of edge_index.
        pairs: Distinct pairs of two different nodes, whatever the direction.
        repeated: Entries that are there already, in the same direction.
        to_itself: Entries from a node to itself.
        one_way: Pairs that are listed in one direction only.
        directed: Whether there is such a pair.
    """

    listed: int
    pairs: int
    repeated: int
    to_itself: int
    one_way: int
    directed: bool


@dataclass(frozen=True, kw_only=True)
class Degrees:
    """How many neighbours nodes have.

    Args:
        median: Of all nodes, isolated ones included.
        mean: Likewise.
        largest: Neighbours of the best connected node.
        isolated: Nodes without a neighbour.
        isolated_share: Their share of all nodes.
        bins: Lowest degree, highest degree and number of nodes; each bin twice as wide as the last.
    """

    median: float
    mean: float
    largest: int
    isolated: int
    isolated_share: float
    bins: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, kw_only=True)
class Components:
    """Parts of the graph that no edge joins.

    Args:
        count: How many there are; an isolated node is one.
        largest: Nodes in the largest.
        unlabelled: Components without any labelled node.
        unlabelled_nodes: Nodes in these.
    """

    count: int
    largest: int
    unlabelled: int
    unlabelled_nodes: int


def wire(edge_index: Ints, num_nodes: int) -> tuple[Wiring, Edges]:
    """Sort the edges out.

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
        raise ValueError(f"graph.edge_index must name nodes 0 to {num_nodes - 1}, got {bad}.")
    arcs = _distinct(source * num_nodes + target)
    first, second = np.divmod(arcs, num_nodes)
    apart = first != second
    first, second = first[apart], second[apart]
    keys = _pairs(first, second, num_nodes)
    pairs = np.stack(np.divmod(keys, num_nodes))
    both = np.concatenate([keys, pairs[1] * num_nodes + pairs[0]])
    both.sort()
    row, indices = np.divmod(both, num_nodes)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=num_nodes))])
    one_way = 2 * len(keys) - len(first)  # a pair listed both ways has two of the arcs
    edges = Edges(
        listed=source.size,
        pairs=len(keys),
        repeated=source.size - len(arcs),
        to_itself=int((source == target).sum()),
        one_way=one_way,
        directed=one_way > 0,
    )
    return Wiring(num_nodes, pairs, indptr, indices), edges


def count_edges(edge_index: Ints, num_nodes: int) -> int:
    """How many edges there are: one for two nodes, however often and whichever way it is listed.

    Shapes:
        edge_index: (2, E)
    """
    source, target = edge_index.astype(np.int64, copy=False)
    apart = source != target
    return len(_pairs(source[apart], target[apart], num_nodes))


def count_degrees(wiring: Wiring) -> Degrees:
    """Count the neighbours of every node."""
    degrees = wiring.degrees
    isolated = int((degrees == 0).sum())
    # bin 0 holds degree 0, bin 1 degree 1, bin 2 degrees 2 and 3, bin 3 degrees 4 to 7
    place = np.frexp(degrees)[1]
    counts = np.bincount(place)
    bins = tuple((2**n // 2, max(2**n - 1, 0), int(count)) for n, count in enumerate(counts))
    return Degrees(
        median=float(np.median(degrees)),
        mean=float(degrees.mean()),
        largest=int(degrees.max()),
        isolated=isolated,
        isolated_share=isolated / wiring.num_nodes,
        bins=bins,
    )


def component_of(wiring: Wiring) -> Ints:
    """Number of the component of each node, (N,)."""
    ones = np.ones(len(wiring.indices), dtype=np.int8)
    shape = (wiring.num_nodes, wiring.num_nodes)
    matrix = sp.csr_matrix((ones, wiring.indices, wiring.indptr), shape=shape)
    found: Ints = connected_components(matrix, directed=False)[1].astype(np.int64)
    return found


def count_components(component: Ints, labelled: Bools) -> Components:
    """Count components, and those that no label reaches.

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
    """A number for every two nodes that an edge joins, sorted."""
    small, large = np.minimum(source, target), np.maximum(source, target)
    return _distinct(small * num_nodes + large)


def _distinct(keys: Ints) -> Ints:
    """Sorted and without repeats; for millions of integers several times faster than np.unique."""
    keys = np.sort(keys)
    new = np.ones(len(keys), dtype=np.bool_)
    new[1:] = keys[1:] != keys[:-1]
    found: Ints = keys[new]
    return found
