"""Logit adjustment: the logits of frequent classes are raised in training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from torch import Tensor

from evengraph.methods.bases.network import NetworkKind, NetworkMethod
from evengraph.nn.networks import Backbone
from evengraph.ops.losses import ClassTerms, log_sizes


@final
@dataclass(kw_only=True)
class LogitAdjustment(NetworkMethod):
    """Raise the logits of frequent classes in training, by the logarithm of their sizes.

    The loss is cross-entropy of the logits plus `tau` log(n) for a class of n labelled nodes;
    predictions use the plain logits. A rare class must then win by a margin in training.

    Args:
        tau: Strength; 0 is the plain loss, 1 is balanced softmax.

    Cost:
        O(E h + nnz(X) h) per epoch, as GCN.

    Departs:
        Class sizes stand for the paper's priors: a constant added to all logits changes nothing.
        Its other form, which adjusts a trained network, is PC-softmax.

    Reference:
        Menon, Jayasumana, Rawat, Jain, Veit and Kumar, "Long-Tail Learning via Logit Adjustment",
        ICLR 2021.
    """

    title = "Logit adjustment"
    search_space = {"tau": (0.5, 1.0, 1.5)}
    limits = {"tau": 0}

    backbone: Backbone = "gcn"
    network: NetworkKind = "comparison"
    tau: float = 1.0

    def _class_terms(self, class_counts: Tensor) -> ClassTerms:
        # softmax cross-entropy of z_c + tau log n_c
        return ClassTerms(train_offsets=self.tau * log_sizes(class_counts) if self.tau else None)
