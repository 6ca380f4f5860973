"""UNREAL: pseudo-labels that geometry and the classifier agree on, a few of every class a round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.methods.bases.method import Method
from evengraph.metrics import validation_score
from evengraph.nn import CONVS, Backbone, Inputs
from evengraph.ops import (
    PseudoLabels,
    Sparse,
    cluster_means,
    kmeans,
    propagation_matrix,
    sparsify,
    undirected_adjacency,
)
from evengraph.ops.attach import Propagation
from evengraph.ops.propagate import Normalisation


@final
@dataclass(kw_only=True)
class UNREAL(Method):
    """Add unlabelled nodes that clusters and classifier agree on, as many to every class.

    In each round a fresh network learns from the labelled nodes. Its embeddings are clustered,
    and each cluster takes the class whose labelled nodes have the nearest mean. A node whose
    cluster and whose prediction are of the same class is a candidate. Candidates are ordered by
    their distance to the class mean and by confidence together; the less the two orders agree,
    the more the one of geometry counts. The first few of each class, without those that lie about
    as near to another class, join the labelled nodes. A last stage goes on with the network of
    the last round.

    Args:
        rounds: Rounds of pseudo-labels.
        round_epochs: Epochs of the network of a round.
        quota: Nodes that join a class in a round, at most.
        clusters: Clusters of the embeddings.
        persistence: How far down the two orders are compared, from 0 to below 1: a place weighs
            as much as the one above it, times this.
        margin: How much farther, in squared distance, the second nearest class mean must be
            than the nearest, as a share of the latter.
        hidden: Width of both convolutions.
        backbone: Their kind: `gcn` (symmetric), `sage` (GraphSAGE with means: a node's own
            features have weights of their own) or `gat` (attention, in eight heads).

    Cost:
        O(E h + nnz(X) h) per epoch, of which there are rounds times round_epochs before the last
        stage; k-means, O(N K h) a step, once in each round. It is slow: it trains rounds + 1
        networks, 41 by default, where GCN trains one; fewer rounds are faster in proportion.

    Departs:
        Overlap compares the two orders; the public code compares lists of ranks, which mean
        something else. Running statistics of batch normalisation are exactly those of the weights
        that predict. Selection is that of the comparison. The learning rate stays as it is.

    Reference:
        Yan, Zhang, Li, Zhou and Huang, "UNREAL: Unlabeled Nodes Retrieval and Labeling for
        Heavily-Imbalanced Node Classification", 2023.
    """

    title = "UNREAL"
    search_space = {"rounds": (10, 40), "quota": (4, 16, 64), "clusters": (100, 200)}
    limits = {
        **dict.fromkeys(("rounds", "round_epochs", "quota", "margin"), 0),
        **dict.fromkeys(("clusters", "hidden"), 1),
        "persistence": "fraction",
    }

    learning_rate: float = 0.005
    rounds: int = 40
    round_epochs: int = 200
    quota: int = 4
    clusters: int = 200
    persistence: float = 0.5
    margin: float = 0.25
    hidden: int = 128
    backbone: Backbone = "gcn"

    def _fit(self, task: Task) -> None:
        graph, inputs = task.graph, self._inputs(task.graph)
        labels = torch.where(task.train, graph.y, -1)  # and pseudo-labels, as they come
        self.net_ = self._new_network()
        for number in range(self.rounds):
            if (labels >= 0).all() or not self.quota:
                break
            if number:
                self.net_ = self._new_network()
            self._learn(task, inputs, labels, self.round_epochs)
            if self.history_[-1].interrupted:
                break
            with torch.no_grad():
                embeddings = normalize(self.net_.embed(*inputs))
                probabilities = self.net_(*inputs).softmax(1)
            found = self._retrieve(embeddings, probabilities, labels)
            labels = labels.index_copy(0, found.nodes, found.labels)
        self._learn(task, inputs, labels)

    def _learn(self, task: Task, inputs: Inputs, labels: Tensor, length: int | None = None) -> None:
        """Train on all that are labelled by now; with a length, for a round, up to its end."""
        net = self.net_
        nodes = (labels >= 0).nonzero().squeeze(1)

        def epoch() -> tuple[Tensor, Tensor]:
            logits = net.train()(*inputs)  # takes note of its statistics
            net.eval()
            loss = cross_entropy(logits[nodes], labels[nodes])
            if length is not None:
                return loss, torch.zeros_like(loss)  # nothing to choose: the last stays
            with torch.no_grad():
                return loss, validation_score(net(*inputs), task)

        limits = {"max_epochs": length, "patience": length}
        self._train(net, epoch, **limits, main=length is None, recordable=True)

    def _logits(self, graph: Data) -> Tensor:
        logits: Tensor = self.net_(*self._inputs(graph))
        return logits

    def _inputs(self, graph: Data) -> Inputs:
        matrix = undirected_adjacency(graph.edge_index, graph.num_nodes)
        how: Normalisation = "row" if self.backbone == "sage" else "symmetric"
        return Inputs(
            sparsify(graph.x.float()), propagation_matrix(matrix, graph.x.device, how=how)
        )

    def _build_network(self) -> nn.Module:
        widths = self.num_features_, self.hidden, self.num_classes_
        return _Network(*widths, self.backbone).eval()

    def _retrieve(self, embeddings: Tensor, probabilities: Tensor, labels: Tensor) -> PseudoLabels:
        """The pseudo-labels of a round."""
        classes = cluster_classes(
            embeddings, labels, probabilities.shape[1], self.clusters, int(torch.randint(2**31, ()))
        )
        confidence, predicted = probabilities.max(1)
        means = class_means(embeddings, labels, probabilities.shape[1])
        distances = torch.cdist(embeddings, means).square()  # (N, C)
        nearest = distances.topk(min(2, distances.shape[1]), dim=1, largest=False).values
        clear = nearest[:, -1] - nearest[:, 0] > self.margin * nearest[:, 0]
        agreed = (labels < 0) & (classes == predicted)
        chosen = []
        for label in range(probabilities.shape[1]):
            nodes = (agreed & (predicted == label)).nonzero().squeeze(1)
            order = joint_order(distances[nodes, label], confidence[nodes], self.persistence)
            nodes = nodes[order]
            chosen.append(nodes[clear[nodes]][: self.quota])
        found = torch.cat(chosen)
        return PseudoLabels(found, predicted[found])


def class_means(x: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """Mean row of the labelled nodes of each class, (C, d)."""
    labelled = labels >= 0
    return cluster_means(x[labelled], labels[labelled], num_classes)


def cluster_classes(x: Tensor, labels: Tensor, num_classes: int, k: int, seed: int) -> Tensor:
    """The class of each node's cluster: that whose mean is nearest to the cluster's unlabelled.

    Shapes:
        x: (N, d)
        labels: (N,), -1 for an unlabelled node
        returns: int64, (N,)
    """
    k = min(k, x.shape[0])
    assignment = kmeans(x, k, seed)
    unlabelled = labels < 0
    centres = cluster_means(x[unlabelled], assignment[unlabelled], k)
    nearest = torch.cdist(centres, class_means(x, labels, num_classes)).argmin(1)
    return nearest[assignment]


def joint_order(distance: Tensor, confidence: Tensor, persistence: float) -> Tensor:
    """Places of candidates from the best to the last, by geometry and confidence.

    With r the overlap of the two orders, a candidate's place is the smaller the smaller
    max(r, 1 - r) times its rank by distance plus min(r, 1 - r) times that by confidence.

    Shapes:
        distance, confidence: (n,)
        returns: int64, (n,)
    """
    by_distance = distance.argsort(stable=True).argsort()  # ranks from 0
    by_confidence = confidence.argsort(descending=True, stable=True).argsort()
    overlap = rank_biased_overlap(by_distance, by_confidence, persistence)
    of_distance = max(overlap, 1 - overlap)
    return (of_distance * by_distance + (1 - of_distance) * by_confidence).argsort(stable=True)


def rank_biased_overlap(one: Tensor, other: Tensor, persistence: float) -> float:
    """How much two orders of the same n things agree, from 0 to 1, above all at their tops.

    At depth d it is the share of the first d that both have in common; depths weigh as the powers
    of the persistence.

    Shapes:
        one, other: int64, (n,), the rank of each thing, from 0
    """
    size = one.numel()
    if not size:
        return 1.0
    # a thing is among the first d of both from the larger of its ranks on
    common = torch.bincount(torch.maximum(one, other), minlength=size).cumsum(0).double()
    depth = torch.arange(1, size + 1, device=one.device).double()
    weights = persistence ** (depth - 1)
    return float((weights * common / depth).sum() / weights.sum())


class _Network(nn.Module):
    """Twice a convolution, batch normalisation and a PReLU; then a linear layer."""

    def __init__(
        self, num_features: int, hidden: int, num_classes: int, backbone: Backbone
    ) -> None:
        super().__init__()
        conv = CONVS[backbone]
        self.convs = nn.ModuleList([conv(num_features, hidden), conv(hidden, hidden)])
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden, momentum=1.0) for _ in range(2))
        self.activations = nn.ModuleList(nn.PReLU() for _ in range(2))
        self.linear = nn.Linear(hidden, num_classes)

    def forward(self, x: Tensor | Sparse, propagation: Propagation) -> Tensor:
        """Logits of all nodes."""
        logits: Tensor = self.linear(self.embed(x, propagation))
        return logits

    def embed(self, x: Tensor | Sparse, propagation: Propagation) -> Tensor:
        """What the linear layer classifies."""
        for conv, norm, activation in zip(self.convs, self.norms, self.activations, strict=True):
            x = activation(norm(conv(x, propagation)))
        assert isinstance(x, Tensor)
        return x
