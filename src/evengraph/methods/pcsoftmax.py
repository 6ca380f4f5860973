"""PC-softmax: the plain network, its predictions corrected for class sizes afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from torch import Tensor

from evengraph.methods.bases.network import NetworkKind, NetworkMethod
from evengraph.nn.networks import Backbone
from evengraph.ops.losses import ClassTerms, prior_offsets


@final
@dataclass(kw_only=True)
class PCSoftmax(NetworkMethod):
    """Train with the plain loss, then divide each class's probability by its size.

    A network trained on unequal classes predicts frequent ones too often. The logarithm of the
    number of labelled nodes is subtracted from each logit, in predictions and in validation.

    Cost:
        O(E h + nnz(X) h) per epoch, as GCN.

    Departs:
        The target distribution is uniform. The paper's other proposal, a regularised loss, is left
        out.

    Reference:
        Hong, Han, Choi, Seo, Kim and Chang, "Disentangling Label Distribution for Long-Tailed
        Visual Recognition", CVPR 2021.
    """

    title = "PC-softmax"

    backbone: Backbone = "gcn"
    network: NetworkKind = "comparison"

    def _class_terms(self, class_counts: Tensor) -> ClassTerms:
        # p(c | x) / n_c, normalised, is the softmax of z_c - log n_c
        return ClassTerms(predict_offsets=prior_offsets(class_counts))
