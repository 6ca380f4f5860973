"""The network of Uni-GNN: two encoders that share their embeddings, and a classifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from evengraph.nn.layers import GraphClassifier, Noise, relu_dropout
from evengraph.ops import (
    Clusters,
    Sparse,
    cluster_means,
    kmeans,
    nearest_mean,
    prepare_clusters,
    semantic_propagate,
)

FindClusters = Callable[[int, "Tensor | Sparse"], Clusters]
"""Gives the clusters of a layer, which has these embeddings as its input."""


class Connectivity(NamedTuple):
    """What the network takes of a graph: its features, and A_struct and A, both normalised.

    Shapes:
        x: (N, F)
        structural, adjacency: (N, N)
    """

    x: Tensor | Sparse
    structural: Sparse
    adjacency: Sparse


class UnifiedNetwork(nn.Module):
    """Both encoders and the classifier (Eq. 2, 6, 7).

    The clusters of each semantic layer are buffers, so that they are kept, restored and saved
    together with the weights that they belong to.
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        num_nodes: int,
        *,
        num_clusters: int,
        encoders: tuple[str, ...],
        share: bool,
        layers: int,
        hidden: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.num_clusters, self.share, self.dropout = num_clusters, share, dropout
        self.noise: Noise | None = None
        width = hidden * len(encoders)
        self.weights = nn.ModuleList()
        for layer in range(layers):
            inputs = num_features if layer == 0 else width if share else hidden
            weights = {
                name: nn.init.xavier_uniform_(torch.empty(inputs, hidden)) for name in encoders
            }
            self.weights.append(nn.ParameterDict(weights))
            if "semantic" in encoders:
                self.register_buffer(f"clusters_{layer}", torch.zeros(num_nodes, dtype=torch.long))
        self.classifier = GraphClassifier(width, hidden, num_classes, dropout)
        self._prepared: dict[int, Clusters] = {}
        self._means: dict[int, Tensor] = {}

    def forward(self, inputs: Connectivity, clusters: FindClusters) -> Tensor:
        """Logits of all nodes, without dropout."""
        return self.rest(self.first(inputs, clusters), inputs, clusters)

    def first(self, inputs: Connectivity, clusters: FindClusters) -> dict[str, Tensor]:
        """The first layer of each encoder, before its activation."""
        return self._layer(0, {}, inputs.x, inputs, clusters)

    def rest(
        self,
        first: dict[str, Tensor],
        inputs: Connectivity,
        clusters: FindClusters,
        *,
        dropout: bool = False,
        nodes: Tensor | None = None,
    ) -> Tensor:
        """Logits of all nodes, or of some, from the first layer.

        The logits of a few nodes need the last layer at their neighbours alone.
        """
        near, adjacency = None, inputs.adjacency
        if nodes is not None and self._few(nodes, inputs):
            near, adjacency = adjacency.rows(nodes).without_empty_columns()
        embeddings, joint = self._activate(first, dropout)
        for layer in range(1, len(self.weights)):
            wanted = near if layer == len(self.weights) - 1 else None
            raw = self._layer(layer, embeddings, joint, inputs, clusters, wanted)
            embeddings, joint = self._activate(raw, dropout)
        if near is not None and len(self.weights) == 1:
            joint = joint[near]
        logits: Tensor = self.classifier(joint, adjacency, dropout=dropout)
        return logits if nodes is None or near is not None else logits[nodes]

    def _few(self, nodes: Tensor, inputs: Connectivity) -> bool:
        """Whether it pays to compute these nodes alone; on a card small graphs cost nothing."""
        return nodes.is_cpu and 8 * nodes.numel() < inputs.adjacency.shape[0]

    def _activate(self, raw: dict[str, Tensor], dropout: bool) -> tuple[dict[str, Tensor], Tensor]:
        """Embeddings of each encoder, and all of them side by side."""
        joint = torch.cat(list(raw.values()), dim=-1)
        joint = relu_dropout(joint, self.dropout, training=dropout, noise=self.noise)
        return dict(zip(raw, joint.chunk(len(raw), dim=-1), strict=True)), joint

    def _layer(
        self,
        layer: int,
        embeddings: dict[str, Tensor],
        joint: Tensor | Sparse,
        inputs: Connectivity,
        clusters: FindClusters,
        nodes: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """One layer of each encoder before its activation, of all nodes or of some."""
        weights: nn.ParameterDict = self.weights[layer]  # type: ignore[assignment]
        outputs: dict[str, Tensor] = {}
        for name, weight in weights.items():
            own = joint if self.share or layer == 0 else embeddings[name]
            if name == "structural":
                outputs[name] = _structural(own, weight, inputs.structural, nodes)
            else:
                outputs[name] = _semantic(own, weight, clusters(layer, joint), nodes)
        return outputs

    # Where the clusters of a layer come from: four answers to the same question.

    def stored(self, layer: int, embeddings: Tensor | Sparse) -> Clusters:
        """Those found last, of the training graph."""
        return self._prepared[layer]

    def recluster(self, layer: int, embeddings: Tensor | Sparse) -> Clusters:
        """New ones, by k-means from those found last (Eq. 3, 4); they become the stored ones."""
        last = self._prepared[layer].assignment if layer in self._prepared else None
        found = kmeans(embeddings, self.num_clusters, int(torch.randint(2**31, ())), start=last)
        self.get_buffer(f"clusters_{layer}").copy_(found)
        self._prepared[layer] = prepare_clusters(found, self.num_clusters, torch.float32)
        return self._prepared[layer]

    def nearest(self, layer: int, embeddings: Tensor | Sparse) -> Clusters:
        """For another graph: the trained cluster whose mean is nearest."""
        found = nearest_mean(embeddings, self._means[layer])
        return prepare_clusters(found, self.num_clusters, torch.float32)

    def _remember(self, layer: int, embeddings: Tensor | Sparse) -> Clusters:
        """Those that were restored with the best weights, whose means are kept for `nearest`."""
        found = self.get_buffer(f"clusters_{layer}")
        self._means[layer] = cluster_means(embeddings, found, self.num_clusters)
        self._prepared[layer] = prepare_clusters(found, self.num_clusters, torch.float32)
        return self._prepared[layer]

    def start(self, inputs: Connectivity) -> None:
        """Cluster the features for the first layer."""
        with torch.no_grad():
            self.first(inputs, self.recluster)

    def finish(self, inputs: Connectivity) -> None:
        """Settle on the clusters that belong to the best weights."""
        with torch.no_grad():
            self.forward(inputs, self._remember)


def _structural(x: Tensor | Sparse, weight: Tensor, paths: Sparse, nodes: Tensor | None) -> Tensor:
    """Eq. 2. Of all nodes, the narrow product is propagated; of a few, the few rows first."""
    if nodes is None:
        return paths @ (x @ weight)
    assert isinstance(x, Tensor)
    return (paths.rows(nodes) @ x) @ weight


def _semantic(
    x: Tensor | Sparse, weight: Tensor, clusters: Clusters, nodes: Tensor | None
) -> Tensor:
    """Eq. 6, in the same two orders."""
    if nodes is None:
        return semantic_propagate(x @ weight, clusters)
    assert isinstance(x, Tensor)
    return semantic_propagate(x, clusters, nodes) @ weight
