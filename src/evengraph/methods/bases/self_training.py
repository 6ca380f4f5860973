"""What Double Balancing and IceBerg share: two losses, each balanced by its own, and one run."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from evengraph.core.task import Task
from evengraph.methods.bases.method import at_least, one_of
from evengraph.methods.bases.network import NetworkMethod
from evengraph.metrics import validation_score
from evengraph.ops import balanced_softmax, labelled_loss, undirected_adjacency
from evengraph.ops.named_losses import NAMED_LOSSES, NamedLoss
from evengraph.ops.propagate import Normalisation


@dataclass(kw_only=True)
class DoublyBalanced(NetworkMethod):
    """A method that lets confident predictions teach, balanced by what they themselves are.

    Args:
        loss: Of the labels: `cross_entropy`, `reweight` (times mean class size over class size),
            `balanced_softmax` or `renode` (`reweight`, with labelled nodes weighed by rank of
            conflict, as ReNode does by default). That of pseudo-labels stays balanced softmax.
        pseudo_weight: Weight of the loss on pseudo-labels.
    """

    hidden: int = 128
    normalisation: Normalisation = "symmetric"
    loss: NamedLoss = "balanced_softmax"
    pseudo_weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("loss", self.loss, NAMED_LOSSES)
        at_least("pseudo_weight", self.pseudo_weight, 0)

    def _fit(self, task: Task) -> None:
        graph, nodes = task.graph, task.train_nodes
        matrix = undirected_adjacency(graph.edge_index, graph.num_nodes)
        on_labels = labelled_loss(self.loss, matrix, nodes, graph.y[nodes], task.class_counts)
        inputs = self._inputs(graph)
        self.net_ = net = self._network(task)

        others = (~task.train).nonzero().squeeze(1)  # those to choose on at least

        def epoch() -> tuple[Tensor, Tensor]:
            first = net.encoder(*inputs)  # no dropout before it: both passes share it
            with torch.no_grad():
                clean = net.classify(first, inputs.propagation)
                confidence, predicted = clean[others].softmax(1).max(1)
            logits = net.classify(first, inputs.propagation, dropout=True)
            balanced = doubly_balanced(logits[others], predicted, trusted(confidence))
            loss = on_labels(logits[nodes]) + self.pseudo_weight * balanced
            return loss, validation_score(clean, task)

        self._train(net, epoch, recordable=True)


def trusted(confidence: Tensor) -> Tensor:
    """Which nodes are predicted with at least their mean confidence, bool, (n,)."""
    return confidence >= confidence.mean().clamp(max=confidence.max())  # a mean is rounded


def doubly_balanced(logits: Tensor, predicted: Tensor, counted: Tensor) -> Tensor:
    """Balanced softmax of pseudo-labels with their own class sizes, a mean over those that count.

    Shapes:
        logits: (n, C)
        predicted: int64, (n,)
        counted: bool, (n,), at least one
    """
    classes = torch.arange(logits.shape[1], device=logits.device)
    sizes = ((predicted.unsqueeze(1) == classes) & counted.unsqueeze(1)).sum(0)
    losses = balanced_softmax(logits, predicted, sizes, reduction="none")
    return torch.where(counted, losses, 0.0).sum() / counted.sum()
