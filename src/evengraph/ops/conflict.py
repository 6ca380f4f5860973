"""How far labelled nodes stand between classes, and what they then count (ReNode)."""

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
    """What each labelled node counts: the more it meets of other classes, the less.

    Args:
        adjacency: Of an undirected graph, without self-loops.
        nodes: Those with labels.
        labels: Their classes.
        class_counts: Labelled nodes of each class.
        least: Weight of the node with most conflict.
        most: Weight of the node with least.

    Shapes:
        adjacency: (N, N)
        nodes, labels, returns: (n,)
        class_counts: (C,)
    """
    propagation = propagation_matrix(adjacency, nodes.device, how="symmetric")
    return cosine_weights(conflict(propagation, nodes, labels, class_counts), least, most)


def conflict(propagation: Sparse, nodes: Tensor, labels: Tensor, class_counts: Tensor) -> Tensor:
    """How much of what other classes say, on average over their nodes, each labelled node meets.

    With Pi for personalised PageRank, which is symmetric here, the nodes of class c spread
    g_c = Pi y_c / n_c, and node v of class y meets the sum over c other than y of (Pi g_c)_v: two
    products with C columns.

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
    met = personalised_pagerank(propagation, others, TELEPORT)[nodes]
    return met.gather(1, labels.unsqueeze(1)).squeeze(1)


def cosine_weights(conflicts: Tensor, least: float, most: float) -> Tensor:
    """Weights from `most` for the least conflict to `least` for the most, along half a cosine.

    Shapes:
        conflicts, returns: (n,)
    """
    ranks = conflicts.argsort(stable=True).argsort()
    angle = math.pi * ranks / max(ranks.numel() - 1, 1)
    return least + (most - least) * (1 + angle.cos()) / 2
