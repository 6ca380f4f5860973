"""ReNode: labelled nodes on the border between classes count for less."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from torch import Tensor

from evengraph.core.task import Task
from evengraph.methods.bases.method import check_limit
from evengraph.methods.bases.network import MarginMethod, NetworkKind, NetworkMethod
from evengraph.nn.networks import Backbone
from evengraph.ops.losses import ClassLoss, class_loss, conflict_weights
from evengraph.ops.sparse import weighted_adjacency


@final
@dataclass(kw_only=True)
class ReNode(NetworkMethod, MarginMethod):
    """Give labelled nodes inside their class more weight than those between classes.

    Labels are propagated by personalised PageRank; where those of other classes reach a labelled
    node, there is a conflict. Labelled nodes are ranked by conflict and weighted from `most` (no
    conflict) down to `least`, along half a cosine. The loss may also depend on class sizes;
    `margin="tam"` adds TAM.

    Args:
        least: Weight of the node with most conflict.
        most: Weight of the node with least.
        loss: `cross_entropy`, `reweight` (by inverse class size) or `balanced_softmax`.

    Cost:
        O(E h + nnz(X) h) per epoch, as GCN, and once about 200 products of the graph with C
        columns; the original's inverse of an N x N matrix is never built.

    Departs:
        Network and training are by default those of the comparison; the original has half the
        width, a decaying learning rate, at most 200 epochs, and further losses.

    Reference:
        Chen, Lin, Zhao, Ren, Li, Zhou and Sun, "Topology-Imbalance Learning for Semi-Supervised
        Node Classification", NeurIPS 2021.
    """

    search_space = {"loss": ("cross_entropy", "reweight", "balanced_softmax")}
    limits = {"least": 0}

    backbone: Backbone = "gcn"
    network: NetworkKind = "comparison"
    least: float = 0.5
    most: float = 1.5
    loss: ClassLoss = "reweight"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_limit("most", self.most, self.least)

    def _loss(self, task: Task) -> Callable[[Tensor], Tensor]:
        graph, counts, margins = task.graph, task.class_counts, self._margins(task)
        nodes, labels = task.train_nodes, graph.y[task.train_nodes]
        matrix = weighted_adjacency(graph)
        # T_v = sum_u Pi[v, u] sum_{c != y} g_c[u]: Pi is personalised PageRank, g_c the mean of its
        # rows over class c. By rank r in [0, 1]: w_v = least + (most - least) (1 + cos pi r) / 2
        weights = conflict_weights(matrix, nodes, labels, counts, self.least, self.most)
        # the mean over labelled nodes of w_v times the loss
        loss = class_loss(self.loss, labels, counts, weights)
        return lambda logits: loss(logits[nodes], margins(logits))
