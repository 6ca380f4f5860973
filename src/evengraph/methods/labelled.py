"""Methods that learn from the labelled nodes alone, each class with a weight in the loss."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from evengraph.methods.base import Fit, Method
from evengraph.methods.network import BackboneMethod, Inputs
from evengraph.methods.task_replicas import TaskReplicas, TaskRun
from evengraph.nn import GraphNetwork
from evengraph.rng import seeded
from evengraph.task import Task
from evengraph.training import History


@dataclass(kw_only=True)
class LabelledMethod(BackboneMethod):
    """The comparison's network and a weighted mean of the losses of the labelled nodes."""

    @abstractmethod
    def _weights(self, class_counts: Tensor) -> Tensor | None:
        """What a node of each class counts, (C,); None: all the same."""

    def _fit(self, task: Task) -> None:
        if self._batches and self._fit_on_card(task):
            return
        labels, weights = task.graph.y[task.train], self._weights(task.class_counts)
        inputs = self._inputs(task.graph)
        self._fit_network(
            task, inputs, lambda logits: cross_entropy(logits[task.train], labels, weights)
        )

    def _together_with(self, other: Method) -> bool:
        return self._batches and self._alike(other)

    @property
    def _batches(self) -> bool:
        """Whether weights of several runs can be stacked: GCN's layers take a leading axis."""
        return self.backbone == "gcn"

    def _fit_together(self, fits: Sequence[Fit], slots: int) -> Iterator[None]:
        inputs = self._inputs(fits[0].task.graph)
        runs = [cast(LabelledMethod, fit.method)._run(fit) for fit in fits]
        replicas = LabelledReplicas(inputs, runs, slots, self.hidden, **self._training())
        yield from replicas.steps(runs)

    def _run(self, fit: Fit) -> LabelledRun:
        """A run for `LabelledReplicas`, which ends in this method being fitted."""
        with seeded(fit.seed):
            self.net_ = self._network(fit.task)
            noise_seed = int(torch.randint(2**31, ()))

        def done(history: History) -> None:
            self.history_.append(history)
            fit.done()

        counts = fit.task.class_counts
        weights = self._weights(counts)
        weights = torch.ones_like(counts, dtype=torch.float) if weights is None else weights
        return LabelledRun(
            task=fit.task,
            net=self.net_,
            noise_seed=noise_seed,
            weights=weights / (weights * counts).sum(),
            tell=self._tell,
            done=done,
        )


@dataclass(kw_only=True)
class LabelledRun(TaskRun):
    """One run, and what a labelled node of each class counts in its loss, (C,)."""

    weights: Tensor


class LabelledReplicas(TaskReplicas[LabelledRun]):
    """Such a method for several runs on one graph.

    Args:
        inputs: The graph.
        runs: All that are to be trained.
        slots: How many to train at a time.
        width: Of the embeddings of a node.
        training: Settings of `Replicas`.
    """

    def __init__(
        self, inputs: Inputs, runs: Sequence[LabelledRun], slots: int, width: int, **training: Any
    ) -> None:
        super().__init__(runs, slots, width, **training)
        self.inputs = inputs

    def weights_of(self, run: LabelledRun) -> Tensor:
        """The run's own."""
        return run.weights

    def epoch(self) -> tuple[Tensor, Tensor]:
        """A pass for the score and one with dropout for the loss."""
        net: GraphNetwork = self.net  # type: ignore[assignment]
        first = net.encoder(*self.inputs)  # no dropout before it: both passes share it
        with torch.no_grad():
            score = self.score(net.classify(first, self.inputs.propagation))
        logits = net.classify(first, self.inputs.propagation, dropout=True)
        losses = cross_entropy(logits.flatten(0, 1), self.labels.flatten(), reduction="none")
        return (self.weight * losses.view_as(self.weight)).sum(1), score
