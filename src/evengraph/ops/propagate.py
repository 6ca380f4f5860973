"""Adjacency matrices, and the normalised matrices that graphs are propagated with."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary
from torch_geometric.data import Data

from evengraph.core.task import check_edges, count_relations, edge_weight
from evengraph.fast.device_graphs import adjacency_tensor, means, normalised, scaled_by_mean
from evengraph.ops.sparse import Sparse, from_scipy

Normalisation = Literal["symmetric", "row"]
Matrix: TypeAlias = "sp.spmatrix | Tensor"
"""A matrix of a graph: SciPy's on the host, a CSR tensor on a GPU."""


def adjacency(edge_index: Tensor, num_nodes: int, weight: Tensor | None = None) -> sp.csr_matrix:
    """The adjacency matrix: A[i, j] is 1, or the weight, of an edge from i to j.

    Repeated edges count once, their weights are summed; self-loops are dropped.

    Shapes:
        edge_index: (2, E), weight: (E,)
    """
    check_edges(edge_index, num_nodes)
    source, target = edge_index.cpu().numpy()
    keep = source != target
    values = np.ones(int(keep.sum()), dtype=np.float32)
    if weight is not None:
        values = weight.detach().cpu().numpy().astype(np.float64)[keep]
    matrix = sp.csr_matrix((values, (source[keep], target[keep])), shape=(num_nodes, num_nodes))
    if weight is None:
        matrix.data[:] = 1
    return matrix


def undirected_adjacency(
    edge_index: Tensor, num_nodes: int, weight: Tensor | None = None
) -> sp.csr_matrix:
    """The adjacency matrix with every edge read in both directions, the larger weight in both.

    Built once per graph: as long as the tensor of edges lives unchanged, callers share the matrix
    and must not write into it.
    """
    if edge_index.is_inference() or (weight is not None and weight.is_inference()):
        return _undirected(edge_index, num_nodes, weight)  # such tensors count no changes
    state = num_nodes, edge_index._version, None if weight is None else weight._version
    known = _UNDIRECTED.get(edge_index)
    if known is None or known[0] != state or known[1] is not weight:
        known = state, weight, _undirected(edge_index, num_nodes, weight)
        _UNDIRECTED[edge_index] = known
    matrix: sp.csr_matrix = known[2]
    return matrix


_UNDIRECTED: MutableMapping[Tensor, Any] = WeakIdKeyDictionary()


def _undirected(edge_index: Tensor, num_nodes: int, weight: Tensor | None) -> sp.csr_matrix:
    matrix = adjacency(edge_index, num_nodes, weight)
    return matrix.maximum(matrix.T).tocsr()


def weighted_adjacency(graph: Data) -> sp.csr_matrix:
    """The undirected adjacency matrix of a graph, with its edge weights if it has any.

    Weights are divided by their mean, so that their unit does not matter and a self-loop of
    weight 1 weighs as much as an average edge. Equal weights are as good as none.
    """
    weight = edge_weight(graph)
    matrix = undirected_adjacency(graph.edge_index, graph.num_nodes, weight)
    if weight is None:
        return matrix
    matrix = matrix.copy()
    matrix.eliminate_zeros()
    mean = matrix.data.mean() if matrix.nnz else 1.0
    return (matrix / mean).astype(np.float32).tocsr()


def undirected_matrix(edge_index: Tensor, num_nodes: int) -> Matrix:
    """`undirected_adjacency`, built on the device of the edges."""
    if edge_index.is_cuda:
        return adjacency_tensor(edge_index, num_nodes, undirected=True)
    return undirected_adjacency(edge_index, num_nodes)


def graph_matrix(graph: Data) -> Matrix:
    """`weighted_adjacency`, built on the device of the graph."""
    if not graph.edge_index.is_cuda:
        return weighted_adjacency(graph)
    weight = edge_weight(graph)
    matrix = adjacency_tensor(graph.edge_index, graph.num_nodes, weight, undirected=True)
    return matrix if weight is None else scaled_by_mean(matrix)


def normalise(matrix: sp.spmatrix, how: Normalisation) -> sp.csr_matrix:
    """Add a self-loop to every node of an undirected graph and divide by degrees.

    `symmetric` is D^-1/2 (A + I) D^-1/2, `row` is D^-1 (A + I); D holds the row sums of A + I,
    so no degree is zero and an isolated node keeps its own row.
    """
    probe = np.random.default_rng(0).random(matrix.shape[0])
    if not np.allclose(matrix @ probe, matrix.T @ probe):
        raise ValueError("The matrix must be symmetric: list each edge in both directions.")
    looped = (matrix + sp.identity(matrix.shape[0], format="csr")).astype(np.float64)
    degree = np.asarray(looped.sum(axis=1)).ravel()
    if how == "row":
        return sp.diags(1 / degree) @ looped
    root = sp.diags(degree**-0.5)
    return root @ looped @ root


def propagation_matrix(
    matrix: Matrix,
    device: torch.device,
    *,
    how: Normalisation = "symmetric",
    dtype: torch.dtype = torch.float32,
) -> Sparse:
    """`normalise` a graph and put it on a device; a tensor is there already."""
    if isinstance(matrix, Tensor):
        return normalised(matrix, how, dtype)
    result = normalise(matrix, how)
    if how == "row":
        return Sparse.from_scipy(result, device, dtype)
    return Sparse.symmetric(from_scipy(result, device, dtype))


def with_self_loops(matrix: sp.spmatrix, device: torch.device) -> Sparse:
    """An undirected graph with a self-loop at every node, on a device."""
    looped = matrix + sp.identity(matrix.shape[0], format="csr")
    return Sparse.symmetric(from_scipy(looped, device, torch.float32))


def neighbour_means(
    matrix: Matrix, device: torch.device, dtype: torch.dtype = torch.float32
) -> Sparse:
    """The matrix that averages over neighbours by weight, without the node; 0 if there are none.

    A tensor is on the device already, and symmetric.
    """
    if isinstance(matrix, Tensor):
        return means(matrix, dtype)
    degree = np.asarray(matrix.sum(axis=1, dtype=np.float64)).ravel()
    return Sparse.from_scipy(sp.diags(1 / np.where(degree, degree, 1)) @ matrix, device, dtype)


def diffuse(propagation: Sparse, x: Tensor, steps: int, teleport: float) -> Tensor:
    """Propagate features for some steps; each adds a share of the original ones again."""
    again = teleport * x
    for _ in range(steps):
        x = (propagation @ x).mul_(1 - teleport).add_(again)  # new memory would take as long again
    return x


class Average(NamedTuple):
    """A mean over neighbours: the matrix, and how often it is applied."""

    matrix: Sparse
    steps: int

    def __call__(self, x: Tensor) -> Tensor:
        """The means of rows, (N, F)."""
        for _ in range(self.steps):
            x = self.matrix @ x
        return x


def neighbour_averages(
    graph: Data,
    hops: int,
    dtype: torch.dtype = torch.float32,
    union: Matrix | None = None,
) -> list[Average]:
    """The means over neighbours 1, 2, ... hops away in all edges, then over those per relation.

    Args:
        graph: The graph, with `relation_index` if its relations stay apart.
        hops: How many means to take over all edges; without any, there are none per relation.
        dtype: Of the matrices.
        union: `weighted_adjacency` or `graph_matrix` of the graph, if it is known already.
    """
    if not hops:
        return []
    device = graph.edge_index.device
    union = graph_matrix(graph) if union is None else union
    means = neighbour_means(union, device, dtype)
    averages = [Average(means, steps) for steps in range(1, hops + 1)]
    for relation in range(count_relations(graph)):
        matrix = relation_adjacency(graph, relation)
        averages.append(Average(neighbour_means(matrix, device, dtype), 1))
    return averages


def relation_adjacency(graph: Data, relation: int) -> sp.csr_matrix:
    """The neighbours of every node in one relation, (N, N); not symmetric if it has a direction."""
    chosen = graph.relation_index[0] == relation
    weight = graph.relation_weight[chosen] if "relation_weight" in graph else None
    return adjacency(graph.relation_index[1:, chosen], graph.num_nodes, weight)


FAR = 10.0  # scaled values of spread columns are clipped here: an outlier is an outlier
SPREAD = 1.349  # quartile distance of a normal distribution with unit variance
SAMPLE = 2**22  # entries that quartiles are taken from
ROWS = 4_096  # rows that are read at a time
FEWEST = 100  # rows of that sample, however many columns there are


def sample_step(num_rows: int, num_columns: int) -> int:
    """Of how many rows one is in the sample that quartiles are taken from."""
    return max(num_rows // max(SAMPLE // max(num_columns, 1), FEWEST), 1)


class Scaling(NamedTuple):
    """How each column is shifted and scaled.

    A spread column is centred at its median and divided by its quartile distance. A column whose
    quartiles are equal, such as a word or a flag, is shifted by its most frequent value, usually
    zero, and divided by its largest absolute value: dividing by its deviation would make a rare
    word as large as it is rare.

    Shapes:
        centre, scale: float32, (F,)
        spread: bool, (F,)
    """

    centre: Tensor
    scale: Tensor
    spread: Tensor

    @classmethod
    def of(cls, x: Tensor) -> Scaling:
        """Measure columns; quartiles are those of evenly spaced rows if there are many entries.

        Shapes:
            x: (N, F)
        """
        x = x.detach().float()
        return cls.measure(x[:: sample_step(*x.shape)], x.split(ROWS))

    @classmethod
    def measure(cls, sample: Tensor, parts: Iterable[Tensor]) -> Scaling:
        """Measure columns: quartiles in a sample of the rows, largest values in parts of all."""
        sample = sample.sort(dim=0).values
        low, centre, high = (
            sample[int(share * (sample.shape[0] - 1))] for share in (0.25, 0.5, 0.75)
        )
        spread = high > low
        largest = torch.stack([(part - centre).abs().amax(0) for part in parts]).amax(0)
        scale = torch.where(spread, (high - low) / SPREAD, largest)
        return cls(centre, torch.where(scale > 0, scale, 1.0), spread)

    def __call__(self, x: Tensor) -> Tensor:
        """Scale the columns of a table, float32, (n, F)."""
        scaled = (x.float() - self.centre) / self.scale
        return torch.where(self.spread, scaled.clamp(-FAR, FAR), scaled)
