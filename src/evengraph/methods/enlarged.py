"""What over-sampling and SMOTE share: a graph enlarged once, by copies of its rare nodes."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from evengraph.methods.base import same_graph, whole
from evengraph.methods.network import Inputs, NetworkMethod
from evengraph.ops import (
    Copies,
    Repeated,
    closed,
    copies_of_rare,
    features,
    rare_classes,
    undirected_adjacency,
)
from evengraph.task import Task


@dataclass(kw_only=True)
class EnlargedGraph(NetworkMethod):
    """Trains on the graph plus copies of labelled nodes, with the links of their originals.

    Args:
        copies: Copies of each labelled node of a rare class; 0 fills every class up to the largest.
        minority: How many of the smallest classes are rare; 0: those that are nearer in size, by
            ratio, to the smallest class than to the largest.
        sound: Do without the slips of the comparison's public code.
    """

    copies: int = 1
    minority: int = 0
    sound: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("copies", self.copies, 0)
        whole("minority", self.minority, 0)

    def _fit(self, task: Task) -> None:
        graph, nodes = task.graph, task.train.nonzero().squeeze(1)
        labels = graph.y[nodes]
        rare = rare_classes(task.class_counts, self.minority)
        copies = copies_of_rare(labels, rare, self.copies)
        x = graph.x.float()
        new = self._new_features(x[nodes], labels, copies)
        propagation = self._enlarge(graph, nodes[copies.positions])
        inputs = Inputs(features(torch.cat([x, new])), propagation)
        added = graph.num_nodes + torch.arange(new.shape[0], device=x.device)
        rows = torch.cat([nodes, added])
        labels = torch.cat([labels, labels[copies.positions]])
        self._fit_network(
            task,
            inputs,
            lambda logits: cross_entropy(logits[rows], labels),
            validation=self._inputs(graph) if self.sound else None,
        )
        self.graph_, self.enlarged_ = graph, inputs

    def _logits(self, graph: Data) -> Tensor:
        if not self.sound and same_graph(graph, self.graph_):
            logits: Tensor = self.net_(*self.enlarged_)
            return logits[: graph.num_nodes]
        return super()._logits(graph)

    @abstractmethod
    def _new_features(self, x: Tensor, labels: Tensor, copies: Copies) -> Tensor:
        """Features of the copies, from those of the labelled nodes."""

    def _enlarge(self, graph: Data, seeds: Tensor) -> Repeated:
        """The propagation matrix with the rows and columns of the seeds once more.

        The normalised matrix is enlarged as it is, so that rows that gain an entry sum to more
        than one; where `sound`, the graph is enlarged first and then normalised.
        """
        if not self.sound:
            return Repeated(self._propagation(graph), seeds)
        matrix = undirected_adjacency(graph.edge_index, graph.num_nodes)
        return Repeated.normalised(closed(matrix, graph.x.device), seeds, self.normalisation)
