"""The network of Uni-GNN: two encoders that share their embeddings, and a classifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

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
from evengraph.ops.propagate import has_kernels, product
from evengraph.ops.row_chunks import Pieces
from evengraph.ops.semantic import propagated
from evengraph.ops.subset_products import Between, Subset, semantic_rows

FindClusters = Callable[[int, "Tensor | Sparse"], Clusters]
"""Gives the clusters of a layer, which has these embeddings as its input."""


class Connectivity(NamedTuple):
    """What the network takes of a graph: its features, and A_struct and A, both normalised.

    Dense features are propagated over A_struct once and for all.

    Shapes:
        x, along_paths: (N, F)
        structural, adjacency: (N, N)
    """

    x: Tensor | Sparse
    structural: Sparse
    adjacency: Sparse
    along_paths: Tensor | None = None  # A_struct X


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
        self.encoders = tuple(sorted(encoders))  # semantic, structural: so they stand side by side
        self.noise: Noise | None = None
        self.width = width = hidden * len(encoders)
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

    def embed(self, inputs: Connectivity, clusters: FindClusters) -> Tensor:
        """What both encoders end in, side by side, without dropout."""
        joint = self._activate(self.first(inputs, clusters), False)
        for layer in range(1, len(self.weights)):
            joint = self._activate(self._layer(layer, joint, inputs, clusters), False)
        return joint

    def first(self, inputs: Connectivity, clusters: FindClusters) -> Tensor:
        """The first layer of both encoders, side by side, before their activation."""
        return self._layer(0, inputs.x, inputs, clusters)

    def rest(
        self,
        first: Tensor,
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
        joint = self._activate(first, dropout)
        for layer in range(1, len(self.weights)):
            wanted = near if layer == len(self.weights) - 1 else None
            joint = self._activate(self._layer(layer, joint, inputs, clusters, wanted), dropout)
        if near is not None and len(self.weights) == 1:
            joint = joint[near]
        logits: Tensor = self.classifier(joint, adjacency, dropout=dropout)
        return logits if nodes is None or near is not None else logits[nodes]

    def rest_of(
        self,
        first: Tensor,
        inputs: Connectivity,
        clusters: FindClusters,
        nodes: Subset,
        near: Subset,
    ) -> Tensor:
        """Logits, with dropout, of some nodes of each replica; near are they and their neighbours.

        As `rest` with nodes, in shapes that do not depend on which nodes they are. Both encoders
        share their embeddings, in two layers or more.
        """
        last = len(self.weights) - 1
        joint = self._activate(first, True)
        for layer in range(1, last):
            joint = self._activate(self._layer(layer, joint, inputs, clusters), True)
        weights: nn.ParameterDict = self.weights[last]  # type: ignore[assignment]
        within = semantic_rows(joint, clusters(last, joint), near) @ weights["semantic"]
        along = (Between(inputs.structural, near) @ joint) @ weights["structural"]
        joint = self._activate(torch.cat([within, along], dim=-1), True, near.nodes)
        between = Between(inputs.adjacency, nodes, near)
        logits: Tensor = self.classifier(joint, between, dropout=True, nodes=nodes.nodes)
        return logits

    def _few(self, nodes: Tensor, inputs: Connectivity) -> bool:
        """Whether it pays to compute these nodes alone; on a card, `rest_of` does that."""
        return nodes.is_cpu and 8 * nodes.numel() < inputs.adjacency.shape[0]

    def _activate(self, raw: Tensor, dropout: bool, nodes: Tensor | None = None) -> Tensor:
        return relu_dropout(raw, self.dropout, training=dropout, noise=self.noise, nodes=nodes)

    def _layer(
        self,
        layer: int,
        joint: Tensor | Sparse,
        inputs: Connectivity,
        clusters: FindClusters,
        nodes: Tensor | None = None,
    ) -> Tensor:
        """One layer of both encoders before its activation, of all nodes or of some.

        Shapes:
            joint: features, or embeddings of both encoders side by side, (N, width)
            returns: (N, width), or (M, width) with nodes
        """
        weights: nn.ParameterDict = self.weights[layer]  # type: ignore[assignment]
        found = clusters(layer, joint) if "semantic" in weights else None
        paths = inputs.structural if "structural" in weights else None
        done = inputs.along_paths if layer == 0 else None
        apart = layer > 0 and not self.share
        on_card = has_kernels(inputs.adjacency.matrix.device)
        whole = on_card and nodes is None and done is None and not apart
        if whole and paths is not None and found is not None:
            return _both(joint, weights["semantic"], weights["structural"], found, paths)
        outputs = []
        for place, name in enumerate(self.encoders):
            own = joint
            if apart:
                assert isinstance(joint, Tensor)
                own = joint.chunk(len(self.encoders), dim=-1)[place]
            if name == "semantic":
                assert found is not None
                outputs.append(_semantic(own, weights[name], found, nodes))
            elif done is not None:
                outputs.append(done @ weights[name])
            else:
                outputs.append(_structural(own, weights[name], inputs.structural, nodes))
        return torch.cat(outputs, dim=-1)

    # Where the clusters of a layer come from: four answers to the same question.

    def stored(self, layer: int, embeddings: Tensor | Sparse) -> Clusters:
        """Those found last, of the training graph."""
        if layer not in self._prepared:
            found = self.get_buffer(f"clusters_{layer}")
            self._prepared[layer] = prepare_clusters(found, self.num_clusters, torch.float32)
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

    def grown(self, known: Tensor) -> FindClusters:
        """For the training graph with changes: `stored` for nodes that are known, else `nearest`.

        Shapes:
            known: bool, (N,), of the changed graph; a node's place is that in training
        """
        places = known.nonzero().squeeze(1)

        def clusters(layer: int, embeddings: Tensor | Sparse) -> Clusters:
            if places.numel() == known.numel() == self.get_buffer(f"clusters_{layer}").numel():
                return self.stored(layer, embeddings)
            found = nearest_mean(embeddings, self._means[layer])
            found[places] = self.get_buffer(f"clusters_{layer}")[places]
            return prepare_clusters(found, self.num_clusters, torch.float32)

        return clusters

    def means(self) -> dict[str, Tensor]:
        """The mean of each cluster, by layer; there after `remember`."""
        return {str(layer): means for layer, means in self._means.items()}

    def set_means(self, means: Mapping[str, Tensor]) -> None:
        """Take means that `means` gave, in place of `remember`."""
        self._means = {int(layer): value for layer, value in means.items()}

    def _remember(self, layer: int, embeddings: Tensor | Sparse) -> Clusters:
        """Those of the training graph, whose means are kept for `nearest`."""
        found = self.get_buffer(f"clusters_{layer}")
        self._means[layer] = cluster_means(embeddings, found, self.num_clusters)
        return self.stored(layer, embeddings)

    def start(self, inputs: Connectivity) -> None:
        """Cluster the features for the first layer."""
        with torch.no_grad():
            self.first(inputs, self.recluster)

    def finish(self) -> None:
        """Settle on the clusters that were restored with the best weights."""
        self._prepared.clear()
        self._means.clear()

    def remember(self, inputs: Connectivity) -> None:
        """Make ready for other graphs than the one that was learnt from."""
        if "semantic" in self.encoders and not self._means:
            with torch.no_grad():
                self.forward(inputs, self._remember)


def _both(
    joint: Tensor | Sparse, semantic: Tensor, structural: Tensor, clusters: Clusters, paths: Sparse
) -> Tensor:
    """Eq. 6 and 2 side by side: on a card, few large steps are faster than many."""
    weighted = joint @ torch.cat([semantic, structural], dim=-1)
    output: Tensor = _Propagate.apply(weighted, clusters, paths)  # type: ignore[no-untyped-call]
    return output


class _Propagate(torch.autograd.Function):
    """One half of the columns within clusters, the other along paths, where they stand.

    Semantic connectivity is symmetric: gradients are propagated just as the values are.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, clusters: Clusters, paths: Sparse) -> Tensor:
        ctx.connectivity = clusters, paths
        return _propagate(x, clusters, paths.matrix, paths.pieces)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        clusters, paths = ctx.connectivity
        gradient = gradients[0].contiguous()
        found = _propagate(gradient, clusters, paths.transpose, paths.transposed_pieces)
        return found, None, None


def _propagate(x: Tensor, clusters: Clusters, paths: Tensor, pieces: Pieces | None) -> Tensor:
    output = torch.empty_like(x)
    (left, right), (to_left, to_right) = x.chunk(2, dim=-1), output.chunk(2, dim=-1)
    propagated(left.flatten(0, -2), clusters, to_left.flatten(0, -2))
    product(paths, right, pieces, to_right)
    return output


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
