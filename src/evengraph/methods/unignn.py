"""Uni-GNN: structural and semantic connectivity, a weighted classifier, balanced pseudo-labels.

To be read with the paper beside it: `_fit` is Algorithm 1, and Eq. 1 to 14 follow in the paper's
order. Its symbols: X features, A adjacency, H embeddings, W weights, P probabilities; V_l labelled
and V_u unlabelled nodes; S the cluster of each node, here its number instead of a row of zeros and
a one; C classes, L `layers`, K `clusters_per_class` times C, beta `recluster_every`, epsilon
`threshold`, lambda `pseudo_weight`, omega the weights of labelled nodes, || columns side by side.

Layers and epochs count from 0. `Method` holds training (Adam; `maxiters` is its `max_epochs`),
`UnifiedMethod` saving and the clusters of other graphs.

By default its quick form, `evengraph.fast.unignn`, trains and predicts; the code below does in a
block `with evengraph.fast.off():`. Without dropout both are equal; with it they draw other numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Literal, NamedTuple, final

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout
from torch.nn.init import normal_, xavier_uniform_
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from evengraph.core.task import Task
from evengraph.core.untrusted import MAX_HOPS
from evengraph.methods.bases.unified import Features, FindClusters, UnifiedMethod
from evengraph.metrics.multiclass import StopOn, stopping_score
from evengraph.ops.pseudo import log_odds
from evengraph.ops.semantic import kmeans, unit_rows
from evengraph.ops.sparse import Sparse, propagation_matrix, sparsify


@final
@dataclass(kw_only=True)
class UniGNN(UnifiedMethod):
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
        keep_total: Without class weights, weight all labelled nodes alike so that the weights have
            the same sum as with them; otherwise each weight is one.
        encoders: Which of the encoders to use.
        share_embeddings: Each layer takes the embeddings of both encoders.
        layers: Layers of each encoder.
        hidden: Width of every layer.
        dropout: Dropout rate after each layer.
        memory_limit: Bytes that the structural adjacency may take in the quick form; fitting needs
            about four times. Where more pairs are alpha steps apart, it raises a MemoryError.
        cluster_starts: How often k-means starts anew, the tightest clusters are used; re-clustering
            starts from the previous clusters, once.
        mean_loss: Divide the loss of labelled nodes (Eq. 8) by the sum of their weights.
        unit_rows: Cluster rows scaled to length one.
        stop_on: Training ends by this value of the validation nodes: `score` is Macro-F1 (with two
            classes, see `evengraph.metrics.validation_score`), `loss` their cross-entropy,
            `accuracy` their balanced accuracy.
        ranked_by: The most confident nodes are those with the highest `probability`, of which many
            round to one in single precision and are taken by their ids, or with the highest
            `log_odds` in double precision.

    Cost:
        O((E_alpha + N) h + nnz(X) h) per epoch, with E_alpha pairs at most alpha steps apart;
        k-means every few epochs, O(N K h) per round.

    Departs:
        Points that the paper leaves open: pseudo-labels and clustered embeddings come from a pass
        without dropout; validation and test nodes, without their labels, may get a pseudo-label.
        The first layer's clusters come from the features, once; later clusterings start from the
        previous clusters, which is faster and scores no less. K-means starts once
        (`cluster_starts`), ends after 100 rounds or a change below 1e-4, and gives an empty cluster
        the farthest row; on sparse features it may put most nodes into one cluster, which a note of
        the quick form reports. The loss of labelled nodes is a sum, as printed, and training stops
        by Macro-F1; `mean_loss`, `unit_rows`, `stop_on` and `ranked_by` are other readings of the
        text. Confidence is a probability in single precision, in which many nodes are equal: the
        cut then falls inside a tie, and lower ids are taken. Without a pseudo-label their loss is
        left out. A_sem has ones on its diagonal before the identity is added; A_struct has zeros,
        as 1/SPD(i, i) is undefined. The classifier propagates over the input graph, is as wide as
        one encoder (`hidden`) and has biases. Features are neither normalised nor dropped out.
        Encoders have Xavier weights and no bias, as in the equations; the classifier starts like
        that of the comparison methods. Of epochs with equal validation score, patience counts from
        the first and the model is the latest. Edges are undirected, without weights and self-loops.
        Choices of ours: `alpha="auto"`, `memory_limit`, a smaller search space, and a patience of
        100 (the paper's tables use 1,000). On the CPU the quick form's dropout rate is
        a multiple of 1/256. What reproduces: docs/reproduction.md.

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
    tuned_params = frozenset(  # those of the second line are not stated in the paper
        {"alpha", "clusters_per_class", "threshold", "recluster_every"}
        | {"cluster_starts", "mean_loss", "unit_rows", "stop_on", "ranked_by"}
    )
    former_params = {"readings": "mean_loss, unit_rows and stop_on"}
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
    pseudo_labels: Literal["balanced", "all", "none"] = "balanced"
    class_weights: bool = True
    keep_total: bool = False
    encoders: Literal["both", "structural", "semantic"] = "both"
    share_embeddings: bool = True
    layers: int = 2
    hidden: int = 64
    dropout: float = 0.5
    memory_limit: float = 4 * 2**30
    cluster_starts: int = 1
    mean_loss: bool = False
    unit_rows: bool = False
    stop_on: StopOn = "score"
    ranked_by: Literal["probability", "log_odds"] = "probability"

    def _fit(self, task: Task) -> None:
        """Algorithm 1."""
        inputs = self._inputs(task.graph)  # line 3
        self.net_, self.graph_ = self._build_network().to(self.device_), task.graph
        epochs = count()

        def epoch() -> tuple[Tensor, Tensor]:  # lines 5 to 19
            with torch.no_grad():  # what is selected comes from a pass without dropout
                clean = self._forward(inputs, partial(self._updated, next(epochs)))  # lines 4, 17
                pseudo = self._select(clean, task)  # line 13
            logits = self._forward(inputs, self._stored, self.dropout)  # lines 6 to 12
            loss = self._loss(logits, pseudo, task)  # line 14
            return loss, stopping_score(self.stop_on, clean, task)

        self._train(self.net_, epoch)  # line 15, by Adam

    def _logits(self, graph: Data) -> Tensor:
        return self._forward(self._inputs(graph), self._known_or_nearest(graph))

    # Structural node encoder

    def _inputs(self, graph: Data) -> Inputs:
        """X, and A_struct and A, normalised; edges are read in both directions."""
        num_nodes = graph.num_nodes
        source, target = to_undirected(graph.edge_index.cpu(), num_nodes=num_nodes).numpy()
        pairs = source != target
        ones = np.ones(pairs.sum(), np.float32)
        adjacency = sp.csr_matrix((ones, (source[pairs], target[pairs])), (num_nodes, num_nodes))
        step = adjacency + sp.identity(num_nodes, np.float32, format="csr")
        structural, within = adjacency, step  # `within`: pairs at most so many steps apart
        for distance in range(2, self.alpha_ + 1):
            further = (within @ step).sign()
            structural = structural + (further - within) / distance  # Eq. 1, SPD(i, j) = distance
            within = further
        # D^-1/2 (A + I) D^-1/2, where D holds the row sums of A + I
        matrices = (propagation_matrix(one, graph.x.device) for one in (structural, adjacency))
        return Inputs(sparsify(graph.x.float()), *matrices)

    def _structural_layer(self, h: Features, weight: Tensor, inputs: Inputs) -> Tensor:
        return inputs.structural @ (h @ weight)  # Eq. 2, without sigma

    # Semantic node encoder

    def _cluster(self, h: Features, start: Tensor | None) -> Tensor:
        """S, by k-means of H_sem || H_struct (Eq. 3), which minimises the distances of Eq. 4."""
        rows, seed = self._cluster_rows(h), int(torch.randint(2**31, ()))
        return kmeans(rows, self.num_clusters, seed, start=start, starts=self.cluster_starts)

    def _semantic_layer(self, h: Features, weight: Tensor, clusters: Tensor) -> Tensor:
        # Eq. 5: A_sem joins all n nodes of a cluster, each to itself too. Eq. 6 adds the identity:
        # degrees are n + 1, and a row of the product is (sum of the cluster + own) / (n + 1). So
        # the N x N matrix need not be built
        projected = h @ weight
        shape = (self.num_clusters, projected.shape[1])
        sums = projected.new_zeros(shape).index_add(0, clusters, projected)
        degrees = clusters.bincount()[clusters] + 1
        return (sums[clusters] + projected) / degrees.unsqueeze(1)  # Eq. 6, without sigma

    def _stored(self, layer: int, h: Features) -> Tensor:
        """S of the training graph as it was found last."""
        clusters: Tensor = self.net_.get_buffer(f"clusters_{layer}")
        return clusters

    def _updated(self, epoch: int, layer: int, h: Features) -> Tensor:
        """S, found anew every beta epochs; that of the first layer, from X, only at the start."""
        stored, beta = self._stored(layer, h), self.recluster_every
        if epoch == 0 or (layer > 0 and beta > 0 and epoch % beta == 0):
            stored.copy_(self._cluster(h, start=stored if epoch else None))
        return stored

    # Both encoders, and the balanced node classifier

    def _encode(self, inputs: Inputs, find: FindClusters, rate: float = 0.0) -> Tensor:
        """H_sem || H_struct of the last layer; without an encoder, what the other one gives."""
        h: Any = inputs.x
        for layer, weights in enumerate(self.net_.weights):
            names, outputs = sorted(weights), []
            parts = [h] * len(names)
            if layer > 0 and not self.share_embeddings:  # each encoder takes its own columns of h
                parts = h.chunk(len(names), dim=1)
            for name, part in zip(names, parts, strict=True):
                if name == "semantic":
                    outputs.append(self._semantic_layer(part, weights[name], find(layer, h)))
                else:
                    outputs.append(self._structural_layer(part, weights[name], inputs))
            h = dropout(torch.cat(outputs, dim=1).relu(), rate)  # sigma of Eq. 2 and 6
        joint: Tensor = h
        return joint

    def _forward(self, inputs: Inputs, find: FindClusters, rate: float = 0.0) -> Tensor:
        """Logits of all nodes, whose softmax is P (Eq. 7); phi is a GCN layer and a linear one."""
        conv, linear = self.net_.classifier["conv"], self.net_.classifier["linear"]
        h = inputs.adjacency @ (self._encode(inputs, find, rate) @ conv["weight"]) + conv["bias"]
        logits: Tensor = linear(dropout(h.relu(), rate))
        return logits

    def _labelled_loss(self, logits: Tensor, task: Task) -> Tensor:
        """L, over V_l."""
        nodes, omega = task.train_nodes, self._omega(task.class_counts)
        labels = task.graph.y[nodes]
        losses = cross_entropy(logits[nodes], labels, reduction="none")
        return (omega[labels] * losses).sum()  # Eq. 8

    def _omega(self, counts: Tensor) -> Tensor:
        """The weight of a labelled node of each class."""
        omega = 1 / counts  # Eq. 9
        if not self.class_weights:
            total = (omega * counts).sum() if self.keep_total else counts.sum()
            omega = (total / counts.sum()).expand(len(counts))
        return omega / (omega * counts).sum() if self.mean_loss else omega

    # Balanced pseudo-label generation

    def _select(self, logits: Tensor, task: Task) -> tuple[Tensor, Tensor]:
        """The nodes of V_u that get a pseudo-label, and these labels."""
        wanted = task.class_counts.max() - task.class_counts  # Eq. 10
        if self.pseudo_labels != "balanced":
            wanted.fill_(task.graph.num_nodes if self.pseudo_labels == "all" else 0)
        confidence, predicted = logits.softmax(1).max(dim=1)
        ranked = log_odds(logits) if self.ranked_by == "log_odds" else confidence
        confident = ~task.train & (confidence > self.threshold)
        chosen = []
        for label, number in enumerate(wanted.tolist()):
            nodes = (confident & (predicted == label)).nonzero().squeeze(1)  # Eq. 11
            order = ranked[nodes].argsort(descending=True, stable=True)
            chosen.append(nodes[order[:number]])  # Eq. 12
        nodes = torch.cat(chosen)
        return nodes, predicted[nodes]

    def _loss(self, logits: Tensor, pseudo: tuple[Tensor, Tensor], task: Task) -> Tensor:
        """L_total; without pseudo-labels, L."""
        loss, (nodes, labels) = self._labelled_loss(logits, task), pseudo
        if nodes.numel():
            pseudo_loss = cross_entropy(logits[nodes], labels)  # Eq. 13
            loss = loss + self.pseudo_weight * pseudo_loss  # Eq. 14
        return loss

    # Parameters of the network, and what the contract asks for

    def _build_network(self) -> nn.Module:
        """W_struct and W_sem of every layer and W_phi, with S as buffers: the best are restored."""
        names = ("structural", "semantic") if self.encoders == "both" else (self.encoders,)
        if self.num_clusters > self.num_nodes_:
            raise ValueError(
                f"clusters_per_class={self.clusters_per_class} makes {self.num_clusters} clusters "
                f"of {self.num_nodes_} nodes; use a smaller one."
            )
        net, hidden, layers = nn.Module(), self.hidden, nn.ModuleList()
        joint = hidden * len(names)
        for layer in range(self.layers):
            width = self.num_features_ if layer == 0 else joint if self.share_embeddings else hidden
            weights = {name: xavier_uniform_(torch.empty(width, hidden)) for name in names}
            layers.append(nn.ParameterDict(weights))
            if "semantic" in names:
                clusters = torch.zeros(self.num_nodes_, dtype=torch.long)
                net.register_buffer(f"clusters_{layer}", clusters)
        bound = hidden**-0.5
        conv = {"weight": torch.empty(joint, hidden), "bias": torch.empty(hidden)}
        parts = {"conv": nn.ParameterDict({n: t.uniform_(-bound, bound) for n, t in conv.items()})}
        linear = nn.Linear(hidden, self.num_classes_)
        normal_(linear.weight, std=0.05)
        net.weights, net.classifier = layers, nn.ModuleDict(parts | {"linear": linear})
        return net

    @property
    def num_clusters(self) -> int:
        """K; 0 without the semantic encoder."""
        return 0 if self.encoders == "structural" else self.clusters_per_class * self.num_classes_

    def _cluster_rows(self, h: Features) -> Features:
        return unit_rows(h) if self.unit_rows else h

    def _reset(self, task: Task) -> None:
        """Validate the task, reset fitted state and resolve `alpha`."""
        super()._reset(task)
        self.alpha_ = _auto_alpha(task.graph) if self.alpha == "auto" else self.alpha
        self.num_nodes_, self.graph_, self.means_ = task.graph.num_nodes, None, {}


class Inputs(NamedTuple):
    """What the network sees of a graph."""

    x: Features  # (N, F)
    structural: Sparse  # D^-1/2 (A_struct + I) D^-1/2, (N, N)
    adjacency: Sparse  # D^-1/2 (A + I) D^-1/2, (N, N)


# Two-step paths per edge above which `alpha="auto"` is 1. With more, as on CiteSeer (7), PubMed
# (17) and Computers (174), 1 is as good or better; 2 is on CiteSeer without 60% of its edges (3.5).
MAX_TWO_STEP_PATHS = 5


def _auto_alpha(graph: Data) -> int:
    """The `alpha` for a graph, by the mean degree of the node that an edge leads to."""
    targets = to_undirected(graph.edge_index, num_nodes=graph.num_nodes)[1]
    degrees = torch.bincount(targets, minlength=graph.num_nodes)[targets].double()
    return 1 if targets.numel() and float(degrees.mean()) > MAX_TWO_STEP_PATHS else 2
