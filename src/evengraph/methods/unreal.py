"""UNREAL: rounds of pseudo-labels that clusters and classifier agree on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast, final

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.methods.bases.method import Method
from evengraph.metrics.multiclass import validation_score
from evengraph.nn.networks import CONVS, Backbone, Inputs
from evengraph.ops.pseudo import PseudoLabels
from evengraph.ops.semantic import cluster_means, kmeans
from evengraph.ops.sparse import Sparse, propagation_matrix, sparsify, weighted_adjacency
from evengraph.ops.synthesis import Propagation


@final
@dataclass(kw_only=True)
class UNREAL(Method):
    """Add pseudo-labels that clusters and classifier agree on, equally many to every class.

    In each round a new network is trained on the labelled nodes. Its embeddings are clustered, and
    each cluster gets the class with the nearest mean of labelled nodes. Nodes whose cluster and
    prediction agree are candidates, ranked by distance to the class mean and by confidence; the
    less the two rankings agree, the more distance counts. The best few of each class, except those
    almost as close to another class, become labelled. A final stage goes on with the last network.

    Args:
        rounds: Rounds of pseudo-labels.
        round_epochs: Epochs per round.
        quota: Maximum number of nodes that join a class in a round.
        clusters: Clusters of the embeddings.
        persistence: Weight of each rank relative to the one above when rankings are compared.
        margin: How much farther the second nearest class mean must be than the nearest, in squared
            distance, as a share of the latter.
        hidden: Width of both convolutions.
        backbone: `gcn` (symmetric), `sage` (GraphSAGE with means) or `gat` (eight heads).

    Cost:
        O(E h + nnz(X) h) per epoch, rounds times round_epochs of them before the final stage;
        k-means, O(N K h) per step, once per round. It is slow: it trains rounds + 1 networks, 41 by
        default, where GCN trains one.

    Departs:
        Overlap compares the two rankings; the public code compares lists of ranks, which is not the
        same. Batch-norm statistics are exactly those of the weights that predict. Selection is
        that of the comparison. The learning rate is constant. Convolutions start with the weights
        of the comparison's, uniform by the number of outputs, not with PyG's.

    Reference:
        Yan, Zhang, Li, Zhou and Huang, "UNREAL: Unlabeled Nodes Retrieval and Labeling for
        Heavily-Imbalanced Node Classification", 2023.
    """

    _weighted_edges = True
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
        labels = torch.where(task.train, graph.y, -1)  # pseudo-labels are added
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
            pseudo = self._retrieve(embeddings, probabilities, labels)
            labels = labels.index_copy(0, pseudo.nodes, pseudo.labels)
        self._learn(task, inputs, labels)

    def _learn(self, task: Task, inputs: Inputs, labels: Tensor, length: int | None = None) -> None:
        """Train on all labels and pseudo-labels: a round of `length` epochs, or the final stage."""
        net = self.net_
        nodes = (labels >= 0).nonzero().squeeze(1)

        def epoch() -> tuple[Tensor, Tensor]:
            logits = net.train()(*inputs)  # updates batch-norm statistics
            net.eval()
            loss = cross_entropy(logits[nodes], labels[nodes])
            if length is not None:
                return loss, torch.zeros_like(loss)  # no selection: the last weights
            with torch.no_grad():
                return loss, validation_score(net(*inputs), task)

        limits = {"max_epochs": length, "patience": length}
        self._train(net, epoch, **limits, main=length is None, recordable=True)

    def _logits(self, graph: Data) -> Tensor:
        return cast(Tensor, self.net_(*self._inputs(graph)))

    def _inputs(self, graph: Data) -> Inputs:
        matrix, device, mean = weighted_adjacency(graph), graph.x.device, self.backbone == "sage"
        propagation = propagation_matrix(matrix, device, how="row" if mean else "symmetric")
        return Inputs(sparsify(graph.x.float()), propagation)

    def _build_network(self) -> nn.Module:
        return _Network(self).eval()

    def _retrieve(self, embeddings: Tensor, probabilities: Tensor, labels: Tensor) -> PseudoLabels:
        num_classes, seed = probabilities.shape[1], int(torch.randint(2**31, ()))
        classes = cluster_classes(embeddings, labels, num_classes, self.clusters, seed)
        confidence, predicted = probabilities.max(1)
        means = class_means(embeddings, labels, num_classes)  # the class centroids
        distances = torch.cdist(embeddings, means).square()  # (N, C)
        # d1 and d2, to the two nearest centroids: unclear if (d2 - d1) / d1 is at most the margin
        nearest = distances.topk(min(2, distances.shape[1]), dim=1, largest=False).values
        clear = nearest[:, -1] - nearest[:, 0] > self.margin * nearest[:, 0]
        # candidates: cluster and classifier agree
        agreed = (labels < 0) & (classes == predicted)
        selected = []
        for label in range(num_classes):
            nodes = (agreed & (predicted == label)).nonzero().squeeze(1)
            order = joint_order(distances[nodes, label], confidence[nodes], self.persistence)
            selected.append(nodes[order][clear[nodes[order]]][: self.quota])
        nodes = torch.cat(selected)
        return PseudoLabels(nodes, predicted[nodes])


def class_means(x: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """Mean row of the labelled nodes of each class, (C, d)."""
    labelled = labels >= 0
    return cluster_means(x[labelled], labels[labelled], num_classes)


def cluster_classes(x: Tensor, labels: Tensor, num_classes: int, k: int, seed: int) -> Tensor:
    """The class of each node's cluster: that with the mean nearest to its unlabelled nodes."""
    k = min(k, x.shape[0])
    assignment = kmeans(x, k, seed)
    unlabelled = labels < 0
    centres = cluster_means(x[unlabelled], assignment[unlabelled], k)
    nearest = torch.cdist(centres, class_means(x, labels, num_classes)).argmin(1)
    return nearest[assignment]


def joint_order(distance: Tensor, confidence: Tensor, persistence: float) -> Tensor:
    """Indices of the candidates from best to worst, by distance and confidence.

    With r the overlap of the two rankings, candidates are sorted by max(r, 1 - r) times their rank
    by distance plus min(r, 1 - r) times their rank by confidence.
    """
    by_distance = distance.argsort(stable=True).argsort()  # ranks from 0
    by_confidence = confidence.argsort(descending=True, stable=True).argsort()
    overlap = rank_biased_overlap(by_distance, by_confidence, persistence)
    of_distance = max(overlap, 1 - overlap)
    return (of_distance * by_distance + (1 - of_distance) * by_confidence).argsort(stable=True)


def rank_biased_overlap(one: Tensor, other: Tensor, persistence: float) -> float:
    """Agreement of two rankings of the same n items, from 0 to 1; top ranks count most.

    The share of the first d items that both have in common, averaged over depths d with powers of
    the persistence as weights. `one` and `other` hold the rank of each item, from 0.
    """
    size = one.numel()
    if not size:
        return 1.0
    # an item is among the first d of both from the larger of its ranks on
    common = torch.bincount(torch.maximum(one, other), minlength=size).cumsum(0).double()
    depth = torch.arange(1, size + 1, device=one.device).double()
    weights = persistence ** (depth - 1)
    return float((weights * common / depth).sum() / weights.sum())


class _Network(nn.Module):
    """Two blocks of convolution, batch norm and PReLU, then a linear layer."""

    def __init__(self, method: UNREAL) -> None:
        super().__init__()
        conv, hidden = CONVS[method.backbone], method.hidden
        self.convs = nn.ModuleList([conv(method.num_features_, hidden), conv(hidden, hidden)])
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden, momentum=1.0) for _ in range(2))
        self.activations = nn.ModuleList(nn.PReLU() for _ in range(2))
        self.linear = nn.Linear(hidden, method.num_classes_)

    def forward(self, x: Tensor | Sparse, propagation: Propagation) -> Tensor:
        return cast(Tensor, self.linear(self.embed(x, propagation)))

    def embed(self, x: Tensor | Sparse, propagation: Propagation) -> Tensor:
        for conv, norm, activate in zip(self.convs, self.norms, self.activations, strict=True):
            x = activate(norm(conv(x, propagation)))
        assert isinstance(x, Tensor)
        return x
