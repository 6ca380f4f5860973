"""GCN: the plain network that everything else is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from evengraph.methods.base import Method, fraction, one_of, whole
from evengraph.metrics import validation_score
from evengraph.nn import GraphClassifier, GraphConv, relu_dropout
from evengraph.ops import Sparse, adjacency, features, normalised
from evengraph.ops.propagate import Normalisation
from evengraph.task import Task


@final
@dataclass(kw_only=True)
class GCN(Method):
    """Two graph convolutions and a linear layer, with nothing done about unequal classes.

    Args:
        hidden: Width of both convolutions.
        dropout: Share of activations dropped after each.
        normalisation: `row` averages over a node and its neighbours, as the comparison's public
            code does; `symmetric` is Kipf and Welling's.

    Shapes:
        task.graph.x: (N, F)
        predict_proba: (N, C)

    Departs:
        The network is that of the comparison (a linear layer after the second convolution), not
        Kipf and Welling's two convolutions.

    Reference:
        Kipf and Welling, "Semi-Supervised Classification with Graph Convolutional Networks",
        ICLR 2017.
    """

    hidden: int = 64
    dropout: float = 0.5
    normalisation: Normalisation = "row"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("hidden", self.hidden, 1)
        fraction("dropout", self.dropout)
        one_of("normalisation", self.normalisation, ("row", "symmetric"))

    def _fit(self, task: Task) -> None:
        graph = task.graph
        x, propagation = self._inputs(graph)
        labels = graph.y[task.train]
        self.net_ = _Network(graph.num_features, self.hidden, task.num_classes, self.dropout)
        self.net_.to(graph.x.device)

        def epoch() -> tuple[Tensor, Tensor]:
            first = self.net_.encoder(x, propagation)  # no dropout before it: both passes share it
            with torch.no_grad():
                score = validation_score(self.net_.classify(first, propagation), task)
            logits = self.net_.classify(first, propagation, dropout=True)
            return cross_entropy(logits[task.train], labels), score

        self._train(self.net_, epoch)

    def _logits(self, graph: Data) -> Tensor:
        x, propagation = self._inputs(graph)
        return self.net_.classify(self.net_.encoder(x, propagation), propagation)

    def _inputs(self, graph: Data) -> tuple[Tensor | Sparse, Sparse]:
        edges = to_undirected(graph.edge_index, num_nodes=graph.num_nodes)
        matrix = adjacency(edges, graph.num_nodes)
        return features(graph.x.float()), normalised(matrix, graph.x.device, how=self.normalisation)


class _Network(nn.Module):
    def __init__(self, num_features: int, hidden: int, num_classes: int, dropout: float) -> None:
        super().__init__()
        self.encoder = GraphConv(num_features, hidden)
        self.classifier = GraphClassifier(hidden, hidden, num_classes, dropout)
        self.dropout = dropout

    def classify(self, first: Tensor, propagation: Sparse, *, dropout: bool = False) -> Tensor:
        """Logits from the encoder's output before its activation."""
        hidden = relu_dropout(first, self.dropout, training=dropout)
        logits: Tensor = self.classifier(hidden, propagation, dropout=dropout)
        return logits
