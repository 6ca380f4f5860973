"""Class-balanced loss: weights by the effective number of nodes of a class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from torch import Tensor

from evengraph.methods.bases.network import NetworkKind, NetworkMethod
from evengraph.nn.networks import Backbone
from evengraph.ops.losses import ClassTerms, effective_number_weights


@final
@dataclass(kw_only=True)
class ClassBalanced(NetworkMethod):
    """Weight classes by one over their effective size, which grows more slowly than their size.

    The more nodes a class has, the less a further one adds: n nodes count as
    (1 - beta^n) / (1 - beta). The loss is the weighted mean of cross-entropy.

    Args:
        beta: 0 is the plain loss, near 1 a class is weighted by one over its size.

    Cost:
        O(E h + nnz(X) h) per epoch, as GCN.

    Departs:
        Weights are not scaled to sum to the number of classes: in a weighted mean that cancels. Of
        the losses that the paper weights, it is the softmax one.

    Reference:
        Cui, Jia, Lin, Song and Belongie, "Class-Balanced Loss Based on Effective Number of
        Samples", CVPR 2019.
    """

    title = "Class-balanced"
    limits = {"beta": "fraction"}

    backbone: Backbone = "gcn"
    network: NetworkKind = "comparison"
    beta: float = 0.9999

    def _class_terms(self, class_counts: Tensor) -> ClassTerms:
        # (1 - beta) / (1 - beta^n_c), one over the effective number
        return ClassTerms(weights=effective_number_weights(class_counts, self.beta))
