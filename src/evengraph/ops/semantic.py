"""Semantic connectivity: propagation over clusters without building them as edges (Eq. 5, 6)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from evengraph.ops.propagate import csr, has_kernels, product
from evengraph.ops.row_chunks import Pieces, cut_evenly


class Clusters(NamedTuple):
    """Cluster of each node, with what propagation over the clusters needs.

    Shapes:
        assignment: int64, (N,)
        members: sparse CSR, (K, N), one where a node belongs to a cluster
        share: (K, 1), one over the degree n + 1 of a node in a cluster of n
    """

    assignment: Tensor
    members: Tensor
    share: Tensor
    pieces: Pieces | None = None  # members, cut for a card


def prepare_clusters(assignment: Tensor, num_clusters: int, dtype: torch.dtype) -> Clusters:
    """Sort the nodes by cluster once, so that each propagation is two linear passes."""
    sizes = torch.bincount(assignment, minlength=num_clusters)
    ones = torch.ones(assignment.numel(), dtype=dtype, device=assignment.device)
    if assignment.is_cpu:
        # To CSC is a counting sort, linear where torch's sort is not.
        shape = (assignment.numel(), num_clusters)
        rows = np.arange(assignment.numel() + 1)
        sorted_ = sp.csr_matrix((ones.numpy(), assignment.numpy(), rows), shape).tocsc()
        pointers, by_cluster = torch.from_numpy(sorted_.indptr), torch.from_numpy(sorted_.indices)
    else:
        pointers = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        by_cluster = torch.argsort(assignment, stable=True)
    members = csr(pointers, by_cluster, ones, (num_clusters, assignment.numel()))
    pieces = cut_evenly(pointers, assignment.numel()) if has_kernels(assignment.device) else None
    return Clusters(assignment, members, (1 / (sizes + 1).to(dtype)).unsqueeze(1), pieces)


def semantic_propagate(
    x: Tensor, clusters: Tensor | Clusters, nodes: Tensor | None = None
) -> Tensor:
    """Propagate over D^-1/2 (A_sem + I) D^-1/2, where A_sem joins the nodes of a cluster.

    A_sem has ones on its diagonal, as a node shares its own cluster, and the identity comes on
    top. A node in a cluster of n therefore has degree n + 1, and its propagated value is
    (sum of its cluster + its own) / (n + 1). That takes time and memory linear in N x d, where
    the product with A_sem itself takes N^2 / K x d.

    Args:
        x: Values to propagate.
        clusters: Cluster id of each node, or the same prepared by `prepare_clusters`.
        nodes: Give the propagated values of these nodes alone; each at most once.

    Shapes:
        x: (N, d), or (R, N, d) with clusters of all R * N nodes
        clusters: (N,)
        nodes: int64, (M,)
        returns: (N, d), or (M, d) with nodes
    """
    if x.dim() == 3:
        return semantic_propagate(x.flatten(0, 1), clusters).view_as(x)
    if isinstance(clusters, Tensor):
        if clusters.shape != x.shape[:1]:
            raise ValueError(
                f"clusters must hold one id for each of the {x.shape[0]} rows of x, "
                f"got shape {tuple(clusters.shape)}."
            )
        num_clusters = int(clusters.max()) + 1 if clusters.numel() else 0
        clusters = prepare_clusters(clusters, num_clusters, x.dtype)
    if not x.numel():
        return x.clone()
    if nodes is None:
        propagated: Tensor = _Propagate.apply(x, clusters)  # type: ignore[no-untyped-call]
    else:
        propagated = _PropagateTo.apply(x, clusters, nodes)  # type: ignore[no-untyped-call]
    return propagated


class _Propagate(torch.autograd.Function):
    """The matrix is symmetric: the gradient is propagated just as the values are."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, clusters: Clusters) -> Tensor:
        ctx.clusters = clusters
        return propagated(x, clusters)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return propagated(gradients[0], ctx.clusters), None


def propagated(x: Tensor, clusters: Clusters, output: Tensor | None = None) -> Tensor:
    """What `semantic_propagate` gives, without gradients.

    Shapes:
        x, output, returns: (N, d)
    """
    assignment, members, share, pieces = clusters
    kernels = has_kernels(x.device)
    if not kernels or x.stride(1) != 1:
        x = x.contiguous()
    sums = product(members, x, pieces)  # (K, d)
    if kernels:
        from evengraph.kernels.cluster_gather import spread

        if output is None:
            output = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        return spread(x, sums, assignment, share, output)
    means = sums.mul_(share)
    result = means.index_select(0, assignment).addcmul_(x, share.index_select(0, assignment))
    return result if output is None else output.copy_(result)


class _PropagateTo(torch.autograd.Function):
    """Some rows of the same matrix; backwards, the same columns."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, clusters: Clusters, nodes: Tensor) -> Tensor:
        ctx.clusters, ctx.nodes = clusters, nodes
        assignment, members, share, pieces = clusters
        own = assignment.index_select(0, nodes)
        sums = product(members, x, pieces).index_select(0, own)
        return sums.add_(x.index_select(0, nodes)).mul_(share.index_select(0, own))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        assignment, _, share, _ = ctx.clusters
        own = assignment.index_select(0, ctx.nodes)
        scaled = gradients[0] * share.index_select(0, own)  # (M, d)
        sums = scaled.new_zeros(share.shape[0], scaled.shape[1]).index_add_(0, own, scaled)
        return sums.index_select(0, assignment).index_add_(0, ctx.nodes, scaled), None, None
