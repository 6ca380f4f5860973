"""Double Balancing: pseudo-labels whose own imbalance is balanced, too, on graph convolutions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from evengraph.methods.bases.network import BackboneMethod
from evengraph.methods.bases.self_training import DoublyBalanced


@final
@dataclass(kw_only=True)
class DoubleBalancing(DoublyBalanced, BackboneMethod):
    """Let confident predictions teach, and balance them by what they themselves are.

    In every epoch each unlabelled node that is predicted with at least the mean confidence becomes
    an example of its predicted class. Both losses, on labels and on pseudo-labels, are balanced
    softmax, each with the class sizes of its own examples. Each is a mean of its own, so that a
    few labels weigh as much as thousands of pseudo-labels. The network is two convolutions;
    IceBerg is the same on features that were propagated beforehand.

    Shapes:
        task.graph.x: (N, F)
        predict_proba: (N, C)

    Cost:
        O(E h + nnz(X) h) an epoch, as GCN.

    Departs:
        Selection and the length of training are those of the comparison. Nothing comes after the
        two convolutions, and the second does not decay, as published; on the comparison's network,
        with its linear layer, several points are lost. A class that nobody is taken for is left
        out of the loss on pseudo-labels. The noise-tolerant term, which the public scripts leave
        out, is not here.

    Reference:
        Li, Chen, Zhao, Wang, Liu, Zhang, Zhou and Yu, "IceBerg: Debiased Self-Training for
        Class-Imbalanced Node Classification", WWW 2025.
    """

    title = "Double balancing"
    search_space = {"loss": ("balanced_softmax", "reweight"), "hidden": (128, 256)}
    compared_by_default = True
    suits_heterophily = True

    def _fresh_network(self) -> Any:
        return self._plain_network()
