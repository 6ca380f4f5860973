"""What a graph tells of a node beside features: its place, and the known labels around it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, MutableMapping, Sequence
from typing import Any, TypeVar
from weakref import ref

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary
from torch_geometric.data import Data

from evengraph.core.rng import generator
from evengraph.core.task import edge_weight
from evengraph.ops.links import Link, links_of
from evengraph.ops.sparse import weighted_adjacency

DAMPING = 0.85  # of PageRank
RANK_STEPS = 20
PLACE_COLUMNS = 3
PARTS = 5  # of the labelled nodes; each is described by the labels of the others
SPREAD_STEPS = 6
RESTART = 0.1
TRIANGLE_BLOCK = 20_000_000  # products in memory at a time while triangles are counted
LEAST = 1e-7  # of a class that has not reached a node, before the logarithm

Result = TypeVar("Result")
_KNOWN: MutableMapping[Tensor, dict[Hashable, Any]] = WeakIdKeyDictionary()


class GraphState:
    """Which tensors a graph has, and their versions: tells another graph, or a change, apart."""

    def __init__(self, graph: Data) -> None:
        self._parts = [part if part is None else (ref(part), _version(part)) for part in _of(graph)]

    def holds_for(self, graph: Data) -> bool:
        """Whether the graph has the same tensors, unchanged."""
        return all(
            part is None and known is None
            if part is None or known is None
            else part is known[0]() and _version(part) == known[1]
            for part, known in zip(_of(graph), self._parts, strict=True)
        )


def _of(graph: Data) -> tuple[Tensor | None, ...]:
    relations = graph.get("relation_index"), graph.get("relation_weight")
    return graph.x, graph.edge_index, edge_weight(graph), *relations


def _version(tensor: Tensor) -> object:
    """Equal as long as nothing writes into a tensor; never for one that counts no changes."""
    return object() if tensor.is_inference() else tensor._version


def once_per_graph(graph: Data, key: Hashable, make: Callable[[], Result]) -> Result:
    """What `make` returns, kept as long as features and edges of the graph live unchanged.

    Folds, splits and methods share it; callers must not write into it.
    """
    known = known_of_graph(graph, key)
    if known is None:
        known = make()
        keep_of_graph(graph, key, known)
    result: Result = known
    return result


def keep_of_graph(graph: Data, key: Hashable, value: Any) -> None:
    """Keep a value as `once_per_graph` does, in place of what is kept under this key."""
    _KNOWN.setdefault(graph.edge_index, {})[key] = GraphState(graph), value


def known_of_graph(graph: Data, key: Hashable) -> Any:
    """What `once_per_graph` keeps for a graph; None if it keeps nothing."""
    state, known = _KNOWN.get(graph.edge_index, {}).get(key, (None, None))
    return known if state is not None and state.holds_for(graph) else None


def place_columns(graph: Data) -> Tensor:
    """Logarithm of PageRank, clustering coefficient, spread of the neighbours' degrees, (N, 3).

    Cost: O(E) per step of PageRank, O(E^1.5) at worst for triangles.
    """
    return once_per_graph(graph, "place", lambda: _place(graph))


def _place(graph: Data) -> Tensor:
    links = (weighted_adjacency(graph) != 0).astype(np.float64).tocsr()
    degree = links.getnnz(axis=1).astype(np.float64)
    mean = sp.diags(1 / np.maximum(degree, 1)) @ links
    rank, size = np.ones(len(degree)), len(degree)
    for _ in range(RANK_STEPS):  # what isolated nodes would pass on goes to all
        lost = rank[degree == 0].sum() / size
        rank = DAMPING * (mean.T @ rank + lost) + 1 - DAMPING
    clustering = 2 * triangles(links) / np.maximum(degree * (degree - 1), 1)
    logs = np.log1p(degree)
    spread = np.sqrt(np.maximum(mean @ logs**2 - (mean @ logs) ** 2, 0))
    columns = np.stack([np.log(rank), clustering, spread], axis=1)
    return torch.from_numpy(columns).to(graph.x.device, torch.float32)


def triangles(adjacency: Any) -> NDArray[np.float64]:
    """The number of triangles at each node of an undirected graph without self-loops, (N,)."""
    num_nodes, edges = adjacency.shape[0], adjacency.tocoo()
    # edges are directed at their end of higher degree, so that even a hub has few outgoing ones
    rank = np.empty(num_nodes, dtype=np.int64)
    rank[np.argsort(np.diff(adjacency.indptr), kind="stable")] = np.arange(num_nodes)
    upward = rank[edges.row] < rank[edges.col]
    ends = edges.row[upward], edges.col[upward]
    up = sp.csr_array((edges.data[upward], ends), shape=adjacency.shape)
    count = np.zeros(num_nodes)
    # a triangle u -> v -> w, u -> w: the first product counts it at u and w, the second at v
    for left in (up, up.T.tocsr()):
        for rows, closed in _closed_paths(left, up):
            count[rows] += np.asarray(closed.sum(axis=1)).ravel()
            if left is up:
                count += np.asarray(closed.sum(axis=0)).ravel()
    return count


def _closed_paths(left: Any, up: Any) -> Any:
    """Yield blocks of rows of (left @ up), restricted to the edges of `up`."""
    work = np.cumsum(left @ np.diff(up.indptr).astype(np.float64))
    start = 0
    while start < up.shape[0]:
        done = work[start - 1] if start else 0.0
        stop = max(int(np.searchsorted(work, done + TRIANGLE_BLOCK, side="right")), start + 1)
        rows = slice(start, stop)
        yield rows, (left[rows] @ up).multiply(up[rows]).tocsr()
        start = stop


def label_columns(
    graph: Data,
    nodes: Tensor,
    labels: Tensor,
    num_classes: int,
    num_links: int = 0,
    *,
    held_out: bool = False,
) -> Tensor:
    """Of every node, how often each class is known around it, (N, L).

    The share of each class among the labelled neighbours, and among theirs, each with one more
    node of the overall shares; and by personalised PageRank from all labelled nodes of a class,
    the logarithm less its mean over classes. For every link (`ops.links`), the share among those
    that share the node's value. Two classes need one column of each.

    To learn from, with `held_out`, a labelled node has columns that its label is not part of:
    labelled nodes are divided into parts, every class evenly, and each is described by the others.

    Cost: O(E C) for each of a few steps.
    """
    matrix, links = weighted_adjacency(graph).astype(np.float32), links_of(graph)[:num_links]
    nothing = Link(np.empty(0, np.int64), np.empty(0, np.int64), int(graph.num_nodes))
    links += [nothing] * (num_links - len(links))  # as in training, also in a graph without them
    index, known = nodes.cpu().numpy(), labels.cpu().numpy()
    out = _describe(matrix, links, index, known, num_classes)
    part = _parts(labels.cpu(), num_classes).numpy()
    for number in range(PARTS if held_out else 0):
        mine = part == number
        columns = _describe(matrix, links, index[~mine], known[~mine], num_classes)
        out[index[mine]] = columns[index[mine]]
    return torch.from_numpy(out).to(graph.x.device)


def _parts(labels: Tensor, num_classes: int) -> Tensor:
    """The part of each labelled node; every class is divided evenly, (n,)."""
    part = torch.empty_like(labels)
    for label in range(num_classes):
        members = (labels == label).nonzero().squeeze(1)
        order = torch.randperm(members.numel(), generator=generator(label))
        part[members[order]] = (torch.arange(members.numel()) + label) % PARTS
    return part


def label_width(num_classes: int, num_links: int = 0) -> int:
    """The number of label columns."""
    return (3 + num_links) * (1 if num_classes == 2 else num_classes)


def _describe(
    matrix: sp.csr_matrix, links: Sequence[Link], nodes: Any, labels: Any, num_classes: int
) -> Any:
    """The columns of all nodes by the labels of some."""
    start = np.zeros((matrix.shape[0], num_classes), np.float32)
    start[nodes, labels] = 1
    total = start.sum(0)
    degree = np.maximum(np.asarray(matrix.sum(1)).ravel(), np.float32(1e-12))
    mean = sp.diags(1 / degree).astype(np.float32) @ matrix
    near = matrix @ start
    counts = near, mean @ near, *(link.sums(start) for link in links)
    start /= np.maximum(total, 1)
    reach = start
    for _ in range(SPREAD_STEPS):
        reach = (1 - RESTART) * (mean @ reach) + RESTART * start
    return joined_label_columns(counts, reach, total)


def joined_label_columns(counts: Sequence[Any], reach: Any, total: Any) -> Any:
    """The columns from weights of each class around nodes, how far classes reach, and all labels.

    Shapes:
        counts, reach: (N, C); total: (C,)
    """
    prior = total / max(total.sum(), 1)
    columns = [(found + prior) / (found.sum(1, keepdims=True) + 1) for found in counts]
    logs = np.log(reach + LEAST)
    columns.insert(2, logs - logs.mean(1, keepdims=True))
    if len(total) == 2:
        columns = [column[:, 1:] for column in columns]
    return np.concatenate(columns, axis=1)
