"""Logit adjustment: frequent classes start with an advantage that the network need not learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from torch import Tensor

from evengraph.methods.bases.method import at_least
from evengraph.methods.bases.supervised import LabelledMethod
from evengraph.ops import log_sizes


@final
@dataclass(kw_only=True)
class LogitAdjustment(LabelledMethod):
    """Raise the logits of frequent classes in training, by the logarithm of their sizes.

    The loss is cross-entropy of the logits plus `tau` log(n) for a class of n labelled nodes; the
    answer takes the logits as they are. A rare class must then win by a margin in training.

    Args:
        tau: Strength; 0 is the plain loss, 1 is balanced softmax.

    Shapes:
        task.graph.x: (N, F)
        predict_proba: (N, C)

    Cost:
        O(E h + nnz(X) h) an epoch, as GCN.

    Reference:
        Menon, Jayasumana, Rawat, Jain, Veit and Kumar, "Long-Tail Learning via Logit Adjustment",
        ICLR 2021.
    """

    title = "Logit adjustment"
    search_space = {"tau": (0.5, 1.0, 1.5)}

    tau: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("tau", self.tau, 0)

    def _raised(self, class_counts: Tensor) -> Tensor | None:
        return self.tau * log_sizes(class_counts) if self.tau else None
