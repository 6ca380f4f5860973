"""MLP: the features of a node alone, without the graph."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import final

import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.disk.propagation import CPU, Workspace
from evengraph.disk.tables import Table
from evengraph.methods.bases.network import NetworkMethod
from evengraph.methods.bases.row_batches import BATCH, RowEpoch, sees_all_rows
from evengraph.methods.bases.row_model import RowInput, hop_inputs
from evengraph.nn.onnx_graph import OnnxGraph
from evengraph.ops.sparse import Sparse, sparsify
from evengraph.training.row_supply import MemoryRows, RowSupply


@final
@dataclass(kw_only=True)
class MLP(NetworkMethod):
    """Two hidden layers on the features of each node, without the graph.

    It is the comparison's network with every convolution replaced by a plain layer, which is GCN
    on a graph without edges. Where it scores as well as GCN, the graph does not help.

    Cost:
        O(N h^2 + nnz(X) h) per epoch.

    Departs:
        With no neighbours there is nothing to normalise: `normalisation` has no effect.

    Reference:
        Rumelhart, Hinton and Williams, "Learning Representations by Back-Propagating Errors",
        Nature 1986.
    """

    suits_heterophily = True
    shares_rows = True

    @property
    def uses_graph(self) -> bool:
        """Never."""
        return False

    # Graphs on disk

    def row_width(self, num_features: int) -> int:
        """As wide as the features."""
        return num_features

    def fit_tables(self, x: Table, space: Workspace) -> dict[str, Table]:
        """The features as they are."""
        return self.tables(x, space)

    def fit_rows(self, task: Task, rows: Mapping[str, Tensor]) -> None:
        """Train on all labelled rows in every epoch, or on some of many."""
        x = rows["features"]
        if self._ranks.is_alone and sees_all_rows(task):
            graph = copy(task.graph)
            graph.x = x
            self._fit(replace(task, graph=graph))
        else:
            self.fit_supply(MemoryRows(task, x, self._ranks))

    @property
    def networks(self) -> int:
        """One."""
        return 1

    def drawn_per_epoch(self) -> tuple[int, int]:
        """No unlabelled rows."""
        return BATCH, 0

    def stacked(self, rows: Mapping[str, Tensor]) -> Tensor:
        """The features."""
        return rows["features"]

    def fit_supply(self, supply: RowSupply) -> None:
        """Train on rows that are drawn in every epoch."""
        self.net_ = net = self._new_network().to(supply.device)
        links = partial(_identity, device=supply.device)

        def on_labels(labels: Tensor, logits: Tensor) -> Tensor:
            return cross_entropy(logits, labels)

        self._train(net, RowEpoch(net, supply, links, on_labels))
        net.to(self.device_)

    def tables(self, x: Table, space: Workspace) -> dict[str, Table]:
        """The features."""
        return {"features": x}

    def row_logits(self, rows: Mapping[str, Tensor]) -> Tensor:
        """All layers on rows."""
        x = rows["features"]
        logits: Tensor = self.net_(sparsify(x), _identity(len(x), x.device))
        return logits

    # Export

    def row_inputs(self) -> dict[str, RowInput]:
        """The features alone."""
        return hop_inputs(self.num_features_, 0, 0, degree=False)

    def rows(self, graph: Data) -> dict[str, Tensor]:
        """The features of a graph."""
        return {"features": graph.x.float()}

    def onnx_probabilities(self, onnx: OnnxGraph, rows: Mapping[str, str]) -> str:
        """The three layers."""
        first, (second, last) = self.net_.encoder, self.net_.classifier.children()
        layers = [(layer.weight, layer.bias) for layer in (first, second)]
        layers.append((last.weight.t(), last.bias))
        return onnx.softmax(onnx.perceptron(rows["features"], layers))

    def _propagation(self, graph: Data) -> Sparse:
        """The identity: a node receives its own features only."""
        return _identity(graph.num_nodes, graph.x.device)


def _identity(size: int, device: torch.device = CPU) -> Sparse:
    return Sparse.from_scipy(sp.identity(size, format="csr"), device)
