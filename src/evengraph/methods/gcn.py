"""GCN: the plain network that everything else is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from evengraph.methods.bases.method import BACKBONE_TITLES
from evengraph.methods.bases.network import NetworkKind, NetworkMethod
from evengraph.nn.networks import Backbone


@final
@dataclass(kw_only=True)
class GCN(NetworkMethod):
    """Two graph convolutions and a linear layer, with no treatment of class imbalance.

    Cost:
        O(E h + nnz(X) h) per epoch.

    Departs:
        The network is by default that of the comparison, with means over neighbours and a linear
        layer after the second convolution; Kipf and Welling's two convolutions are
        `network="plain"`, `normalisation="symmetric"`.

    Reference:
        Kipf and Welling, "Semi-Supervised Classification with Graph Convolutional Networks",
        ICLR 2017.
    """

    role = "baseline"
    suits_heterophily = True

    backbone: Backbone = "gcn"
    network: NetworkKind = "comparison"

    @property
    def full_title(self) -> str:
        """The title of the backbone: the method is nothing else."""
        return BACKBONE_TITLES.get(self.backbone, self.title)
