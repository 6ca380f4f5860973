"""The network of Uni-GNN: two encoders that share their embeddings, and a classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from evengraph.fast.dropout import Noise, relu_dropout
from evengraph.fast.subsets import Subset, SubsetMatrix, semantic_propagate_subset
from evengraph.nn.layers import GraphClassifier
from evengraph.ops.semantic import (
    Clusters,
    cluster_means,
    kmeans,
    nearest_mean,
    prepare_clusters,
    propagate_halves,
    semantic_propagate,
    unit_rows,
)
from evengraph.ops.sparse import Sparse, has_kernels

CROWDED = 0.5  # share of the nodes in one cluster that is worth a note
LARGE = 2**16
# nodes are few if N exceeds this many times their number; the second from LARGE nodes on
FEW, FEW_OF_MANY = 8, 3
FEWEST = 4  # clusters; of two or three one may well hold most nodes

FindClusters = Callable[[int, "Tensor | Sparse"], Clusters]
"""Gives the clusters of a layer from the layer's input."""


class Connectivity(NamedTuple):
    """The network's view of a graph: its features, and A_struct and A, both normalised.

    Dense features are propagated over A_struct only once.

    Shapes:
        x, along_paths: (N, F)
        structural, adjacency: (N, N)
    """

    x: Tensor | Sparse
    structural: Sparse
    adjacency: Sparse
    along_paths: Tensor | None = None  # A_struct X
    note: str = ""  # what a user should know about the matrices


class UnifiedNetwork(nn.Module):
    """Both encoders and the classifier (Eq. 2, 6, 7).

    The clusters of each semantic layer are buffers, so that they are saved and restored together
    with the weights that they belong to.
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
        cluster_starts: int = 1,
        unit_length: bool = False,
    ) -> None:
        super().__init__()
        self.num_clusters, self.share, self.dropout = num_clusters, share, dropout
        self.cluster_starts, self.unit_length = cluster_starts, unit_length
        self.encoders = tuple(sorted(encoders))  # semantic, structural: the order of the columns
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
        self.means: dict[int, Tensor] = {}  # of the clusters of each layer, see `store_means`

    def forward(self, inputs: Connectivity, clusters: FindClusters) -> Tensor:
        """Logits of all nodes, without dropout."""
        return self.logits(self.first_layer(inputs, clusters), inputs, clusters)

    def embed(self, inputs: Connectivity, clusters: FindClusters) -> Tensor:
        """The outputs of both encoders side by side, without dropout."""
        joint = self.activate(self.first_layer(inputs, clusters), False)
        for layer in range(1, len(self.weights)):
            joint = self.activate(self.layer(layer, joint, inputs, clusters), False)
        return joint

    def first_layer(self, inputs: Connectivity, clusters: FindClusters) -> Tensor:
        """The first layer of both encoders side by side, before the activation."""
        return self.layer(0, inputs.x, inputs, clusters)

    def logits(
        self,
        first: Tensor,
        inputs: Connectivity,
        clusters: FindClusters,
        *,
        dropout: bool = False,
        nodes: Tensor | None = None,
    ) -> Tensor:
        """Logits of all nodes, or of selected ones, from the output of `first_layer`.

        The logits of a few nodes need the last layer at their neighbours only.
        """
        near, adjacency = None, inputs.adjacency
        partial = nodes is not None and self.selects(nodes, inputs)
        if nodes is not None and partial:
            near, adjacency = self.restrict(nodes, inputs)
        joint = self.activate(first, dropout)
        for layer in range(1, len(self.weights)):
            rows = near if layer == len(self.weights) - 1 else None
            joint = self.activate(self.layer(layer, joint, inputs, clusters, rows), dropout)
        if near is not None and len(self.weights) == 1:
            joint = joint[near]
        if partial and near is None:  # fewer rows, so propagate before the product
            return self.classifier.classify_propagated(adjacency @ joint, dropout=dropout)
        logits: Tensor = self.classifier(joint, adjacency, dropout=dropout)
        return logits if nodes is None or partial else logits[nodes]

    def subset_logits(
        self,
        first: Tensor,
        inputs: Connectivity,
        clusters: FindClusters,
        nodes: Subset,
        near: Subset,
    ) -> Tensor:
        """Logits, with dropout, of a subset of each replica's nodes.

        Like `logits` with nodes, in shapes that do not depend on which nodes are selected. Needs
        shared embeddings and at least two layers. `near` holds the nodes and their neighbours.
        """
        last = len(self.weights) - 1
        joint = self.activate(first, True)
        for layer in range(1, last):
            joint = self.activate(self.layer(layer, joint, inputs, clusters), True)
        weights: nn.ParameterDict = self.weights[last]  # type: ignore[assignment]
        semantic = semantic_propagate_subset(joint, clusters(last, joint), near)
        structural = SubsetMatrix(inputs.structural, near) @ joint
        outputs = [semantic @ weights["semantic"], structural @ weights["structural"]]
        joint = self.activate(torch.cat(outputs, dim=-1), True, near.nodes)
        adjacency = SubsetMatrix(inputs.adjacency, nodes, near)
        logits: Tensor = self.classifier(joint, adjacency, dropout=True, nodes=nodes.nodes)
        return logits

    def selects(self, nodes: Tensor, inputs: Connectivity) -> bool:
        """Whether `logits` computes these nodes only; on a GPU, `subset_logits` does that."""
        num_nodes = inputs.adjacency.shape[0]
        times = FEW if num_nodes < LARGE else FEW_OF_MANY
        return nodes.is_cpu and times * nodes.numel() < num_nodes

    def restrict(self, nodes: Tensor, inputs: Connectivity) -> tuple[Tensor | None, Sparse]:
        """The nodes at which the last layer is needed, None for all; A from these to the selected.

        If most nodes are neighbours of selected ones, selecting them costs more than it saves.
        """
        adjacency = inputs.adjacency.rows(nodes)
        near, between = adjacency.without_empty_columns()
        return (near, between) if 2 * near.numel() < adjacency.shape[1] else (None, adjacency)

    def activate(self, raw: Tensor, dropout: bool, nodes: Tensor | None = None) -> Tensor:
        """ReLU and optional dropout."""
        return relu_dropout(raw, self.dropout, training=dropout, noise=self.noise, nodes=nodes)

    def layer(
        self,
        number: int,
        joint: Tensor | Sparse,
        inputs: Connectivity,
        clusters: FindClusters,
        nodes: Tensor | None = None,
    ) -> Tensor:
        """One layer of both encoders before its activation, of all nodes or of selected ones.

        Shapes:
            joint: features, or embeddings of both encoders side by side, (N, width)
            returns: (N, width), or (M, width) with nodes
        """
        weights: nn.ParameterDict = self.weights[number]  # type: ignore[assignment]
        groups = clusters(number, joint) if "semantic" in weights else None
        along_paths = inputs.along_paths if number == 0 else None
        separate = number > 0 and not self.share
        complete = nodes is None and along_paths is None and not separate
        fused = complete and has_kernels(inputs.adjacency.matrix.device)
        if fused and groups is not None and "structural" in weights:  # Eq. 6 and 2 side by side
            both = torch.cat([weights["semantic"], weights["structural"]], dim=-1)
            return propagate_halves(joint @ both, groups, inputs.structural)
        outputs = []
        for index, name in enumerate(self.encoders):
            if name == "structural" and along_paths is not None:
                outputs.append(along_paths @ weights[name])
                continue
            x = joint
            if separate:
                assert isinstance(joint, Tensor)
                x = joint.chunk(len(self.encoders), dim=-1)[index]
            over = groups if name == "semantic" else inputs.structural
            outputs.append(_encode(x, weights[name], over, nodes))
        return torch.cat(outputs, dim=-1)

    def cluster_rows(self, embeddings: Tensor | Sparse) -> Tensor | Sparse:
        """What k-means groups: the input of a layer, or its direction."""
        return unit_rows(embeddings) if self.unit_length else embeddings

    # Sources of clusters, each a `FindClusters`.

    def stored(self, layer: int, embeddings: Tensor | Sparse) -> Clusters:
        """The latest clusters of the training graph."""
        if layer not in self._prepared:
            self._prepared[layer] = self._prepare(self.get_buffer(f"clusters_{layer}"))
        return self._prepared[layer]

    def recluster(self, layer: int, embeddings: Tensor | Sparse) -> Clusters:
        """Run k-means from the latest clusters (Eq. 3, 4) and store the result."""
        last = self._prepared[layer].assignment if layer in self._prepared else None
        seed = int(torch.randint(2**31, ()))
        rows, starts = self.cluster_rows(embeddings), self.cluster_starts
        assignment = kmeans(rows, self.num_clusters, seed, start=last, starts=starts)
        self.get_buffer(f"clusters_{layer}").copy_(assignment)
        self._prepared[layer] = self._prepare(assignment)
        return self._prepared[layer]

    def nearest(self, layer: int, embeddings: Tensor | Sparse) -> Clusters:
        """For another graph: the trained cluster with the nearest mean."""
        return self._prepare(nearest_mean(self.cluster_rows(embeddings), self.means[layer]))

    def stored_or_nearest(self, known: Tensor) -> FindClusters:
        """For a changed training graph: `stored` for known nodes, `nearest` for others.

        Shapes:
            known: bool, (N,), of the changed graph; a known node has the same index in training
        """
        nodes = known.nonzero().squeeze(1)

        def clusters(layer: int, embeddings: Tensor | Sparse) -> Clusters:
            stored = self.get_buffer(f"clusters_{layer}")
            if nodes.numel() == known.numel() == stored.numel():
                return self.stored(layer, embeddings)
            assignment = nearest_mean(self.cluster_rows(embeddings), self.means[layer])
            assignment[nodes] = stored[nodes]
            return self._prepare(assignment)

        return clusters

    def _prepare(self, assignment: Tensor) -> Clusters:
        return prepare_clusters(assignment, self.num_clusters, torch.float32)

    def check_clusters(self) -> None:
        """Raise ValueError if clusters that come from a file do not exist."""
        for layer in self.means:
            nodes = self.get_buffer(f"clusters_{layer}")
            fits = nodes.numel() == 0 or 0 <= nodes.min() <= nodes.max() < self.num_clusters
            if not fits or not self.num_clusters <= nodes.numel():
                raise ValueError(
                    f"the nodes of layer {layer + 1} must lie in {self.num_clusters} clusters, and "
                    f"there are {nodes.numel()} nodes"
                )

    def init_clusters(self, inputs: Connectivity) -> None:
        """Cluster the features for the first layer."""
        with torch.no_grad():
            self.first_layer(inputs, self.recluster)

    def crowded_layers(self) -> Iterator[str]:
        """A sentence about each layer of which one cluster holds most nodes: it averages them."""
        for layer in range(len(self.weights) if "semantic" in self.encoders else 0):
            assignment = self.get_buffer(f"clusters_{layer}")
            largest, nodes = int(assignment.bincount().max()), assignment.numel()
            if self.num_clusters >= FEWEST and largest > CROWDED * nodes:
                yield (
                    f"One of the {self.num_clusters} clusters of semantic layer {layer + 1} holds "
                    f"{largest:,} of {nodes:,} nodes; more cluster_starts may divide it."
                )

    def clear_cache(self) -> None:
        """Drop what was derived from clusters that the best weights may have replaced."""
        self._prepared.clear()
        self.means.clear()

    def store_means(self, inputs: Connectivity) -> None:
        """Store the cluster means of the training graph, for `nearest`."""

        def clusters(layer: int, embeddings: Tensor | Sparse) -> Clusters:
            assignment = self.get_buffer(f"clusters_{layer}")
            rows = self.cluster_rows(embeddings)
            self.means[layer] = cluster_means(rows, assignment, self.num_clusters)
            return self.stored(layer, embeddings)

        if "semantic" in self.encoders and not self.means:
            with torch.no_grad():
                self.forward(inputs, clusters)


def _encode(
    x: Tensor | Sparse, weight: Tensor, over: Sparse | Clusters | None, nodes: Tensor | None
) -> Tensor:
    """Eq. 2 over a matrix, Eq. 6 over clusters; a few nodes propagate before the product."""
    assert over is not None
    if nodes is None:
        narrow = x @ weight
        return over @ narrow if isinstance(over, Sparse) else semantic_propagate(narrow, over)
    assert isinstance(x, Tensor)
    if isinstance(over, Sparse):
        return (over.rows(nodes) @ x) @ weight
    return semantic_propagate(x, over, nodes) @ weight
