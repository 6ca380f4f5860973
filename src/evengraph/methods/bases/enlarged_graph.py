"""The training graph with copies of labelled nodes, as over-sampling and SMOTE make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.graphs import same_graph
from evengraph.core.task import Task
from evengraph.nn import Inputs
from evengraph.ops import (
    Copies,
    GraphWithCopies,
    Sparse,
    matching_signatures,
    node_signatures,
    plan_copies,
    rare_classes,
    sparsify,
    weighted_adjacency,
    with_self_loops,
)
from evengraph.ops.propagate import Normalisation

# features of the copies, from features and labels of the labelled nodes
NewFeatures = Callable[[Tensor, Tensor, Copies], Tensor]


@dataclass(eq=False)
class EnlargedGraph:
    """Copies of labelled nodes, and the graph they belong to.

    A copy has the links of its original, and the original itself through its self-loop.
    """

    new: Tensor  # features of the copies, (M, F)
    originals: Tensor  # the node that each is a copy of, (M,)
    graph: Data | None = None  # the training graph; None in a loaded model
    signatures: Tensor | None = None  # of its nodes, (N, 3); None until needed

    @classmethod
    def of(cls, task: Task, copies: int, minority: int, new_features: NewFeatures) -> Self:
        """Copy the labelled nodes of rare classes."""
        graph, nodes = task.graph, task.train_nodes
        labels, rare = graph.y[nodes], rare_classes(task.class_counts, minority)
        copied = plan_copies(labels, rare, copies)
        new = new_features(graph.x.float()[nodes], labels, copied)
        return cls(new, nodes[copied.positions], graph)

    def examples(self, task: Task) -> tuple[Tensor, Tensor]:
        """Rows of the labelled nodes and of the copies, and their labels."""
        num_nodes, labels = task.graph.num_nodes, task.graph.y
        copies = num_nodes + torch.arange(self.new.shape[0], device=self.new.device)
        return (
            torch.cat([task.train_nodes, copies]),
            torch.cat([labels[task.train_nodes], labels[self.originals]]),
        )

    def repeated(self, propagation: Sparse) -> GraphWithCopies:
        """A normalised matrix with the rows and columns of the originals once more.

        Rows that gain an entry then sum to more than one, as in the comparison's public code.
        """
        return GraphWithCopies(propagation, self.originals)

    def normalised(self, graph: Data, how: Normalisation) -> GraphWithCopies:
        """The enlarged graph, normalised afterwards."""
        matrix = weighted_adjacency(graph)
        return GraphWithCopies.normalised(
            with_self_loops(matrix, graph.x.device), self.originals, how
        )

    def with_copies(self, graph: Data, propagation: GraphWithCopies) -> Inputs:
        """Features of the graph and of the copies, with the enlarged propagation."""
        return Inputs(sparsify(torch.cat([graph.x.float(), self.new])), propagation)

    def is_training_graph(self, graph: Data) -> bool:
        """Whether features and edges are those of training."""
        if self.graph is not None:
            return same_graph(graph, self.graph)
        assert self.signatures is not None
        if graph.num_nodes != self.signatures.shape[0]:
            return False
        signatures = node_signatures(graph.x.detach(), graph.edge_index)
        return bool(matching_signatures(signatures, self.signatures).all())

    def state(self) -> dict[str, Tensor]:
        """Tensors to save."""
        if self.signatures is None:
            assert self.graph is not None
            self.signatures = node_signatures(self.graph.x, self.graph.edge_index)
        return {"new": self.new, "seeds": self.originals, "signatures": self.signatures}

    @classmethod
    def from_state(cls, state: Mapping[str, Tensor]) -> Self | None:
        """What `state` returned; None if there were no copies."""
        if "new" not in state:
            return None
        return cls(state["new"], state["seeds"], signatures=state["signatures"])
