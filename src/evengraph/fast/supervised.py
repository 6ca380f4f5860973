"""Quick form of methods that are trained on labelled nodes alone: fits on a GPU as one batch.

Their `_class_terms` say all that such a method does to the loss and to predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from evengraph.core.rng import seeded
from evengraph.fast.replicas import Batching, Fit, Replicas, Run, fit_as_batch
from evengraph.metrics.multiclass import batched_validation_scores
from evengraph.ops.losses import ClassTerms, class_cross_entropy

fit = fit_as_batch


def batching(method: Any) -> Batching | None:
    """One batch of supervised runs; only GCN's layers have a batch axis, and margins have none."""
    possible = method.backbone == "gcn" and getattr(method, "margin", "none") == "none"
    return Batching(SupervisedReplicas) if possible else None


class SupervisedReplicas(Replicas):
    """Cross-entropy with class terms, for several runs on one graph, at most `slots` at a time."""

    def __init__(self, fits: Sequence[Fit], slots: int) -> None:
        method = fits[0].method
        runs = [self._run(fit) for fit in fits]
        self.inputs = method._inputs(fits[0].task.graph)
        super().__init__(runs, slots, method.hidden)
        self.train_offsets = self.weight.new_zeros(self.slots, 1, self.num_classes)
        self.predict_offsets = torch.zeros_like(self.train_offsets)

    @staticmethod
    def _run(fit: Fit) -> Run:
        method = fit.method
        with seeded(fit.seed):
            method.net_ = net = method._new_network()
            seed = int(torch.randint(2**31, ()))
        return Run(fit=fit, net=net, noise_seed=seed, on_epoch=method._report_epoch)

    def load(self, slot: int, run: Run) -> None:
        """Copy labels, weights and offsets into a slot."""
        super().load(slot, run)
        terms = _terms(run)
        for offsets, values in (
            (self.train_offsets, terms.train_offsets),
            (self.predict_offsets, terms.predict_offsets),
        ):
            offsets[slot, 0] = 0 if values is None else values

    def class_weights(self, run: Run) -> Tensor:
        """The run's class weights, scaled so that those of all labelled nodes sum to one."""
        counts, weights = run.task.class_counts, _terms(run).weights
        weights = torch.ones_like(counts, dtype=torch.float) if weights is None else weights
        return weights / (weights * counts).sum()

    def epoch(self) -> tuple[Tensor, Tensor]:
        """A pass for the score and one with dropout for the loss."""
        first = self.net.encoder(*self.inputs)  # no dropout before it: both passes share it
        with torch.no_grad():
            terms = ClassTerms(predict_offsets=self.predict_offsets)
            clean = terms.predict(self.net.classify(first, self.inputs.propagation))
            score = batched_validation_scores(*self.validation(clean))
        logits = self.net.classify(first, self.inputs.propagation, dropout=True)
        return class_cross_entropy(logits, self.labels, self.weight, self.train_offsets), score


def _terms(run: Run) -> ClassTerms:
    terms: ClassTerms = run.method._class_terms(run.task.class_counts)
    return terms
