"""Products between some of the nodes, others in each replica, whose number is known beforehand.

A loss on a few examples needs the last layers at these and their neighbours alone. Which nodes
those are changes from epoch to epoch; a recorded epoch needs shapes that do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from evengraph.ops.propagate import Sparse, has_kernels, product
from evengraph.ops.row_chunks import Pieces
from evengraph.ops.semantic import Clusters, propagated


class Subset(NamedTuple):
    """Some of the N nodes of each replica, in ascending order.

    Shapes:
        nodes: int64, (R, M), -1 where there are fewer
        places: int32, (R, N), of each node in the list, -1 if it is not there
    """

    nodes: Tensor
    places: Tensor

    @property
    def filled(self) -> Tensor:
        """The nodes, with some node of its own where there are fewer, for use as an index."""
        return self.nodes.clamp(min=0)


def subset(chosen: Tensor, limit: int) -> Subset:
    """List the chosen nodes of each replica, of which there are no more than the limit.

    Shapes:
        chosen: bool, (R, N)
    """
    order = chosen.cumsum(1) - 1
    places = torch.where(chosen, order, -1)
    spare = torch.where(chosen, order, limit)  # all others into a column that is cut off
    nodes = torch.full((chosen.shape[0], limit + 1), -1, device=chosen.device)
    every = torch.arange(chosen.shape[1], device=chosen.device).expand_as(chosen)
    nodes = nodes.scatter(1, spare, every)[:, :limit]
    return Subset(nodes.contiguous(), places.int())


def neighbours(chosen: Tensor, matrix: Sparse) -> Tensor:
    """Nodes that the rows of chosen ones meet, in a matrix without negative entries.

    Shapes:
        chosen, returns: bool, (R, N)
        matrix: (N, N)
    """
    met = matrix.transposed_product(chosen.t().to(matrix.matrix.dtype).contiguous())
    return (met > 0).t().contiguous()


@dataclass(frozen=True, eq=False)
class Between:
    """Rows `to` and columns `of` a matrix, of each replica, for use as `between @ x`.

    Shapes:
        matrix: (N, N)
        x: (R, N, d), or (R, M, d) for the nodes `of`
    """

    matrix: Sparse
    to: Subset
    of: Subset | None = None

    def __matmul__(self, x: Tensor) -> Tensor:
        result: Tensor = _Between.apply(x, self.matrix, self.to, self.of)  # type: ignore[no-untyped-call]
        return result


class _Between(torch.autograd.Function):
    """Backwards, rows and columns change places."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Sparse, to: Subset, of: Subset | None) -> Tensor:
        ctx.parts = matrix, to, of
        return _between(matrix.matrix, matrix.pieces, x, to, of)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        matrix, to, of = ctx.parts
        transposed = matrix.transpose, matrix.transposed_pieces
        return _between(*transposed, gradients[0], of, to), None, None, None


def _between(
    matrix: Tensor, pieces: Pieces | None, x: Tensor, to: Subset | None, of: Subset | None
) -> Tensor:
    places = None if of is None else of.places
    if has_kernels(x.device):
        from evengraph.ops.spmm import deterministic_product, rows_of_product

        if to is not None:
            return rows_of_product(matrix, x, to.nodes, places)
        assert pieces is not None
        return deterministic_product(matrix, x, pieces, places=places)
    whole = product(matrix, _everywhere(x, of), pieces)
    return whole if to is None else _at(whole, to)


def semantic_rows(x: Tensor, clusters: Clusters, to: Subset) -> Tensor:
    """What `semantic_propagate` gives some nodes of each replica; where there are fewer, anything.

    Shapes:
        x: (R, N, d), with clusters of all R * N nodes
        returns: (R, M, d)
    """
    result: Tensor = _SemanticRows.apply(x, clusters, to)  # type: ignore[no-untyped-call]
    return result


class _SemanticRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, clusters: Clusters, to: Subset) -> Tensor:
        ctx.parts = clusters, to
        assignment, members, share, pieces = clusters
        sums = product(members, x.flatten(0, 1), pieces)
        own = assignment.view(x.shape[:2]).gather(1, to.filled)  # (R, M), the cluster of each
        return (sums[own] + _at(x, to)) * share[own]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        clusters, to = ctx.parts
        gradient = gradients[0]
        if has_kernels(gradient.device):
            return _spread_back(gradient.contiguous(), clusters, to), None, None
        whole = _everywhere(gradient, to)
        return propagated(whole.flatten(0, 1), clusters).view_as(whole), None, None


def _spread_back(gradient: Tensor, clusters: Clusters, to: Subset) -> Tensor:
    """The gradient of all nodes from that of some, without filling it up with zeros."""
    from evengraph.kernels.cluster_gather import spread
    from evengraph.ops.spmm import deterministic_product

    replicas, count, width = gradient.shape
    first = torch.arange(replicas, device=gradient.device, dtype=torch.int32).unsqueeze(1) * count
    places = torch.where(to.places < 0, -1, to.places + first).flatten()  # among all replicas
    flat = gradient.flatten(0, 1)
    assert clusters.pieces is not None
    sums = deterministic_product(clusters.members, flat, clusters.pieces, places=places)
    output = flat.new_empty(places.numel(), width)
    spread(flat, sums, clusters.assignment, clusters.share, output, places)
    return output.view(replicas, -1, width)


def _at(x: Tensor, some: Subset) -> Tensor:
    """The rows of some nodes; zeros where there are fewer."""
    index = some.filled.unsqueeze(2).expand(-1, -1, x.shape[2])
    return x.gather(1, index) * (some.nodes >= 0).unsqueeze(2)


def _everywhere(x: Tensor, some: Subset | None) -> Tensor:
    """The rows of some nodes, with zeros for all others."""
    if some is None:
        return x
    index = some.places.clamp(min=0).long().unsqueeze(2).expand(-1, -1, x.shape[2])
    return x.gather(1, index) * (some.places >= 0).unsqueeze(2)
