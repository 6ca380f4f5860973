"""MLP: the features of a node alone, without the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import scipy.sparse as sp
from torch import Tensor
from torch_geometric.data import Data

from evengraph.methods.bases.network import NetworkMethod
from evengraph.methods.bases.row_model import RowInput, hop_inputs
from evengraph.nn.onnx_graph import OnnxGraph
from evengraph.ops.sparse import Sparse


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

    @property
    def uses_graph(self) -> bool:
        """Never."""
        return False

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
        return Sparse.from_scipy(sp.identity(graph.num_nodes, format="csr"), graph.x.device)
