"""Re-weight: rare classes count for more in the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from evengraph.methods.bases.network import NetworkKind, NetworkMethod
from evengraph.nn.networks import Backbone
from evengraph.ops.losses import ClassTerms, inverse_class_weights
from evengraph.ops.synthesis import rare_classes


@final
@dataclass(kw_only=True)
class Reweight(NetworkMethod):
    """Give rare classes a larger weight in the loss of a GCN.

    A node of a rare class has weight 1 + scale, any other 1, and the loss is the weighted mean.
    With `balance` the weight is one over the size of the class, so that all classes count equally.

    Args:
        scale: Additional weight of a rare class; 0 is the plain loss.
        balance: Weight by inverse class size instead.
        minority: Number of rare classes; 0: those nearer in ratio to the smallest than the largest.

    Cost:
        O(E h + nnz(X) h) per epoch, as GCN.

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
    limits = {"scale": 0, "minority": 0}
    _untuned_params = {"balance": True}

    backbone: Backbone = "gcn"
    network: NetworkKind = "comparison"
    scale: float = 1.0
    balance: bool = False
    minority: int = 0

    def _class_terms(self, class_counts: Tensor) -> ClassTerms:
        if self.balance:
            return ClassTerms(weights=inverse_class_weights(class_counts))
        rare = rare_classes(class_counts, self.minority)  # 1 + scale for these, 1 for others
        return ClassTerms(weights=torch.where(rare, 1 + self.scale, 1.0))
