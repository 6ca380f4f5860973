"""GCN: the plain network that everything else is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from evengraph.methods.labelled import LabelledMethod


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
        The network is that of the comparison (a linear layer after the second convolution), not
        Kipf and Welling's two convolutions.

    Reference:
        Kipf and Welling, "Semi-Supervised Classification with Graph Convolutional Networks",
        ICLR 2017.
    """

    title = "GCN"
