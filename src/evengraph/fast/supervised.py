"""Quick form of methods that are trained on labelled nodes alone: fits on a GPU as one batch.

Their `_class_terms` say all that such a method does to the loss and to predictions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from evengraph.core.rng import seeded
from evengraph.fast.replicas import Batching, Fit, Run, TaskReplicas, fit_as_batch
from evengraph.nn.networks import GraphNetwork, Inputs
from evengraph.ops.losses import ClassTerms, class_cross_entropy
from evengraph.training import History

fit = fit_as_batch


def batching(method: Any) -> Batching | None:
    """One batch of supervised runs; only GCN's layers have a batch axis, and margins have none."""
    possible = method.backbone == "gcn" and getattr(method, "margin", "none") == "none"
    return Batching(_train) if possible else None


def _train(fits: Sequence[Fit], slots: int) -> Iterator[None]:
    method, runs = fits[0].method, [_run(fit) for fit in fits]
    inputs = method._inputs(fits[0].task.graph)
    params = method._training_params()
    yield from SupervisedReplicas(inputs, runs, slots, method.hidden, **params).steps(runs)


def _run(fit: Fit) -> SupervisedRun:
    """A run of `SupervisedReplicas` that fits a method."""
    method = fit.method
    with seeded(fit.seed):
        method.net_ = method._new_network()
        noise_seed = int(torch.randint(2**31, ()))

    def on_end(history: History) -> None:
        method.history_.append(history)
        fit.on_fitted()

    return SupervisedRun(
        task=fit.task,
        net=method.net_,
        noise_seed=noise_seed,
        terms=method._class_terms(fit.task.class_counts),
        on_epoch=method._report_epoch,
        on_end=on_end,
    )


@dataclass(kw_only=True)
class SupervisedRun(Run):
    """One run, and what its loss does per class."""

    terms: ClassTerms


class SupervisedReplicas(TaskReplicas[SupervisedRun]):
    """Cross-entropy with class terms, for several runs on one graph, at most `slots` at a time."""

    def __init__(
        self, inputs: Inputs, runs: Sequence[SupervisedRun], slots: int, width: int, **training: Any
    ) -> None:
        super().__init__(runs, slots, width, **training)
        self.inputs = inputs
        self.train_offsets = self.weight.new_zeros(self.slots, 1, self.num_classes)
        self.predict_offsets = torch.zeros_like(self.train_offsets)

    def load(self, slot: int, run: SupervisedRun) -> None:
        """Copy labels, weights and offsets into a slot."""
        super().load(slot, run)
        for offsets, values in (
            (self.train_offsets, run.terms.train_offsets),
            (self.predict_offsets, run.terms.predict_offsets),
        ):
            offsets[slot, 0] = 0 if values is None else values

    def class_weights(self, run: SupervisedRun) -> Tensor:
        """The run's class weights, scaled so that those of all labelled nodes sum to one."""
        counts, weights = run.task.class_counts, run.terms.weights
        weights = torch.ones_like(counts, dtype=torch.float) if weights is None else weights
        return weights / (weights * counts).sum()

    def epoch(self) -> tuple[Tensor, Tensor]:
        """A pass for the score and one with dropout for the loss."""
        net: GraphNetwork = self.net  # type: ignore[assignment]
        first = net.encoder(*self.inputs)  # no dropout before it: both passes share it
        with torch.no_grad():
            terms = ClassTerms(predict_offsets=self.predict_offsets)
            score = self.score(terms.predict(net.classify(first, self.inputs.propagation)))
        logits = net.classify(first, self.inputs.propagation, dropout=True)
        return class_cross_entropy(logits, self.labels, self.weight, self.train_offsets), score
