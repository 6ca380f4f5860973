"""Focal loss: well-classified nodes count for less."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from torch import Tensor

from evengraph.core.task import Task
from evengraph.methods.bases.network import NetworkKind, NetworkMethod
from evengraph.nn.networks import Backbone
from evengraph.ops.losses import focal_cross_entropy, inverse_class_weights


@final
@dataclass(kw_only=True)
class Focal(NetworkMethod):
    """Reduce the loss of nodes that are already classified well: cross-entropy times (1 - p)^gamma.

    Nodes of frequent classes are soon predicted with a high probability p and then count for
    little; the rest of the loss comes from hard nodes, many of them of rare classes.

    Args:
        gamma: How much less well-classified nodes count; 0 is cross-entropy.
        balance: Also weight nodes by one over the size of their class, as the paper's alpha may.

    Cost:
        O(E h + nnz(X) h) per epoch, as GCN.

    Departs:
        The paper's detector has a sigmoid for each class; here is one softmax over all.

    Reference:
        Lin, Goyal, Girshick, He and Dollar, "Focal Loss for Dense Object Detection", ICCV 2017.
    """

    search_space = {"gamma": (1.0, 2.0), "balance": (False, True)}
    limits = {"gamma": 0}

    backbone: Backbone = "gcn"
    network: NetworkKind = "comparison"
    gamma: float = 2.0
    balance: bool = True

    def _loss(self, task: Task) -> Callable[[Tensor], Tensor]:
        nodes = task.train_nodes
        labels = task.graph.y[nodes]
        weights = inverse_class_weights(task.class_counts) if self.balance else None
        # the mean of -(1 - p_y)^gamma log p_y, with `balance` weighted by alpha_y = 1 / n_y
        return lambda logits: focal_cross_entropy(logits[nodes], labels, self.gamma, weights)
