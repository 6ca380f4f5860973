"""What over-sampling and SMOTE share: a graph enlarged once, by copies of its rare nodes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.methods.bases.method import same_graph, whole
from evengraph.methods.bases.network import FreeMethod, Inputs
from evengraph.ops import (
    Copies,
    GraphWithCopies,
    matching_signatures,
    node_signatures,
    plan_copies,
    rare_classes,
    sparsify,
    undirected_adjacency,
    with_self_loops,
)


@dataclass(kw_only=True)
class EnlargedGraph(FreeMethod):
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

    @classmethod
    def graph_defaults(cls, graph: Data) -> dict[str, Any]:
        """Predict without the copies: new graphs have none, so test and use would differ."""
        return {**super().graph_defaults(graph), "sound": True}

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("copies", self.copies, 0)
        whole("minority", self.minority, 0)

    def _fit(self, task: Task) -> None:
        graph, nodes = task.graph, task.train_nodes
        labels = graph.y[nodes]
        rare = rare_classes(task.class_counts, self.minority)
        copies = plan_copies(labels, rare, self.copies)
        x = graph.x.float()
        new = self._new_features(x[nodes], labels, copies)
        self.new_, self.seeds_ = new, nodes[copies.positions]
        inputs = self._enlarged_inputs(graph)
        added = graph.num_nodes + torch.arange(new.shape[0], device=x.device)
        rows = torch.cat([nodes, added])
        labels = torch.cat([labels, labels[copies.positions]])
        self._fit_network(
            task,
            inputs,
            lambda logits: cross_entropy(logits[rows], labels),
            validation=self._inputs(graph) if self.sound else None,
        )
        self.graph_: Data | None = graph
        self.enlarged_: Inputs | None = inputs
        self.signatures_: Tensor | None = None

    def _logits(self, graph: Data) -> Tensor:
        if not self.sound and self._is_training_graph(graph):
            inputs = self.enlarged_
            if inputs is None or graph.x.requires_grad:
                inputs = self._enlarged_inputs(graph)
            logits: Tensor = self.net_(*inputs)
            return logits[: graph.num_nodes]
        return super()._logits(graph)

    def _is_training_graph(self, graph: Data) -> bool:
        """Whether this is what was learnt from, down to the last node and edge."""
        if self.graph_ is not None:
            return same_graph(graph, self.graph_)
        assert self.signatures_ is not None
        if graph.num_nodes != self.signatures_.shape[0]:
            return False
        found = node_signatures(graph.x.detach(), graph.edge_index)
        return bool(matching_signatures(found, self.signatures_).all())

    def _enlarged_inputs(self, graph: Data) -> Inputs:
        x = torch.cat([graph.x.float(), self.new_])
        return Inputs(sparsify(x), self._enlarge(graph, self.seeds_))

    def _kept(self) -> dict[str, Tensor]:
        kept = super()._kept()
        if self.sound:  # copies are for training alone
            return kept
        if self.signatures_ is None:
            assert self.graph_ is not None
            self.signatures_ = node_signatures(self.graph_.x, self.graph_.edge_index)
        return kept | {"new": self.new_, "seeds": self.seeds_, "signatures": self.signatures_}

    def _put_back(self, kept: Mapping[str, Tensor]) -> None:
        super()._put_back(kept)
        self.graph_ = self.enlarged_ = None
        if not self.sound:
            self.new_, self.seeds_ = kept["new"], kept["seeds"]
            self.signatures_ = kept["signatures"]

    @abstractmethod
    def _new_features(self, x: Tensor, labels: Tensor, copies: Copies) -> Tensor:
        """Features of the copies, from those of the labelled nodes."""

    def _enlarge(self, graph: Data, seeds: Tensor) -> GraphWithCopies:
        """The propagation matrix with the rows and columns of the seeds once more.

        The normalised matrix is enlarged as it is, so that rows that gain an entry sum to more
        than one; where `sound`, the graph is enlarged first and then normalised.
        """
        if not self.sound:
            return GraphWithCopies(self._propagation(graph), seeds)
        matrix = undirected_adjacency(graph.edge_index, graph.num_nodes)
        return GraphWithCopies.normalised(with_self_loops(matrix, graph.x.device), seeds, self._how)
