"""Weights of labelled nodes by their conflict with other classes (ReNode)."""

from __future__ import annotations

import math

import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from evengraph.ops.pagerank import personalised_pagerank
from evengraph.ops.propagate import propagation_matrix
from evengraph.ops.sparse import Sparse

TELEPORT = 0.15


def conflict_weights(
    adjacency: sp.spmatrix,
    nodes: Tensor,
    labels: Tensor,
    class_counts: Tensor,
    least: float = 0.5,
    most: float = 1.5,
) -> Tensor:
    """Weight of each labelled node: the more influence of other classes reaches it, the lower.

    Args:
        adjacency: An undirected graph without self-loops, (N, N).
        least: Weight of the node with the largest conflict.
        most: Weight of the node with the smallest.

    Shapes:
        nodes, labels, returns: (n,), labelled nodes
        class_counts: (C,)
    """
    propagation = propagation_matrix(adjacency, nodes.device, how="symmetric")
    return cosine_weights(conflict(propagation, nodes, labels, class_counts), least, most)


def conflict(propagation: Sparse, nodes: Tensor, labels: Tensor, class_counts: Tensor) -> Tensor:
    """Influence of other classes that reaches each labelled node, averaged over their nodes.

    Let Pi be personalised PageRank, which is symmetric here. Class c spreads g_c = Pi y_c / n_c,
    and node v of class y receives the sum over c other than y of (Pi g_c)_v: two products with C
    columns.

    Shapes:
        propagation: (N, N), symmetric
        nodes, labels: (n,)
        class_counts: (C,)
        returns: (n,)
    """
    start = torch.zeros(propagation.shape[0], class_counts.numel(), device=nodes.device)
    start[nodes] = one_hot(labels, class_counts.numel()) / class_counts.float()
    spread = personalised_pagerank(propagation, start, TELEPORT)
    others = spread.sum(1, keepdim=True) - spread
    received = personalised_pagerank(propagation, others, TELEPORT)[nodes]
    return received.gather(1, labels.unsqueeze(1)).squeeze(1)


def cosine_weights(conflicts: Tensor, least: float, most: float) -> Tensor:
    """Weights by rank, (n,), along half a cosine from `most` (smallest conflict) to `least`."""
    ranks = conflicts.argsort(stable=True).argsort()
    angle = math.pi * ranks / max(ranks.numel() - 1, 1)
    return least + (most - least) * (1 + angle.cos()) / 2
