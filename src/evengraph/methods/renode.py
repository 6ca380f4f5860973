"""ReNode: labelled nodes on the border between classes count for less."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from evengraph.methods.base import at_least, one_of
from evengraph.methods.labelled import LabelledMethod
from evengraph.methods.margin import MarginMethod
from evengraph.ops import (
    Sparse,
    inverse_class_weights,
    log_sizes,
    normalised,
    personalised_pagerank,
    undirected_adjacency,
)
from evengraph.task import Task

TELEPORT = 0.15


@final
@dataclass(kw_only=True)
class ReNode(LabelledMethod, MarginMethod):
    """Trust labelled nodes in the middle of their class more than those between classes.

    What a labelled node says spreads over the graph as personalised PageRank. Where that meets
    what other classes say, there is a conflict. Labelled nodes are ranked by how much of it they
    meet, and weigh from `most` (no conflict) down to `least`, along half a cosine. A loss that
    minds class sizes goes with it; `margin="tam"` is TAM upon it.

    Args:
        least: Weight of the node with most conflict.
        most: Weight of the node with least.
        loss: What is weighed: `cross_entropy`, `reweight` (times mean class size over class size)
            or `balanced_softmax`.

    Shapes:
        task.graph.x: (N, F)
        predict_proba: (N, C)

    Cost:
        O(E h + nnz(X) h) an epoch, as GCN, and once some 200 products of the graph with C columns;
        the original's inverse of an N x N matrix is never built.

    Departs:
        Network and training are those of the comparison; the original has half its width, a
        decaying step and at most 200 epochs. It offers focal and class-balanced losses, too.

    Reference:
        Chen, Lin, Zhao, Ren, Li, Zhou and Sun, "Topology-Imbalance Learning for Semi-Supervised
        Node Classification", NeurIPS 2021.
    """

    title = "ReNode"

    least: float = 0.5
    most: float = 1.5
    loss: Literal["cross_entropy", "reweight", "balanced_softmax"] = "reweight"

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("least", self.least, 0)
        at_least("most", self.most, self.least)
        one_of("loss", self.loss, ("cross_entropy", "reweight", "balanced_softmax"))

    def _loss(self, task: Task) -> Callable[[Tensor], Tensor]:
        graph, counts = task.graph, task.class_counts
        labels, margins = graph.y[task.train], self._margins(task)
        matrix = undirected_adjacency(graph.edge_index, graph.num_nodes)
        propagation = normalised(matrix, graph.x.device, how="symmetric")
        conflicts = conflict(propagation, task.train.nonzero().squeeze(1), labels, counts)
        weights = by_rank(conflicts, self.least, self.most)
        if self.loss == "reweight":
            weights = weights * (counts.float().mean() * inverse_class_weights(counts))[labels]
        sizes = log_sizes(counts)
        raised = sizes if self.loss == "balanced_softmax" else torch.zeros_like(sizes)

        def loss(logits: Tensor) -> Tensor:
            rows = logits[task.train] + raised + margins(logits)
            return (weights * cross_entropy(rows, labels, reduction="none")).mean()

        return loss

    @property
    def _batches(self) -> bool:
        return False  # weights of nodes, not of classes


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


def by_rank(conflicts: Tensor, least: float, most: float) -> Tensor:
    """Weights from `most` for the least conflict to `least` for the most, along half a cosine.

    Shapes:
        conflicts, returns: (n,)
    """
    ranks = conflicts.argsort(stable=True).argsort()
    angle = math.pi * ranks / max(ranks.numel() - 1, 1)
    return least + (most - least) * (1 + angle.cos()) / 2
