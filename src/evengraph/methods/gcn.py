"""GCN: the plain network that everything else is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from evengraph.methods.bases.method import BACKBONE_TITLES
from evengraph.methods.bases.supervised import LabelledMethod


@final
@dataclass(kw_only=True)
class GCN(LabelledMethod):
    """Two graph convolutions and a linear layer, with nothing done about unequal classes.

    Shapes:
        task.graph.x: (N, F)
        predict_proba: (N, C)

    Cost:
        O(E h + nnz(X) h) an epoch.

    Departs:
        The network is by default that of the comparison, with means over neighbours and a linear
        layer after the second convolution; Kipf and Welling's two convolutions are
        `network="plain"`, `normalisation="symmetric"`.

    Reference:
        Kipf and Welling, "Semi-Supervised Classification with Graph Convolutional Networks",
        ICLR 2017.
    """

    title = "GCN"
    role = "baseline"
    compared_by_default = True
    suits_heterophily = True

    @property
    def full_title(self) -> str:
        """That of the backbone, of which there is nothing else."""
        return BACKBONE_TITLES.get(self.backbone, self.title)
