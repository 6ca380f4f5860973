"""Uni-GNN: structural and semantic connectivity, a weighted classifier, balanced pseudo-labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Literal, NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from evengraph.methods.base import Method, at_least, fraction, one_of, same_graph
from evengraph.metrics import validation_score
from evengraph.nn import GraphClassifier, relu_dropout
from evengraph.ops import (
    Clusters,
    PseudoLabels,
    Sparse,
    adjacency,
    balanced_pseudo_labels,
    cluster_means,
    confident_pseudo_labels,
    features,
    inverse_class_weights,
    kmeans,
    nearest_mean,
    normalised,
    prepare_clusters,
    semantic_propagate,
    structural_adjacency,
)
from evengraph.ops.propagate import to_scipy
from evengraph.task import Task

FindClusters = Callable[[int, "Tensor | Sparse"], Clusters]
"""Gives the clusters of a layer, which has these embeddings as its input."""


@final
@dataclass(kw_only=True)
class UniGNN(Method):
    """Let labels reach beyond neighbours: along short paths, and among nodes that look alike.

    Two encoders run side by side. The structural one propagates between nodes at most alpha
    steps apart, weighted by one over their distance; the semantic one propagates within
    fine-grained k-means clusters of the embeddings, found anew as training goes on. Each layer
    of both takes what both gave before. A classifier on the two is trained with every class
    weighing the same, and with the most confident unlabelled nodes as further examples of the
    classes that have few.

    The paper's ablations are fields too: `share_embeddings=False`, `pseudo_labels="none"`,
    `alpha=1`, `encoders="semantic"`, `encoders="structural"`, `pseudo_labels="all"`,
    `recluster_every=0` and `class_weights=False`, in its order.

    Args:
        alpha: Longest distance that still connects two nodes.
        clusters_per_class: Clusters of a semantic layer, for each class.
        threshold: Confidence that a pseudo-label must exceed.
        recluster_every: Epochs between two clusterings of the embeddings; 0: only at the start.
        pseudo_weight: Weight of the loss on pseudo-labels.
        pseudo_labels: `balanced` fills rare classes up, `all` takes every confident node,
            `none` goes without.
        class_weights: Weigh labelled nodes by one over the size of their class.
        encoders: Which of the encoders to use.
        share_embeddings: Let each encoder see what both gave in the layer before.
        layers: Layers of each encoder.
        hidden: Width of every layer.
        dropout: Share of activations dropped after each layer.

    Shapes:
        task.graph.x: (N, F)
        predict_proba: (N, C)

    Departs:
        Points that the paper leaves open. Pseudo-labels come from a pass without dropout, and
        so do the embeddings that are clustered. The first layer's clusters come from the
        features, once. The classifier propagates over the input graph. Edges are read in both
        directions.

    Reference:
        Alchihabi, Yan and Guo, "Overcoming Class Imbalance: Unified GNN Learning with
        Structural and Semantic Connectivity Representations", 2024.
    """

    alpha: int = 2
    clusters_per_class: int = 10
    threshold: float = 0.5
    recluster_every: int = 50
    pseudo_weight: float = 1.0
    pseudo_labels: Literal["balanced", "all", "none"] = "balanced"
    class_weights: bool = True
    encoders: Literal["both", "structural", "semantic"] = "both"
    share_embeddings: bool = True
    layers: int = 2
    hidden: int = 64
    dropout: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("alpha", "clusters_per_class", "layers", "hidden"):
            at_least(name, getattr(self, name), 1)
        for name in ("recluster_every", "pseudo_weight"):
            at_least(name, getattr(self, name), 0)
        for name in ("threshold", "dropout"):
            fraction(name, getattr(self, name))
        one_of("pseudo_labels", self.pseudo_labels, ("balanced", "all", "none"))
        one_of("encoders", self.encoders, ("both", "structural", "semantic"))

    def _fit(self, task: Task) -> None:
        graph, train, every = task.graph, task.train, self.recluster_every
        labelled = train.nonzero().squeeze(1)
        labels, counts = graph.y[labelled], task.class_counts
        weights = inverse_class_weights(counts) if self.class_weights else torch.ones_like(counts)
        inputs = self._inputs(graph)
        net = self._network(graph, task.num_classes)
        net.start(inputs)
        numbers = count()

        def epoch() -> tuple[Tensor, Tensor]:
            number = next(numbers)
            due = number == 0 or (every > 0 and number % every == 0)
            first = net.first(inputs, net.stored)  # no dropout before it: both passes share it
            with torch.no_grad():
                clean = net.rest(first, inputs, net.recluster if due else net.stored)
            chosen = self._choose(clean.softmax(1), counts, ~train)
            nodes = torch.cat([labelled, chosen.nodes])
            logits = net.rest(first, inputs, net.stored, dropout=True, nodes=nodes)
            logits, pseudo_logits = logits.tensor_split([labelled.numel()])
            losses = cross_entropy(logits, labels, reduction="none")
            loss = (weights[labels] * losses).sum()  # Eq. 8
            if chosen.nodes.numel():
                pseudo_loss = cross_entropy(pseudo_logits, chosen.labels)  # Eq. 13
                loss = loss + self.pseudo_weight * pseudo_loss  # Eq. 14
            return loss, validation_score(clean, task)

        self._train(net, epoch)
        net.finish(inputs)
        self.net_, self.graph_, self.inputs_ = net, graph, inputs

    def _logits(self, graph: Data) -> Tensor:
        if same_graph(graph, self.graph_):
            return self.net_(self.inputs_, self.net_.stored)
        return self.net_(self._inputs(graph), self.net_.nearest)

    def _inputs(self, graph: Data) -> Inputs:
        edges = to_undirected(graph.edge_index, num_nodes=graph.num_nodes)
        device = graph.x.device
        paths = to_scipy(structural_adjacency(edges, graph.num_nodes, self.alpha))
        return Inputs(
            x=features(graph.x),
            structural=normalised(paths, device),
            adjacency=normalised(adjacency(edges, graph.num_nodes), device),
        )

    def _network(self, graph: Data, num_classes: int) -> UnifiedNetwork:
        num_clusters = self.clusters_per_class * num_classes
        if num_clusters > graph.num_nodes:
            raise ValueError(
                f"clusters_per_class={self.clusters_per_class} makes {num_clusters} clusters of "
                f"{graph.num_nodes} nodes; use a smaller one."
            )
        both = ("structural", "semantic")
        return UnifiedNetwork(
            graph.num_features,
            num_classes,
            graph.num_nodes,
            num_clusters=num_clusters,
            encoders=both if self.encoders == "both" else (self.encoders,),
            share=self.share_embeddings,
            layers=self.layers,
            hidden=self.hidden,
            dropout=self.dropout,
        ).to(graph.x.device)

    def _choose(self, probabilities: Tensor, counts: Tensor, unlabelled: Tensor) -> PseudoLabels:
        if self.pseudo_labels == "balanced":
            return balanced_pseudo_labels(probabilities, counts, unlabelled, self.threshold)
        if self.pseudo_labels == "all":
            return confident_pseudo_labels(probabilities, unlabelled, self.threshold)
        nothing = counts.new_empty(0)
        return PseudoLabels(nothing, nothing)


class Inputs(NamedTuple):
    """What the network takes of a graph: features, A_struct and A, both normalised."""

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
        width = hidden * len(encoders)
        self.weights = nn.ModuleList()
        for layer in range(layers):
            inputs = num_features if layer == 0 else width if share else hidden
            weights = {name: nn.init.xavier_uniform_(torch.empty(inputs, hidden)) for name in encoders}
            self.weights.append(nn.ParameterDict(weights))
            if "semantic" in encoders:
                self.register_buffer(f"clusters_{layer}", torch.zeros(num_nodes, dtype=torch.long))
        self.classifier = GraphClassifier(width, hidden, num_classes, dropout)
        self._prepared: dict[int, Clusters] = {}
        self._means: dict[int, Tensor] = {}

    def forward(self, inputs: Inputs, clusters: FindClusters) -> Tensor:
        """Logits of all nodes, without dropout."""
        return self.rest(self.first(inputs, clusters), inputs, clusters)

    def first(self, inputs: Inputs, clusters: FindClusters) -> dict[str, Tensor]:
        """The first layer of each encoder, before its activation."""
        return self._layer(0, {}, inputs.x, inputs, clusters)

    def rest(
        self,
        first: dict[str, Tensor],
        inputs: Inputs,
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

    def _few(self, nodes: Tensor, inputs: Inputs) -> bool:
        """Whether it pays to compute these nodes alone; on a card small graphs cost nothing."""
        return nodes.is_cpu and 8 * nodes.numel() < inputs.adjacency.shape[0]

    def _activate(self, raw: dict[str, Tensor], dropout: bool) -> tuple[dict[str, Tensor], Tensor]:
        """Embeddings of each encoder, and all of them side by side."""
        joint = torch.cat(list(raw.values()), dim=1)
        joint = relu_dropout(joint, self.dropout, training=dropout)
        return dict(zip(raw, joint.chunk(len(raw), dim=1), strict=True)), joint

    def _layer(
        self,
        layer: int,
        embeddings: dict[str, Tensor],
        joint: Tensor | Sparse,
        inputs: Inputs,
        clusters: FindClusters,
        nodes: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """One layer of each encoder before its activation, of all nodes or of some."""
        outputs: dict[str, Tensor] = {}
        for name, weight in self.weights[layer].items():
            own = joint if self.share or layer == 0 else embeddings[name]
            if name == "structural":  # Eq. 2
                if nodes is None:
                    outputs[name] = inputs.structural @ (own @ weight)
                else:
                    outputs[name] = (inputs.structural.rows(nodes) @ own) @ weight
            else:  # Eq. 6
                found = clusters(layer, joint)
                if nodes is None:
                    outputs[name] = semantic_propagate(own @ weight, found)
                else:
                    outputs[name] = semantic_propagate(own, found, nodes) @ weight
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

    def start(self, inputs: Inputs) -> None:
        """Cluster the features for the first layer."""
        with torch.no_grad():
            self.first(inputs, self.recluster)

    def finish(self, inputs: Inputs) -> None:
        """Settle on the clusters that belong to the best weights."""
        with torch.no_grad():
            self(inputs, self._remember)
