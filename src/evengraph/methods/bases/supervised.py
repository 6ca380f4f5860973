"""Methods that learn from the labelled nodes alone, with something of each class in the loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from evengraph.core.rng import seeded
from evengraph.core.task import Task
from evengraph.methods.bases.method import Fit, Method
from evengraph.methods.bases.network import FreeMethod, Inputs
from evengraph.nn import GraphNetwork
from evengraph.ops.sparse import scatter_sum
from evengraph.training import History
from evengraph.training.batch.tasks import TaskReplicas, TaskRun


@dataclass(kw_only=True)
class LabelledMethod(FreeMethod):
    """A network of two convolutions and cross-entropy of the labelled nodes.

    A method says what is special of a class: its weight in the mean, what its logit is raised by
    in training, what it is lowered by in the answer.
    """

    def _weights(self, class_counts: Tensor) -> Tensor | None:
        """What a node of each class counts, (C,); None: all the same."""
        return None

    def _raised(self, class_counts: Tensor) -> Tensor | None:
        """What the logit of each class is raised by in training, (C,); None: nothing."""
        return None

    def _lowered(self, class_counts: Tensor) -> Tensor | None:
        """What the logit of each class is lowered by in the answer, (C,); None: nothing."""
        return None

    def _fit(self, task: Task) -> None:
        if self._batches and self._fit_on_card(task):
            return
        self._fit_network(task, self._inputs(task.graph), self._loss(task))

    def _loss(self, task: Task) -> Callable[[Tensor], Tensor]:
        """The loss of the logits of all nodes."""
        labels, counts = task.graph.y[task.train_nodes], task.class_counts
        weights, raised = self._weights(counts), self._raised(counts)

        def loss(logits: Tensor) -> Tensor:
            rows = logits[task.train_nodes]
            return cross_entropy(rows if raised is None else rows + raised, labels, weights)

        return loss

    def _answer(self, logits: Tensor) -> Tensor:
        labels = self.labelled_.labels  # counted without waiting for the device
        counts = scatter_sum(torch.ones_like(labels), labels, self.num_classes_)
        lowered = self._lowered(counts)
        return logits if lowered is None else logits - lowered

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
        raised, lowered = self._raised(counts), self._lowered(counts)
        weights = torch.ones_like(counts, dtype=torch.float) if weights is None else weights
        nothing = torch.zeros_like(weights)
        return LabelledRun(
            task=fit.task,
            net=self.net_,
            noise_seed=noise_seed,
            weights=weights / (weights * counts).sum(),
            raised=nothing if raised is None else raised,
            lowered=nothing if lowered is None else lowered,
            tell=self._tell,
            done=done,
        )


@dataclass(kw_only=True)
class LabelledRun(TaskRun):
    """One run, and what is special of each class in it, as `LabelledMethod` says.

    Shapes:
        weights, raised, lowered: (C,)
    """

    weights: Tensor
    raised: Tensor
    lowered: Tensor


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
        one_row = self.weight.new_zeros(self.slots, 1, self.num_classes)
        self.raised, self.lowered = one_row, one_row.clone()

    def load(self, slot: int, run: LabelledRun) -> None:
        """Labels, and what is special of each class."""
        super().load(slot, run)
        self.raised[slot, 0], self.lowered[slot, 0] = run.raised, run.lowered

    def weights_of(self, run: LabelledRun) -> Tensor:
        """The run's own."""
        return run.weights

    def epoch(self) -> tuple[Tensor, Tensor]:
        """A pass for the score and one with dropout for the loss."""
        net: GraphNetwork = self.net  # type: ignore[assignment]
        first = net.encoder(*self.inputs)  # no dropout before it: both passes share it
        with torch.no_grad():
            score = self.score(net.classify(first, self.inputs.propagation) - self.lowered)
        logits = net.classify(first, self.inputs.propagation, dropout=True) + self.raised
        losses = cross_entropy(logits.flatten(0, 1), self.labels.flatten(), reduction="none")
        return (self.weight * losses.view_as(self.weight)).sum(1), score
