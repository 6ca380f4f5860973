"""PC-softmax: the plain network, its answer compensated for class sizes afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from torch import Tensor

from evengraph.methods.bases.supervised import LabelledMethod
from evengraph.ops import log_sizes


@final
@dataclass(kw_only=True)
class PCSoftmax(LabelledMethod):
    """Train as if nothing were wrong, then divide each class's probability by its size.

    A network that learnt from unequal classes predicts frequent ones more often than features
    alone would have it. The logarithm of the number of labelled nodes is taken off each logit in
    the answer, and where the best epoch is chosen.

    Shapes:
        task.graph.x: (N, F)
        predict_proba: (N, C)

    Cost:
        O(E h + nnz(X) h) an epoch, as GCN.

    Reference:
        Hong, Han, Choi, Seo, Kim and Chang, "Disentangling Label Distribution for Long-Tailed
        Visual Recognition", CVPR 2021.
    """

    title = "PC-softmax"

    def _lowered(self, class_counts: Tensor) -> Tensor:
        return log_sizes(class_counts)
