"""BAT: virtual nodes that bring far labels to where predictions are at risk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from evengraph.methods.base import one_of
from evengraph.methods.network import BackboneMethod
from evengraph.metrics import validation_score
from evengraph.ops import (
    Attached,
    Sparse,
    closed,
    cluster_means,
    labelled_loss,
    undirected_adjacency,
)
from evengraph.ops.attach import Stacked
from evengraph.ops.labelled import NAMED_LOSSES, NamedLoss
from evengraph.ops.propagate import scatter_sum
from evengraph.task import Task


@final
@dataclass(kw_only=True)
class BAT(BackboneMethod):
    """Link nodes whose predictions are at risk to a virtual node of what they may be instead.

    Rare classes suffer because labels are far away or the neighbours are of other classes, not
    because losses weigh too little. So each class gets a virtual node: labelled, and with the
    mean features of the nodes that are predicted so. In every epoch a node that is less certain
    than others of its predicted class draws links to the virtual nodes of the other classes,
    which then speak to it and listen to it. Predicting needs none of them.

    Args:
        variant: What a node may be instead: `BAT0` asks its own prediction, `BAT1` what its
            neighbours are predicted to be.
        loss: What it is put upon: `cross_entropy`, `reweight` (times mean class size over class
            size), `balanced_softmax` or `renode` (`reweight`, with labelled nodes weighed by rank
            of conflict, as ReNode does by default). A virtual node is one more node of its class,
            in class sizes, too, and has no conflict: it weighs one.

    Shapes:
        task.graph.x: (N, F)
        predict_proba: (N, C)

    Cost:
        O(E (h + C) + nnz(X) h) an epoch, about twice GCN.

    Departs:
        The network, its depth and width, and the rule of selection are those of the comparison;
        the public code has three convolutions of width 256. Random numbers are drawn in one
        stream, where the public code starts all of them afresh in every epoch, dropout included.

    Reference:
        Liu, Qiu, Zeng, Yoo, Zhou, Xu, Zhu, Weldemariam, He and Tong, "Class-Imbalanced Graph
        Learning without Class Rebalancing", ICML 2024.
    """

    title = "BAT"

    variant: Literal["BAT0", "BAT1"] = "BAT1"
    loss: NamedLoss = "cross_entropy"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("variant", self.variant, ("BAT0", "BAT1"))
        one_of("loss", self.loss, NAMED_LOSSES)

    def _fit(self, task: Task) -> None:
        graph, nodes, device = task.graph, task.train.nonzero().squeeze(1), task.graph.x.device
        num_nodes, num_classes = graph.num_nodes, task.num_classes
        classes = torch.arange(num_classes, device=device)
        labels, counts = graph.y[nodes], task.class_counts
        rows = torch.cat([nodes, num_nodes + classes])
        inputs = self._inputs(graph)
        matrix = undirected_adjacency(graph.edge_index, num_nodes)
        joined, neighbours = closed(matrix, device), Sparse.from_scipy(matrix, device)
        loss = labelled_loss(self.loss, matrix, nodes, labels, counts, added=classes)
        degrees = joined @ torch.ones(num_nodes, 1, device=device)
        self.net_ = net = self._network(task)

        def epoch() -> tuple[Tensor, Tensor]:
            with torch.no_grad():
                clean = net(*inputs)
                probabilities = clean.softmax(1)
                predicted = probabilities.argmax(1).index_copy(0, nodes, labels)
                instead = probabilities
                if self.variant == "BAT1":
                    instead = neighbours @ one_hot(predicted, num_classes).to(probabilities)
                chances = link_chances(probabilities, predicted, instead, counts)
                ends, virtual = (torch.rand_like(chances) < chances).nonzero(as_tuple=True)
                means = cluster_means(inputs.x, predicted, num_classes)
            attached = Attached(
                joined,
                degrees.squeeze(1),
                ends,
                virtual,
                torch.ones_like(ends, dtype=means.dtype),
                num_classes,
                loop=1.0,
                how=self.normalisation,
            )
            first = net.encoder(Stacked(inputs.x, means), attached)
            logits = net.classify(first, attached, dropout=True)
            return loss(logits[rows]), validation_score(clean, task)

        self._train(net, epoch)


def link_chances(
    probabilities: Tensor, predicted: Tensor, instead: Tensor, class_counts: Tensor
) -> Tensor:
    """How likely each node is linked to the virtual node of each class.

    A node's risk is what its uncertainty exceeds the mean of its predicted class by, times the
    size of that class over the largest: a rare class keeps the nodes that it has won. The risk
    is shared among the other classes in proportion to what the node may be instead.

    Shapes:
        probabilities, instead: (N, C)
        predicted: (N,)
        class_counts: (C,), labelled nodes
        returns: (N, C)
    """
    uncertainty = 1 - probabilities.max(1).values
    sizes = torch.bincount(predicted, minlength=class_counts.numel()).clamp(min=1)
    means = scatter_sum(uncertainty, predicted, class_counts.numel()) / sizes
    risk = (uncertainty - means[predicted]).clamp(min=0)
    risk = risk * (class_counts / class_counts.max())[predicted]
    others = instead.scatter(1, predicted.unsqueeze(1), 0.0)
    total = others.sum(1, keepdim=True)
    return risk.unsqueeze(1) * others / torch.where(total > 0, total, 1.0)
