"""Quick form of methods that are trained on labelled nodes alone: fits on a GPU as one batch.

Their `_class_terms` say all that such a method does to the loss and to predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from evengraph.core.task import Task
from evengraph.fast.replicas import Batch, Fit, fit_as_batch
from evengraph.metrics.multiclass import batched_validation_scores
from evengraph.ops.losses import ClassTerms, class_cross_entropy

fit = fit_as_batch


def batching(method: Any) -> type[Batch] | None:
    """One batch of supervised runs; only GCN's layers have a batch axis, and margins have none."""
    possible = method.backbone == "gcn" and getattr(method, "margin", "none") == "none"
    return SupervisedBatch if possible else None


class SupervisedBatch(Batch):
    """Cross-entropy with class terms, for several runs on one graph."""

    def __init__(self, fits: Sequence[Fit]) -> None:
        super().__init__(fits)
        self.inputs = self.method._inputs(fits[0].task.graph)
        terms = [self.method._class_terms(fit.task.class_counts) for fit in fits]
        zeros = self.weight.new_zeros(1, self.num_classes)
        self.train_offsets, self.predict_offsets = (
            torch.stack([zeros if one is None else zeros + one for one in offsets])
            for offsets in zip(*(term[1:] for term in terms), strict=True)
        )

    def network(self, method: Any) -> nn.Module:
        method.net_ = net = method._new_network()
        return net  # type: ignore[no-any-return]

    def class_weights(self, task: Task) -> Tensor:
        """The run's class weights, scaled so that those of all labelled nodes sum to one."""
        weights = self.method._class_terms(task.class_counts).weights
        weights = torch.ones_like(task.class_counts) if weights is None else weights
        return weights / (weights * task.class_counts).sum()

    def epoch(self) -> tuple[Tensor, Tensor]:
        first = self.net.encoder(*self.inputs)  # no dropout before it: both passes share it
        with torch.no_grad():
            terms = ClassTerms(predict_offsets=self.predict_offsets)
            clean = terms.predict(self.net.classify(first, self.inputs.propagation))
            score = batched_validation_scores(*self.validation(clean))
        logits = self.net.classify(first, self.inputs.propagation, dropout=True)
        return class_cross_entropy(logits, self.labels, self.weight, self.train_offsets), score
