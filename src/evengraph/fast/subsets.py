"""Products restricted to subsets of the nodes, a different subset per replica, in fixed shapes.

A loss on a few examples needs the last layers at these nodes and their neighbours only. The nodes
change from epoch to epoch; a recorded epoch needs shapes that do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from evengraph.fast.row_chunks import RowChunks
from evengraph.ops.semantic import Clusters, propagate_clusters
from evengraph.ops.sparse import Sparse, has_kernels, linear_map, product


class Subset(NamedTuple):
    """At most M of the N nodes of each replica, in ascending order."""

    nodes: Tensor  # int64, (R, M), padded with -1
    positions: Tensor  # int32, (R, N), the index of each node in the list, -1 if it is not in it

    @property
    def padded(self) -> Tensor:
        """The nodes, padded with node 0, for use as an index."""
        return self.nodes.clamp(min=0)


def make_subset(mask: Tensor, limit: int) -> Subset:
    """List the nodes of each replica's mask, (R, N); there are at most `limit`."""
    order = mask.cumsum(1) - 1
    positions = torch.where(mask, order, -1)
    columns = torch.where(mask, order, limit)  # all others into a column that is cut off
    nodes = torch.full((mask.shape[0], limit + 1), -1, device=mask.device)
    ids = torch.arange(mask.shape[1], device=mask.device).expand_as(mask)
    nodes = nodes.scatter(1, columns, ids)[:, :limit]
    return Subset(nodes.contiguous(), positions.int())


def neighbour_mask(mask: Tensor, matrix: Sparse) -> Tensor:
    """Columns with an entry in a masked row of a matrix without negative entries, (R, N)."""
    sums = matrix.transposed_product(mask.t().to(matrix.matrix.dtype).contiguous())
    return (sums > 0).t().contiguous()


@dataclass(frozen=True, eq=False)
class SubsetMatrix:
    """Selected rows, and optionally columns, of a matrix per replica, for use as `matrix @ x`."""

    matrix: Sparse  # (N, N)
    rows: Subset
    columns: Subset | None = None  # of x, (R, M, d) then

    def __matmul__(self, x: Tensor) -> Tensor:
        matrix, rows, columns = self.matrix, self.rows, self.columns
        return linear_map(
            x,
            lambda x: _subset_product(matrix.matrix, matrix.chunks, x, rows, columns),
            lambda gradient: _subset_product(
                matrix.transpose, matrix.transposed_chunks, gradient, columns, rows
            ),
        )


def _subset_product(
    matrix: Tensor, chunks: RowChunks | None, x: Tensor, rows: Subset | None, columns: Subset | None
) -> Tensor:
    positions = None if columns is None else columns.positions
    if has_kernels(x.device):
        from evengraph.fast.triton_kernels import deterministic_product, product_rows

        if rows is not None:
            return product_rows(matrix, x, rows.nodes, positions)
        assert chunks is not None
        return deterministic_product(matrix, x, chunks, positions=positions)
    result = product(matrix, _scatter(x, columns), chunks)
    return result if rows is None else _gather(result, rows)


def semantic_propagate_subset(x: Tensor, clusters: Clusters, rows: Subset) -> Tensor:
    """`semantic_propagate` for a subset of each replica's nodes; padding rows are arbitrary."""
    assignment, members, share, chunks = clusters

    def propagate(x: Tensor) -> Tensor:
        sums = product(members, x.flatten(0, 1), chunks)
        cluster = assignment.view(x.shape[:2]).gather(1, rows.padded)  # (R, M)
        return (sums[cluster] + _gather(x, rows)) * share[cluster]

    def transposed(gradient: Tensor) -> Tensor:
        if has_kernels(gradient.device):
            return _semantic_backward(gradient.contiguous(), clusters, rows)
        full = _scatter(gradient, rows)
        return propagate_clusters(full.flatten(0, 1), clusters).view_as(full)

    return linear_map(x, propagate, transposed)


def _semantic_backward(gradient: Tensor, clusters: Clusters, rows: Subset) -> Tensor:
    """The gradient of all nodes from that of a subset, without padding it with zeros."""
    from evengraph.fast.triton_kernels import deterministic_product, gather_cluster_sums

    replicas, count, width = gradient.shape
    first = torch.arange(replicas, device=gradient.device, dtype=torch.int32).unsqueeze(1) * count
    positions = torch.where(rows.positions < 0, -1, rows.positions + first).flatten()
    flat = gradient.flatten(0, 1)
    assert clusters.chunks is not None
    sums = deterministic_product(clusters.members, flat, clusters.chunks, positions=positions)
    output = flat.new_empty(positions.numel(), width)
    gather_cluster_sums(flat, sums, clusters.assignment, clusters.share, output, positions)
    return output.view(replicas, -1, width)


def _gather(x: Tensor, subset: Subset) -> Tensor:
    """The rows of a subset, padded with zeros."""
    index = subset.padded.unsqueeze(2).expand(-1, -1, x.shape[2])
    return x.gather(1, index) * (subset.nodes >= 0).unsqueeze(2)


def _scatter(x: Tensor, subset: Subset | None) -> Tensor:
    """Rows of all nodes from those of a subset, zero for all others."""
    if subset is None:
        return x
    index = subset.positions.clamp(min=0).long().unsqueeze(2).expand(-1, -1, x.shape[2])
    return x.gather(1, index) * (subset.positions >= 0).unsqueeze(2)
