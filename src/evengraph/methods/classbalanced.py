"""Class-balanced loss: weights by the effective number of nodes of a class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from torch import Tensor

from evengraph.methods.bases.method import fraction
from evengraph.methods.bases.supervised import LabelledMethod
from evengraph.ops import effective_number_weights


@final
@dataclass(kw_only=True)
class ClassBalanced(LabelledMethod):
    """Weigh classes by one over their effective size, which grows more slowly than their size.

    The more nodes a class has, the more a further one repeats what the others said: n nodes count
    as (1 - beta^n) / (1 - beta). The loss is the weighted mean of cross-entropy.

    Args:
        beta: 0 is the plain loss, near 1 a class weighs one over its size.

    Shapes:
        task.graph.x: (N, F)
        predict_proba: (N, C)

    Cost:
        O(E h + nnz(X) h) an epoch, as GCN.

    Reference:
        Cui, Jia, Lin, Song and Belongie, "Class-Balanced Loss Based on Effective Number of
        Samples", CVPR 2019.
    """

    title = "Class-balanced"

    beta: float = 0.9999

    def __post_init__(self) -> None:
        super().__post_init__()
        fraction("beta", self.beta)

    def _weights(self, class_counts: Tensor) -> Tensor:
        return effective_number_weights(class_counts, self.beta)
