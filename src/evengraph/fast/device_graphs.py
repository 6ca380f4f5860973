"""Matrices of a graph as CSR tensors, built where the edges are.

SciPy builds them on one thread of the host, which takes minutes for hundreds of millions of edges.
`evengraph.ops.sparse` uses these functions for edges on a GPU; both give the same matrices.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evengraph.core.task import check_edges
from evengraph.fast.thinning import Thinning
from evengraph.ops.sparse import Sparse, csr, product, row_entries, scatter_sum


def adjacency_tensor(
    edge_index: Tensor, num_nodes: int, weight: Tensor | None = None, *, undirected: bool = False
) -> Tensor:
    """`adjacency` or `undirected_adjacency` as a CSR tensor: float32, with weights float64."""
    check_edges(edge_index, num_nodes)
    source, target = edge_index.long()
    keys = source * num_nodes + target  # row by row, like the entries of the matrix
    proper = source != target
    if weight is not None:
        entries = _weighted_entries(keys[proper], weight[proper].double(), num_nodes, undirected)
        return _from_keys(*entries, num_nodes)
    keys = torch.unique(keys[proper])
    if undirected:
        reverse = torch.unique(_transposed(keys, num_nodes))
        if not torch.equal(keys, reverse):
            keys = torch.unique(torch.cat([keys, reverse]))
    return _from_keys(keys, torch.ones(keys.numel(), device=keys.device), num_nodes)


def _weighted_entries(
    keys: Tensor, weight: Tensor, num_nodes: int, undirected: bool
) -> tuple[Tensor, Tensor]:
    """Keys and weights of the entries: sums over repeats, then the larger of both directions."""
    keys, entry = torch.unique(keys, return_inverse=True)
    weight = scatter_sum(weight, entry, keys.numel())
    if undirected:
        both = torch.cat([keys, _transposed(keys, num_nodes)])
        keys, entry = torch.unique(both, return_inverse=True)
        zeros = weight.new_zeros(keys.numel())
        weight = zeros.scatter_reduce(0, entry, weight.repeat(2), "amax")
    return keys, weight


def _transposed(keys: Tensor, num_nodes: int) -> Tensor:
    return keys % num_nodes * num_nodes + keys // num_nodes if num_nodes else keys


def _from_keys(keys: Tensor, values: Tensor, num_nodes: int) -> Tensor:
    """A CSR tensor from sorted keys, row * N + column."""
    rows = torch.arange(num_nodes + 1, device=keys.device)
    pointers = torch.searchsorted(keys, rows * num_nodes)
    return csr(pointers, keys % max(num_nodes, 1), values, (num_nodes, num_nodes))


def scaled_by_mean(matrix: Tensor) -> Tensor:
    """Entries that are not zero, divided by their mean, in single precision."""
    keep = matrix.values() != 0
    counts = torch.cat([keep.new_zeros(1, dtype=torch.long), keep.cumsum(0)])
    pointers = counts[matrix.crow_indices().long()]
    values = matrix.values()[keep]
    values = (values / values.mean() if values.numel() else values).float()
    return csr(pointers, matrix.col_indices()[keep], values, _shape(matrix))


def normalised(matrix: Tensor, how: str, dtype: torch.dtype = torch.float32) -> Sparse:
    """`propagation_matrix` of a symmetric CSR tensor with an empty diagonal."""
    looped = _with_diagonal(matrix)
    degree = _row_sums(looped)
    if how == "row":
        return _scaled(looped, 1 / degree, dtype)
    root = degree**-0.5
    values = root[_rows(looped)] * looped.values()
    values = (values * root[looped.col_indices().long()]).to(dtype)
    return Sparse.symmetric(_with_values(looped, values))


def means(matrix: Tensor, dtype: torch.dtype = torch.float32) -> Sparse:
    """`neighbour_means` of a symmetric CSR tensor."""
    degree = _row_sums(matrix)
    return _scaled(matrix, 1 / torch.where(degree > 0, degree, 1.0), dtype)


def _scaled(matrix: Tensor, factor: Tensor, dtype: torch.dtype) -> Sparse:
    """A symmetric matrix with every row multiplied by a factor, the transpose with its columns."""
    rows = (factor[_rows(matrix)] * matrix.values()).to(dtype)
    columns = (factor[matrix.col_indices().long()] * matrix.values()).to(dtype)
    return Sparse(_with_values(matrix, rows), _with_values(matrix, columns))


def _with_values(matrix: Tensor, values: Tensor) -> Tensor:
    return csr(matrix.crow_indices(), matrix.col_indices(), values, _shape(matrix))


def _with_diagonal(matrix: Tensor) -> Tensor:
    """The matrix plus the identity, by shifting entries: those behind the diagonal one further."""
    size, columns = matrix.shape[0], matrix.col_indices()
    rows = _rows(matrix)
    position = torch.arange(rows.numel(), device=rows.device) + rows + (columns > rows)
    looped = torch.full((rows.numel() + size,), -1, dtype=columns.dtype, device=rows.device)
    looped[position] = columns
    values = torch.ones(looped.numel(), dtype=matrix.dtype, device=rows.device)
    values[position] = matrix.values()
    order = torch.arange(size + 1, device=rows.device)
    looped[looped < 0] = order[:-1].to(columns.dtype)  # the gaps, one per row
    return csr(matrix.crow_indices() + order, looped, values, _shape(matrix))


def _shape(matrix: Tensor) -> tuple[int, int]:
    return matrix.shape[0], matrix.shape[1]


def _rows(matrix: Tensor) -> Tensor:
    """The row of each entry."""
    return torch.repeat_interleave(matrix.crow_indices().diff().long())


def _row_sums(matrix: Tensor) -> Tensor:
    """Sums in double precision, (N,), the same every time."""
    ones = torch.ones(matrix.shape[1], 1, dtype=torch.float64, device=matrix.device)
    return product(_with_values(matrix, matrix.values().double()), ones).squeeze(1)


Block = tuple[Tensor, Tensor, Tensor]
"""Entries per row, (n,), and column and weight of each entry, row by row."""


class DevicePaths:
    """`evengraph.ops.structural.HostPaths` of a CSR tensor."""

    def __init__(self, matrix: Tensor, alpha: int) -> None:
        self.matrix, self.alpha, self.direct = matrix, alpha, matrix.col_indices().numel()
        pointers, columns = matrix.crow_indices().long(), matrix.col_indices().long()
        count = torch.ones(matrix.shape[0], dtype=torch.float64, device=columns.device)
        for _ in range(alpha):
            total = torch.cat([count.new_zeros(1), count[columns].cumsum(0)])
            count = count + total[pointers[1:]] - total[pointers[:-1]]
        self.walks = count.cpu().numpy()

    def weights(self, rows: NDArray[np.int64], thinning: Thinning | None = None) -> Block:
        """One over the distances."""
        keys, counts = self._nearness(rows)
        row, columns = keys // self.matrix.shape[1], keys % self.matrix.shape[1]
        weights = 1 / (self.alpha + 1 - counts).float()
        if thinning is not None:
            nodes = torch.from_numpy(rows).to(row.device)[row]
            keep, weights = thinning(nodes, columns, weights)
            row, columns, weights = row[keep], columns[keep], weights[keep]
        return torch.bincount(row, minlength=rows.size), columns.int(), weights

    def count(self, rows: NDArray[np.int64]) -> int:
        """The entries have to be found."""
        return self._nearness(rows)[0].numel()

    def join(self, blocks: Sequence[Block]) -> Tensor:
        """Blocks one below the other."""
        if not blocks:
            return self.matrix
        per_row, columns, weights = (torch.cat(parts) for parts in zip(*blocks, strict=True))
        pointers = torch.cat([per_row.new_zeros(1), per_row.cumsum(0)])
        size = self.matrix.shape[0]
        return csr(pointers, columns, weights, (size, size))

    def _nearness(self, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Index of the row times N plus the node, sorted, and alpha + 1 - distance."""
        # of the nested sets of nodes within 1, 2, ... alpha steps, it counts those with the node
        size, columns = self.matrix.shape[1], self.matrix.col_indices()
        nodes = torch.from_numpy(rows).to(columns.device)
        own = torch.arange(rows.size, device=columns.device) * size + nodes
        reached, sets = own, []
        for _ in range(self.alpha):
            owner, positions = row_entries(self.matrix, reached % size)
            further = reached[owner] // size * size + columns[positions]
            reached = torch.unique(torch.cat([reached, further]))
            sets.append(reached)
        keys, counts = torch.unique(torch.cat(sets), return_counts=True)
        other = keys % size != nodes[keys // size]
        return keys[other], counts[other]
