"""MarginMethod: methods that TAM can be added to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from evengraph.core.task import Task
from evengraph.methods.bases.method import Method
from evengraph.ops import propagation_matrix, soft_labels, topology_margins, weighted_adjacency

WARMUP = 5  # epochs before predictions are good enough for margins


@dataclass(kw_only=True)
class MarginMethod(Method):
    """A method whose logits TAM may adjust in training, node by node.

    TAM (topology-aware margins) compares the known or predicted classes around each labelled node
    with those usual for its class. Where another class is over-represented, the margin against it
    is reduced in training; otherwise methods that favour rare classes predict them too often.
    Predictions use the plain logits.

    Args:
        margin: `tam`, or `none` for the method alone.
        tam_connectivity: Strength of the margin by how connected a node is (the paper's alpha).
        tam_distribution: Strength of that by the distribution of classes around it (beta).
        tam_temperature: How sharp predictions are for this (phi); rare classes are smoothed more.

    Reference:
        Song, Park and Yang, "TAM: Topology-Aware Margin Loss for Class-Imbalanced Node
        Classification", ICML 2022.
    """

    limits = {"tam_connectivity": 0, "tam_distribution": 0, "tam_temperature": "positive"}

    margin: Literal["none", "tam"] = "none"
    tam_connectivity: float = 2.5
    tam_distribution: float = 0.5
    tam_temperature: float = 1.2

    def _margins(self, task: Task) -> Callable[[Tensor], Tensor]:
        """Margins to add to the logits of the labelled nodes, (n, C), given the logits of all."""
        graph, nodes = task.graph, task.train_nodes
        labels, counts = graph.y[nodes], task.class_counts
        nothing = torch.zeros((), device=graph.x.device)
        if self.margin == "none":
            return lambda logits: nothing
        matrix = weighted_adjacency(graph)
        around = propagation_matrix(matrix, graph.x.device, how="row").rows(nodes)
        epochs = 0

        def margins(logits: Tensor) -> Tensor:
            nonlocal epochs
            epochs += 1
            if epochs <= WARMUP:
                return nothing
            classes = self._soft_labels(logits, nodes, labels, counts)
            return self._adjusted(around @ classes, labels)

        return margins

    def _soft_labels(self, logits: Tensor, nodes: Tensor, labels: Tensor, counts: Tensor) -> Tensor:
        """The label or the smoothed prediction of each node, (N, C)."""
        return soft_labels(logits.detach(), nodes, labels, counts, self.tam_temperature)

    def _adjusted(self, around: Tensor, labels: Tensor) -> Tensor:
        """Margins from the distributions of classes around labelled nodes, (n, C)."""
        return topology_margins(around, labels, self.tam_connectivity, self.tam_distribution)
