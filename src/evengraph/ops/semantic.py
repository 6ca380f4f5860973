"""Semantic connectivity: propagation over clusters without building them as edges (Eq. 5, 6)."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from evengraph.kernels.row_chunks import RowChunks, chunk_rows_fixed
from evengraph.ops.sparse import Sparse, csr, has_kernels, linear_map, product


class Clusters(NamedTuple):
    """Cluster of each node, prepared for propagation over the clusters.

    Shapes:
        assignment: int64, (N,)
        members: sparse CSR, (K, N), one where a node belongs to a cluster
        share: (K, 1), one over the degree n + 1 of a node in a cluster of n
    """

    assignment: Tensor
    members: Tensor
    share: Tensor
    chunks: RowChunks | None = None  # of members, on a GPU


def prepare_clusters(assignment: Tensor, num_clusters: int, dtype: torch.dtype) -> Clusters:
    """Sort the nodes by cluster once, so that each propagation is two linear passes."""
    sizes = torch.bincount(assignment, minlength=num_clusters)
    ones = torch.ones(assignment.numel(), dtype=dtype, device=assignment.device)
    if assignment.is_cpu:
        # Converting to CSC is a counting sort, which is linear; torch's sort is not.
        shape = (assignment.numel(), num_clusters)
        rows = np.arange(assignment.numel() + 1)
        by_cluster = sp.csr_matrix((ones.numpy(), assignment.numpy(), rows), shape).tocsc()
        pointers, nodes = torch.from_numpy(by_cluster.indptr), torch.from_numpy(by_cluster.indices)
    else:
        pointers = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        nodes = torch.argsort(assignment, stable=True)
    members = csr(pointers, nodes, ones, (num_clusters, assignment.numel()))
    kernels = has_kernels(assignment.device)
    chunks = chunk_rows_fixed(pointers, assignment.numel()) if kernels else None
    return Clusters(assignment, members, (1 / (sizes + 1).to(dtype)).unsqueeze(1), chunks)


def semantic_propagate(
    x: Tensor, clusters: Tensor | Clusters, nodes: Tensor | None = None
) -> Tensor:
    """Propagate over D^-1/2 (A_sem + I) D^-1/2, where A_sem joins the nodes of a cluster.

    A_sem has ones on its diagonal, as a node shares its own cluster, and the identity is added to
    that. A node in a cluster of n therefore has degree n + 1, and its propagated value is
    (sum of its cluster + its own) / (n + 1). That takes time and memory linear in N x d, where
    the product with A_sem itself takes N^2 / K x d.

    Args:
        x: Values to propagate.
        clusters: Cluster id of each node, or the result of `prepare_clusters`.
        nodes: Return the values of these nodes only; no repeats.

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
        propagate = partial(propagate_clusters, clusters=clusters)
        return linear_map(x, propagate, propagate)  # the matrix is symmetric
    return _propagate_to(x, clusters, nodes)


def propagate_clusters(x: Tensor, clusters: Clusters, output: Tensor | None = None) -> Tensor:
    """`semantic_propagate` of all nodes, without gradients.

    Shapes:
        x, output, returns: (N, d)
    """
    assignment, members, share, chunks = clusters
    kernels = has_kernels(x.device)
    if not kernels or x.stride(1) != 1:
        x = x.contiguous()
    sums = product(members, x, chunks)  # (K, d)
    if kernels:
        from evengraph.kernels.cluster_gather import gather_cluster_sums

        if output is None:
            output = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        return gather_cluster_sums(x, sums, assignment, share, output)
    means = sums.mul_(share)
    result = means.index_select(0, assignment).addcmul_(x, share.index_select(0, assignment))
    return result if output is None else output.copy_(result)


def _propagate_to(x: Tensor, clusters: Clusters, nodes: Tensor) -> Tensor:
    """Selected rows of the same matrix."""
    assignment, members, share, chunks = clusters
    cluster = assignment.index_select(0, nodes)
    node_share = share.index_select(0, cluster)

    def rows(x: Tensor) -> Tensor:
        sums = product(members, x, chunks).index_select(0, cluster)
        return sums.add_(x.index_select(0, nodes)).mul_(node_share)

    def columns(gradient: Tensor) -> Tensor:
        scaled = gradient * node_share  # (M, d)
        sums = scaled.new_zeros(share.shape[0], scaled.shape[1]).index_add_(0, cluster, scaled)
        return sums.index_select(0, assignment).index_add_(0, nodes, scaled)

    return linear_map(x, rows, columns)


def propagate_halves(x: Tensor, clusters: Clusters, structural: Sparse) -> Tensor:
    """Propagate the left half of the columns over clusters, the right half over a sparse matrix.

    On a GPU, a few large steps are faster than many small ones.

    Shapes:
        x, returns: (..., N, 2 d)
        structural: (N, N)
    """

    def transposed(gradient: Tensor) -> Tensor:
        matrix, chunks = structural.transpose, structural.transposed_chunks
        return _halves(gradient.contiguous(), clusters, matrix, chunks)

    matrix, chunks = structural.matrix, structural.chunks
    return linear_map(x, lambda x: _halves(x, clusters, matrix, chunks), transposed)


def _halves(x: Tensor, clusters: Clusters, matrix: Tensor, chunks: RowChunks | None) -> Tensor:
    output = torch.empty_like(x)
    (left, right), (to_left, to_right) = x.chunk(2, dim=-1), output.chunk(2, dim=-1)
    propagate_clusters(left.flatten(0, -2), clusters, to_left.flatten(0, -2))
    product(matrix, right, chunks, to_right)
    return output
