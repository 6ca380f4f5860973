"""Uni-GNN: structural and semantic connectivity, a weighted classifier, balanced pseudo-labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal, cast, final

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from evengraph.core.rng import seeded
from evengraph.core.task import Task
from evengraph.methods.bases.method import (
    Fit,
    Method,
    at_least,
    fraction,
    one_of,
    same_graph,
    whole,
)
from evengraph.methods.bases.model_folder import packed, unpack
from evengraph.methods.bases.unified_batch import UnifiedReplicas, UnifiedRun
from evengraph.metrics import validation_score
from evengraph.nn import Connectivity, UnifiedNetwork
from evengraph.nn.tracing import Contributions, trace_unified
from evengraph.nn.unified import FindClusters
from evengraph.ops import (
    Clusters,
    PseudoLabels,
    Sparse,
    adjacency,
    balanced_pseudo_labels,
    confident_pseudo_labels,
    inverse_class_weights,
    matching_signatures,
    node_signatures,
    propagation_matrix,
    sparsify,
    structural_adjacency,
)
from evengraph.ops.sparse import to_scipy
from evengraph.training import History

MAY_DIFFER = {
    "clusters_per_class",
    "threshold",
    "recluster_every",
    "pseudo_weight",
    "class_weights",
}
"""Parameters in which runs that share a GPU may differ."""

MAX_TWO_STEP_PATHS = 25
"""Two-step paths per edge above which `alpha` defaults to 1."""


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

    Another graph, or this one with new nodes, is predicted without training: a node that is known
    again keeps its clusters, any other joins those whose means, kept for each layer, are nearest.

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
        memory_limit: Bytes that the structural adjacency may take; fitting needs about four times.

    Shapes:
        task.graph.x: (N, F)
        predict_proba: (N, C)

    Cost:
        O((E_alpha + N) h + nnz(X) h) an epoch, with E_alpha pairs at most alpha steps apart;
        k-means every few epochs, O(N K h) a round.

    Departs:
        Points that the paper leaves open. Pseudo-labels come from a pass without dropout, and
        so do the embeddings that are clustered; validation and test nodes, without their
        labels, may get one. The first layer's clusters come from the features, once; later
        clusterings start from the clusters before, which costs a fraction and scores no less.
        A_sem has ones on its diagonal before the identity is added. The classifier propagates
        over the input graph. Features are taken as they come, without dropout on them.
        Encoders have no bias, as in the equations, and Xavier weights; the classifier starts
        like that of the comparison methods. Of epochs with equal validation score, patience
        counts from the first and the model is the latest. Edges are read in both directions.
        On the CPU the dropout rate is met to 1/256. Which of the paper's figures are reached, and
        why others are not: docs/reproduction.md.

    Reference:
        Alchihabi, Yan and Guo, "Overcoming Class SplitProtocol: Unified GNN Learning with
        Structural and Semantic Connectivity Representations", 2024.
    """

    title = "Uni-GNN"
    role = "highlight"
    search_space = {
        "alpha": (1, 2),
        "clusters_per_class": (4, 10, 30),
        "threshold": (0.5, 0.7),
        "recluster_every": (50, 100),
    }
    tuned_params = frozenset({"alpha", "clusters_per_class", "threshold", "recluster_every"})
    compared_by_default = True
    suits_heterophily = True

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
    memory_limit: float = 4 * 2**30

    @classmethod
    def graph_defaults(cls, graph: Data) -> dict[str, Any]:
        """Connect direct neighbours only where two steps would reach most of the graph."""
        dense = {"alpha": 1} if two_step_paths(graph) > MAX_TWO_STEP_PATHS else {}
        return {**super().graph_defaults(graph), **dense}

    def describe_defaults(self) -> str:
        """A sentence about `alpha`."""
        direct = "Uni-GNN connects direct neighbours only (alpha=1): the graph has many paths."
        return direct if self.alpha == 1 else ""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("alpha", "clusters_per_class", "layers", "hidden"):
            whole(name, getattr(self, name), 1)
        whole("recluster_every", self.recluster_every, 0)
        at_least("pseudo_weight", self.pseudo_weight, 0)
        at_least("memory_limit", self.memory_limit, 0)
        for name in ("threshold", "dropout"):
            fraction(name, getattr(self, name))
        one_of("pseudo_labels", self.pseudo_labels, ("balanced", "all", "none"))
        one_of("encoders", self.encoders, ("both", "structural", "semantic"))

    def _fit(self, task: Task) -> None:
        if not self._fit_on_card(task):
            self._fit_alone(task)

    def _fit_alone(self, task: Task) -> None:
        graph, train, every = task.graph, task.train, self.recluster_every
        labelled = train.nonzero().squeeze(1)
        labels, counts = graph.y[labelled], task.class_counts
        weights = inverse_class_weights(counts) if self.class_weights else torch.ones_like(counts)
        inputs = self._inputs(graph)
        net = self._network(graph, task.num_classes)
        net.init_clusters(inputs)
        numbers = count()

        def epoch() -> tuple[Tensor, Tensor]:
            number = next(numbers)
            due = number == 0 or (every > 0 and number % every == 0)
            first = net.first_layer(inputs, net.stored)
            with torch.no_grad():
                clean = net.logits(first, inputs, net.recluster if due else net.stored)
            probabilities = clean.t().softmax(0).t()  # torch vectorises over nodes, not classes
            chosen = self._choose(probabilities, counts, ~train)
            nodes = torch.cat([labelled, chosen.nodes])
            logits = net.logits(first, inputs, net.stored, dropout=True, nodes=nodes)
            logits, pseudo_logits = logits.tensor_split([labelled.numel()])
            losses = cross_entropy(logits, labels, reduction="none")
            loss = (weights[labels] * losses).sum()  # Eq. 8
            if chosen.nodes.numel():
                pseudo_loss = cross_entropy(pseudo_logits, chosen.labels)  # Eq. 13
                loss = loss + self.pseudo_weight * pseudo_loss  # Eq. 14
            return loss, validation_score(clean, task)

        self._train(net, epoch)
        net.clear_cache()
        self._settle(net, graph, inputs)

    def _together_with(self, other: Method) -> bool:
        return self._alike(other, except_in=MAY_DIFFER)

    def _fit_together(self, fits: Sequence[Fit], slots: int) -> Iterator[None]:
        inputs = self._inputs(fits[0].task.graph)
        runs = [cast(UniGNN, fit.method)._run(fit, inputs) for fit in fits]
        replicas = UnifiedReplicas(inputs, runs, slots, self.pseudo_labels, **self._training())
        yield from replicas.steps(runs)

    def _run(self, fit: Fit, inputs: Connectivity) -> UnifiedRun:
        """A run for `UnifiedReplicas`, which ends in this method being fitted."""
        with seeded(fit.seed):
            net = self._network(fit.task.graph, fit.task.num_classes)
            *cluster_seeds, noise_seed = torch.randint(2**31, (self.layers + 1,)).tolist()

        def done(history: History) -> None:
            self.history_.append(history)
            self._settle(net, fit.task.graph, inputs)
            fit.done()

        return UnifiedRun(
            task=fit.task,
            net=net,
            noise_seed=noise_seed,
            cluster_seeds=cluster_seeds,
            threshold=self.threshold,
            pseudo_weight=self.pseudo_weight,
            class_weights=self.class_weights,
            recluster_every=self.recluster_every,
            tell=self._tell,
            done=done,
        )

    def _settle(self, net: UnifiedNetwork, graph: Data, inputs: Connectivity) -> None:
        """Keep what was fitted."""
        self.net_ = net
        self.graph_: Data | None = graph
        self.inputs_: Connectivity | None = inputs
        self.signatures_: Tensor | None = None  # found when another graph asks for them

    def _logits(self, graph: Data) -> Tensor:
        inputs, clusters = self._ready(graph)
        return self.net_.forward(inputs, clusters)

    def _ready(self, graph: Data) -> tuple[Connectivity, FindClusters]:
        """What the network takes of a graph, and where the clusters of its nodes come from.

        A node that stands where it stood in training, with the features and the neighbours that
        it had, keeps its clusters; any other joins those whose means are nearest. The graph of
        training is therefore known again, by its nodes alone.
        """
        if self.graph_ is not None and self.inputs_ is not None and same_graph(graph, self.graph_):
            return self.inputs_, self.net_.stored
        inputs = self._inputs(graph)
        if "semantic" not in self.net_.encoders:
            return inputs, self.net_.stored
        known = matching_signatures(node_signatures(graph.x, graph.edge_index), self._remembered())
        return inputs, self.net_.stored_or_nearest(known)

    def _contributions(self, graph: Data, node: int, direction: Tensor) -> Contributions:
        return trace_unified(self.net_, *self._ready(graph), node, direction)

    def _remembered(self) -> Tensor:
        """Signatures of the nodes of training, along with the means of their clusters."""
        if self.signatures_ is None:
            assert self.graph_ is not None
            assert self.inputs_ is not None
            self.net_.store_means(self.inputs_)
            self.signatures_ = node_signatures(self.graph_.x, self.graph_.edge_index)
        return self.signatures_

    def _kept(self) -> dict[str, Tensor]:
        kept = packed("net", self.net_)
        if "semantic" in self.net_.encoders:
            kept["signatures"] = self._remembered()
            kept |= {f"means.{layer}": value for layer, value in self.net_.means().items()}
        return kept

    def _put_back(self, kept: Mapping[str, Tensor]) -> None:
        self.graph_ = self.inputs_ = None
        self.signatures_ = kept.get("signatures")
        num_nodes = 0 if self.signatures_ is None else self.signatures_.shape[0]
        self.net_ = self._shaped(self.num_features_, self.num_classes_, num_nodes).to(self.device_)
        unpack("net", self.net_, kept)
        if self.signatures_ is not None:
            self.net_.set_means({str(n): kept[f"means.{n}"] for n in range(self.layers)})

    @torch.no_grad()
    def embeddings(self, graph: Data | None = None) -> tuple[Tensor, Tensor | None]:
        """What both encoders end in, and the nodes' last clusters.

        Args:
            graph: Whose nodes; by default of what it was fitted to, unless it was loaded.

        Shapes:
            returns: (N, width), and int64, (N,)
        """
        if graph is None and self.graph_ is None:
            raise ValueError("A loaded model does not hold its graph: call embeddings(graph).")
        inputs, clusters = self._ready(self.graph_ if graph is None else self._bare(graph))
        seen: list[Tensor] = []

        def watched(layer: int, embeddings: Tensor | Sparse) -> Clusters:
            found = clusters(layer, embeddings)
            seen.append(found.assignment)
            return found

        found = self.net_.embed(inputs, watched)
        return found, seen[-1] if seen else None

    def _inputs(self, graph: Data) -> Connectivity:
        edges = to_undirected(graph.edge_index, num_nodes=graph.num_nodes)
        device, size = graph.x.device, graph.num_nodes
        paths = structural_adjacency(edges, size, self.alpha, memory_limit=self.memory_limit)
        x, structural = sparsify(graph.x.float()), propagation_matrix(to_scipy(paths), device)
        return Connectivity(
            x=x,
            structural=structural,
            adjacency=propagation_matrix(adjacency(edges, size), device),
            along_paths=structural @ x if isinstance(x, Tensor) else None,
        )

    def _network(self, graph: Data, num_classes: int) -> UnifiedNetwork:
        num_clusters = self.clusters_per_class * num_classes
        if num_clusters > graph.num_nodes:
            raise ValueError(
                f"clusters_per_class={self.clusters_per_class} makes {num_clusters} clusters of "
                f"{graph.num_nodes} nodes; use a smaller one."
            )
        net = self._shaped(graph.num_features, num_classes, graph.num_nodes)
        return net.to(graph.x.device)

    def _shaped(self, num_features: int, num_classes: int, num_nodes: int) -> UnifiedNetwork:
        both = ("structural", "semantic")
        return UnifiedNetwork(
            num_features,
            num_classes,
            num_nodes,
            num_clusters=self.clusters_per_class * num_classes,
            encoders=both if self.encoders == "both" else (self.encoders,),
            share=self.share_embeddings,
            layers=self.layers,
            hidden=self.hidden,
            dropout=self.dropout,
        )

    def _choose(self, probabilities: Tensor, counts: Tensor, unlabelled: Tensor) -> PseudoLabels:
        if self.pseudo_labels == "balanced":
            return balanced_pseudo_labels(probabilities, counts, unlabelled, self.threshold)
        if self.pseudo_labels == "all":
            return confident_pseudo_labels(probabilities, unlabelled, self.threshold)
        nothing = counts.new_empty(0)
        return PseudoLabels(nothing, nothing)


def two_step_paths(graph: Data) -> float:
    """Two-step paths per edge: the mean degree of the node that an edge leads to."""
    targets = graph.edge_index[1]
    if not targets.numel():
        return 0.0
    degrees = torch.bincount(targets, minlength=graph.num_nodes)
    return float(degrees[targets].double().mean())
