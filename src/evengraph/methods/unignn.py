"""Uni-GNN: structural and semantic connectivity, a weighted classifier, balanced pseudo-labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal, final

import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.machine import format_size
from evengraph.core.rng import seeded
from evengraph.core.task import Task
from evengraph.core.untrusted import MAX_HOPS
from evengraph.fast.thinning import Thinning
from evengraph.methods.bases.batching import Batching, Fit
from evengraph.methods.bases.method import Method, check_range, same_graph
from evengraph.methods.bases.readings import Readings, parse_readings
from evengraph.methods.bases.unified import (
    Examples,
    UnifiedReplicas,
    UnifiedRun,
    labelled_weights,
    unified_epoch,
)
from evengraph.methods.bases.unified_disk import UnifiedOnDisk
from evengraph.metrics.selection import stopping_score
from evengraph.nn.tracing import Contributions, trace_unified
from evengraph.nn.unified import Connectivity, FindClusters, UnifiedNetwork
from evengraph.ops.features import matching_signatures, node_signatures
from evengraph.ops.pseudo import Selection, select_pseudo_labels
from evengraph.ops.semantic import Clusters
from evengraph.ops.sparse import Sparse, propagation_matrix, sparsify, undirected_matrix
from evengraph.ops.structural import bounded_path_weights, two_step_paths
from evengraph.training import History

MAY_DIFFER = frozenset(
    {"clusters_per_class", "threshold", "recluster_every", "pseudo_weight", "class_weights"}
)
"""Parameters in which the runs of a batch may differ."""

MAX_TWO_STEP_PATHS = 5
"""Two-step paths per edge above which `alpha="auto"` is 1.

With 7 (CiteSeer) to 21 (dblp) 1 and 2 are about equal, or 1 is better: by 1 to 6 points on PubMed
(17), by 4 on Computers (174). Without 60% of its edges CiteSeer has 3.5: there 2 gains three points
with few labels, and loses half a point with a tenth of all.
"""


@final
@dataclass(kw_only=True)
class UniGNN(UnifiedOnDisk, Method):
    """Propagate labels beyond neighbours: along short paths, and between similar nodes.

    Two encoders run in parallel. The structural one propagates between nodes at most alpha
    steps apart, weighted by one over their distance; the semantic one propagates within
    fine-grained k-means clusters of the embeddings, which are updated during training. Each layer
    of both takes the outputs of both from the layer before. A classifier on the two is trained
    with equal weight for every class, and with the most confident unlabelled nodes as further
    examples of the classes that have few.

    Another graph, or this one with new nodes, is predicted without training: a node that is
    recognised keeps its clusters, any other joins those with the nearest saved means.

    The paper's ablations are parameters: `share_embeddings=False`, `pseudo_labels="none"`,
    `alpha=1`, `encoders="semantic"`, `encoders="structural"`, `pseudo_labels="all"`,
    `recluster_every=0` and `class_weights=False`, in its order.

    Args:
        alpha: Maximum distance at which two nodes are connected. `auto` is 2 on very sparse
            graphs, where few labels are in reach, and 1 on others.
        clusters_per_class: Clusters of a semantic layer, per class.
        threshold: Confidence that a pseudo-label must exceed.
        recluster_every: Epochs between two clusterings of the embeddings; 0: only at the start.
        pseudo_weight: Weight of the loss on pseudo-labels.
        pseudo_labels: `balanced` fills rare classes up, `all` takes every confident node,
            `none` uses none.
        class_weights: Weight labelled nodes by one over the size of their class.
        encoders: Which of the encoders to use.
        share_embeddings: Each layer takes the embeddings of both encoders.
        layers: Layers of each encoder.
        hidden: Width of every layer.
        dropout: Dropout rate after each layer.
        memory_limit: Bytes that the structural adjacency may take; fitting needs about four times.
            Where more pairs are alpha steps apart, a random part of those beyond direct neighbours
            is connected, with weights that keep the expectation; a note of the fit says so.
        cluster_starts: How often k-means starts anew, the tightest clusters are used; re-clustering
            starts from the previous clusters, once.
        readings: Other readings of the paper, with commas between them: `mean-loss` divides the
            loss of labelled nodes by the sum of their weights, `unit-rows` clusters rows scaled to
            length one, `stop-on-loss` and `stop-on-accuracy` end training by the loss or the
            balanced accuracy of the validation nodes instead of their Macro-F1.

    Cost:
        O((E_alpha + N) h + nnz(X) h) per epoch, with E_alpha pairs at most alpha steps apart;
        k-means every few epochs, O(N K h) per round.

    Departs:
        Points that the paper leaves open: pseudo-labels and clustered embeddings come from a pass
        without dropout; validation and test nodes, without their labels, may get a pseudo-label.
        The first layer's clusters come from the features, once; later clusterings start from the
        previous clusters, which is faster and scores no less. K-means starts once
        (`cluster_starts`); on sparse features it may then put most nodes into one cluster, and a
        note of the fit says so. The loss of labelled nodes is a sum, as printed, and training stops
        by Macro-F1 (`readings` has other choices). A_sem has ones on its diagonal before
        the identity is added. The classifier propagates over the input graph. Features are neither
        normalised nor dropped out. Encoders have Xavier weights and no bias, as in the equations;
        the classifier starts like that of the comparison methods. Of epochs with equal validation
        score, patience counts from the first and the model is the latest. Edges are undirected. On
        the CPU the dropout rate is a multiple of 1/256. What reproduces: docs/reproduction.md.

    Reference:
        Alchihabi, Yan and Guo, "Overcoming Class Imbalance: Unified GNN Learning with
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
    tuned_params = frozenset(  # the last two are not stated in the paper
        {"alpha", "clusters_per_class", "threshold", "recluster_every"}
        | {"cluster_starts", "readings"}
    )
    suits_heterophily = True
    limits = {
        "alpha": (1, MAX_HOPS),
        **dict.fromkeys(("clusters_per_class", "cluster_starts", "layers", "hidden"), 1),
        **dict.fromkeys(("recluster_every", "pseudo_weight", "memory_limit"), 0),
        **dict.fromkeys(("threshold", "dropout"), "fraction"),
    }

    alpha: int | Literal["auto"] = "auto"
    clusters_per_class: int = 10
    threshold: float = 0.5
    recluster_every: int = 50
    pseudo_weight: float = 1.0
    pseudo_labels: Selection = "balanced"
    class_weights: bool = True
    encoders: Literal["both", "structural", "semantic"] = "both"
    share_embeddings: bool = True
    layers: int = 2
    hidden: int = 64
    dropout: float = 0.5
    memory_limit: float = 4 * 2**30
    cluster_starts: int = 1
    readings: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        parse_readings(self.readings)

    def describe_defaults(self, graph: Data) -> str:
        """A sentence about `alpha`."""
        if self.alpha != "auto":
            return ""
        alpha = auto_alpha(graph)
        reach = "direct neighbours only" if alpha == 1 else "nodes up to two steps apart"
        return f"Uni-GNN connects {reach} (alpha={alpha})."

    @property
    def resolved_params(self) -> dict[str, Any]:
        """The `alpha` that `auto` stood for."""
        return {"alpha": self.alpha_} if self.alpha == "auto" else {}

    def reset(self, task: Task) -> None:
        """Validate the task, reset fitted state and resolve `alpha`."""
        super().reset(task)
        self.alpha_ = auto_alpha(task.graph) if self.alpha == "auto" else self.alpha

    def _fit(self, task: Task) -> None:
        graph, every, stop_on = task.graph, self.recluster_every, self._readings.stop_on
        inputs = self._inputs(graph)
        net = self._network(graph)
        net.init_clusters(inputs)
        select, numbers = self._selection(task), count()

        def epoch() -> tuple[Tensor, Tensor]:
            number = next(numbers)
            due = number == 0 or (every > 0 and number % every == 0)
            return unified_epoch(
                net,
                inputs,
                net.stored,
                select=select,
                score=lambda logits: stopping_score(stop_on, logits, task),
                recluster=net.recluster if due else None,
            )

        self._train(net, epoch)
        net.clear_cache()
        self._set_fitted(net, graph, inputs)

    def _selection(self, task: Task) -> Callable[[Tensor], Examples]:
        """The examples of an epoch, labelled nodes first, from logits without dropout."""
        labelled, counts, unlabelled = task.train_nodes, task.class_counts, ~task.train
        labels = task.graph.y[labelled]
        weights = labelled_weights(counts, self.class_weights, self._readings.mean_loss)[labels]

        def select(logits: Tensor) -> Examples:
            probabilities = logits.t().softmax(0).t()  # torch vectorises over nodes, not classes
            chosen = select_pseudo_labels(
                self.pseudo_labels, probabilities, counts, unlabelled, self.threshold
            )
            return Examples(
                targets=torch.cat([labels, chosen.labels]),
                weights=weights,
                nodes=torch.cat([labelled, chosen.nodes]),
                pseudo_weight=self.pseudo_weight,
            )

        return select

    def batching(self) -> Batching:
        """Runs with the same network, up to the number of clusters."""
        return Batching(self._train_batch, may_differ=MAY_DIFFER)

    def _train_batch(self, fits: Sequence[Fit], slots: int) -> Iterator[None]:
        inputs = self._inputs(fits[0].task.graph)
        runs = [fit.method._run(fit, inputs) for fit in fits]
        params = self._training_params()
        yield from UnifiedReplicas(inputs, runs, slots, self.pseudo_labels, **params).steps(runs)

    def _run(self, fit: Fit, inputs: Connectivity) -> UnifiedRun:
        """A run of `UnifiedReplicas` that fits this method."""
        with seeded(fit.seed):
            net = self._network(fit.task.graph)
            *cluster_seeds, noise_seed = torch.randint(2**31, (self.layers + 1,)).tolist()

        def on_end(history: History) -> None:
            self.history_.append(history)
            self._set_fitted(net, fit.task.graph, inputs)
            fit.on_fitted()

        return UnifiedRun(
            task=fit.task,
            net=net,
            noise_seed=noise_seed,
            cluster_seeds=cluster_seeds,
            threshold=self.threshold,
            pseudo_weight=self.pseudo_weight,
            class_weights=self.class_weights,
            readings=self._readings,
            recluster_every=self.recluster_every,
            on_epoch=self._report_epoch,
            on_end=on_end,
        )

    def _set_fitted(self, net: UnifiedNetwork, graph: Data, inputs: Connectivity) -> None:
        self.net_ = net
        self.graph_: Data | None = graph
        self.inputs_: Connectivity | None = inputs
        self.signatures_: Tensor | None = None  # computed when another graph needs them
        self.notes_ = [*([inputs.note] if inputs.note else []), *net.crowded_layers()]

    def _logits(self, graph: Data) -> Tensor:
        logits: Tensor = self.net_(*self._inputs_and_clusters(graph))
        return logits

    def _inputs_and_clusters(self, graph: Data) -> tuple[Connectivity, FindClusters]:
        """Network inputs of a graph, and the source of its clusters.

        Nodes with the row, features and neighbours of a training node keep its clusters; others
        join those with the nearest means.
        """
        if self.graph_ is not None and self.inputs_ is not None and same_graph(graph, self.graph_):
            return self.inputs_, self.net_.stored
        inputs = self._inputs(graph)
        if "semantic" not in self.net_.encoders:
            return inputs, self.net_.stored
        known = matching_signatures(
            node_signatures(graph.x, graph.edge_index), self._training_signatures()
        )
        return inputs, self.net_.stored_or_nearest(known)

    def contributions(self, graph: Data, node: int, direction: Tensor) -> Contributions:
        """Exact parts of the logits, with the clusters held fixed."""
        return trace_unified(self.net_, *self._inputs_and_clusters(graph), node, direction)

    def _training_signatures(self) -> Tensor:
        """Signatures of the training nodes; also computes the means of their clusters."""
        if self.signatures_ is None:
            assert self.graph_ is not None
            assert self.inputs_ is not None
            self.net_.store_means(self.inputs_)
            self.signatures_ = node_signatures(self.graph_.x, self.graph_.edge_index)
        return self.signatures_

    def _state(self) -> dict[str, Tensor]:
        state = super()._state() | {"alpha": torch.tensor([self.alpha_])}
        if "semantic" in self.net_.encoders:
            state["signatures"] = self._training_signatures()
            state |= {f"means.{layer}": value for layer, value in self.net_.means.items()}
        return state

    def _load_state(self, state: Mapping[str, Tensor]) -> None:
        self.graph_ = self.inputs_ = None
        # models saved before there was "auto" do not hold it
        self.alpha_ = int(state["alpha"]) if self.alpha == "auto" else self.alpha
        check_range("alpha", self.alpha_, 1, MAX_HOPS)
        self.signatures_ = state.get("signatures")
        self.num_nodes_ = 0 if self.signatures_ is None else self.signatures_.shape[0]
        super()._load_state(state)
        if self.signatures_ is not None:
            self.net_.means = {n: state[f"means.{n}"] for n in range(self.layers)}
            self.net_.check_clusters()

    @torch.no_grad()
    def embeddings(self, graph: Data | None = None) -> tuple[Tensor, Tensor | None]:
        """Embeddings of both encoders side by side, and the clusters of the last layer.

        Args:
            graph: By default the training graph, which a loaded model does not hold.

        Shapes:
            returns: (N, width), and int64, (N,)
        """
        if graph is None and self.graph_ is None:
            raise ValueError("A loaded model does not hold its graph: call embeddings(graph).")
        graph = self.graph_ if graph is None else self.model_input(graph)
        inputs, find_clusters = self._inputs_and_clusters(graph)
        assignments: list[Tensor] = []

        def recorded(layer: int, embeddings: Tensor | Sparse) -> Clusters:
            clusters = find_clusters(layer, embeddings)
            assignments.append(clusters.assignment)
            return clusters

        embeddings = self.net_.embed(inputs, recorded)
        return embeddings, assignments[-1] if assignments else None

    def _inputs(self, graph: Data) -> Connectivity:
        device, x, note = graph.x.device, sparsify(graph.x.float()), ""
        matrix = undirected_matrix(graph.edge_index, graph.num_nodes)
        adjacency = structural = propagation_matrix(matrix, device)
        if self.alpha_ > 1:
            paths, thinning = bounded_path_weights(matrix, self.alpha_, self.memory_limit)
            structural = propagation_matrix(paths, device)
            note = "" if thinning is None else self._describe(thinning)
        along_paths = structural @ x if isinstance(x, Tensor) else None
        return Connectivity(x, structural, adjacency, along_paths, note)

    def _describe(self, thinning: Thinning) -> str:
        return (
            f"The pairs of nodes up to alpha={self.alpha_} steps apart exceed memory_limit "
            f"({format_size(self.memory_limit)}): besides its neighbours, a node is connected to "
            f"{thinning.limit:,} others at random on average, or fewer."
        )

    def _network(self, graph: Data) -> UnifiedNetwork:
        """A network for a training graph."""
        num_clusters = self.clusters_per_class * self.num_classes_
        if num_clusters > graph.num_nodes:
            raise ValueError(
                f"clusters_per_class={self.clusters_per_class} makes {num_clusters} clusters of "
                f"{graph.num_nodes} nodes; use a smaller one."
            )
        self.num_nodes_ = graph.num_nodes
        net: UnifiedNetwork = self._new_network()
        return net

    def _build_network(self) -> UnifiedNetwork:
        return UnifiedNetwork(
            self.num_features_,
            self.num_classes_,
            self.num_nodes_,
            num_clusters=self.clusters_per_class * self.num_classes_,
            encoders=("structural", "semantic") if self.encoders == "both" else (self.encoders,),
            share=self.share_embeddings,
            layers=self.layers,
            hidden=self.hidden,
            dropout=self.dropout,
            cluster_starts=self.cluster_starts,
            unit_length=self._readings.unit_rows,
        )

    @property
    def _readings(self) -> Readings:
        return parse_readings(self.readings)


def auto_alpha(graph: Data) -> int:
    """The `alpha` for a graph: 1 where two steps reach too much."""
    return 1 if two_step_paths(graph.edge_index, graph.num_nodes) > MAX_TWO_STEP_PATHS else 2
