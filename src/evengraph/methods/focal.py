"""Focal loss: what is already learnt counts for less."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from torch import Tensor

from evengraph.core.task import Task
from evengraph.methods.bases.method import at_least
from evengraph.methods.bases.supervised import LabelledMethod
from evengraph.ops import focal_cross_entropy, inverse_class_weights


@final
@dataclass(kw_only=True)
class Focal(LabelledMethod):
    """Look away from nodes that are already right: cross-entropy times (1 - p)^gamma.

    Nodes of frequent classes are soon predicted with a high probability p and then count for
    little; what is left of the loss is about hard nodes, many of them of rare classes.

    Args:
        gamma: How much less well-learnt nodes count; 0 is cross-entropy.
        balance: Weigh nodes by one over the size of their class, too, as the paper's alpha may.

    Shapes:
        task.graph.x: (N, F)
        predict_proba: (N, C)

    Cost:
        O(E h + nnz(X) h) an epoch, as GCN.

    Departs:
        The paper's detector has a sigmoid for each class; here is one softmax over all.

    Reference:
        Lin, Goyal, Girshick, He and Dollar, "Focal Loss for Dense Object Detection", ICCV 2017.
    """

    title = "Focal"
    search_space = {"gamma": (1.0, 2.0), "balance": (False, True)}

    gamma: float = 2.0
    balance: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("gamma", self.gamma, 0)

    def _weights(self, class_counts: Tensor) -> Tensor | None:
        return inverse_class_weights(class_counts) if self.balance else None

    def _loss(self, task: Task) -> Callable[[Tensor], Tensor]:
        nodes, weights = task.train_nodes, self._weights(task.class_counts)
        labels = task.graph.y[nodes]
        return lambda logits: focal_cross_entropy(logits[nodes], labels, self.gamma, weights)

    @property
    def _batches(self) -> bool:
        return False  # the loss is no weighted sum of cross-entropies
