"""Re-weight: rare classes count for more in the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.methods.bases.method import at_least, whole
from evengraph.methods.bases.supervised import LabelledMethod
from evengraph.ops import inverse_class_weights, rare_classes


@final
@dataclass(kw_only=True)
class Reweight(LabelledMethod):
    """Let rare classes speak louder in the loss of a GCN.

    A node of a rare class weighs 1 + scale, any other 1, and the loss is the weighted mean. With
    `balance` a node weighs one over the size of its class, so that all classes have equal say.

    Args:
        scale: How much more a rare class weighs; zero is the plain loss.
        balance: Weigh by inverse class size instead.
        minority: How many of the smallest classes are rare; 0: those that are nearer in size, by
            ratio, to the smallest class than to the largest.

    Shapes:
        task.graph.x: (N, F)
        predict_proba: (N, C)

    Cost:
        O(E h + nnz(X) h) an epoch, as GCN.

    Departs:
        The comparison's public code, and so the published row, merely doubles the weight of the
        rare classes; the usual re-weighting by inverse frequency is `balance`.

    Reference:
        Yuan and Ma, "Sampling + Reweighting: Boosting the Performance of AdaBoost on Imbalanced
        Datasets", IJCNN 2012; in the form of Yun, Kim, Yoon and Park, "LTE4G: Long-Tail Experts
        for Graph Neural Networks", CIKM 2022.
    """

    title = "Re-weight"
    search_space = {"balance": (False, True)}
    compared_by_default = True

    scale: float = 1.0
    balance: bool = False
    minority: int = 0

    @classmethod
    def graph_defaults(cls, graph: Data) -> dict[str, Any]:
        """Weight classes by inverse frequency."""
        return {**super().graph_defaults(graph), "balance": True}

    def describe_defaults(self) -> str:
        """A sentence about `balance`."""
        weights = "Re-weight weights each class by one over its size (balance=true)."
        return weights if self.balance else ""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("scale", self.scale, 0)
        whole("minority", self.minority, 0)

    def _weights(self, class_counts: Tensor) -> Tensor:
        """Of each class, (C,)."""
        if self.balance:
            return inverse_class_weights(class_counts)
        rare = rare_classes(class_counts, self.minority)
        return torch.where(rare, 1 + self.scale, 1.0)
