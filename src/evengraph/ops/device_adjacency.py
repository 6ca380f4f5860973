"""Matrices of a graph as CSR tensors, built where the edges are.

SciPy builds them on one thread of the host, which takes minutes for hundreds of millions of edges.
`evengraph.ops.propagate` uses these functions for edges on a GPU; both give the same matrices.
"""

from __future__ import annotations

import torch
from torch import Tensor

from evengraph.core.graphs import check_edges
from evengraph.ops.sparse import Sparse, csr, product, scatter_sum


def adjacency_tensor(
    edge_index: Tensor,
    num_nodes: int,
    weight: Tensor | None = None,
    *,
    undirected: bool = False,
) -> Tensor:
    """The adjacency matrix as a CSR tensor; see `adjacency` and `undirected_adjacency`.

    Shapes:
        edge_index: (2, E), weight: (E,)
        returns: sparse CSR, (N, N); float32, with weights float64
    """
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
    """A symmetric matrix with every row multiplied by a factor; its transpose has scaled columns.

    So nothing has to be sorted to transpose it.
    """
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
