"""What strategies look at: clusters, labels, a model's predictions; and reasons in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.rng import generator
from evengraph.methods.bases.method import Committee
from evengraph.ops.semantic import cluster_means, kmeans, nearest_mean
from evengraph.ops.sparse import Sparse, to_scipy

MOST = 100  # clusters
SMALLEST = 10  # nodes per cluster, on average
SAMPLE = 4_000  # nodes that the means are found from
ITERATIONS = 20
BLOCK = 100_000  # rows compared at a time
SEED = 0  # clusters of a graph are always the same


class Clusters(NamedTuple):
    """The cluster of every node, and how near it is to the middle.

    Shapes:
        of: int64, (N,); typical: (N,), between 0 and 1; means: (K, d)
    """

    of: Tensor
    typical: Tensor
    means: Tensor

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self.means)

    def sizes(self, nodes: Tensor) -> Tensor:
        """How many of some nodes, a bool mask, each cluster holds, (K,)."""
        return torch.bincount(self.of[nodes], minlength=self.number)

    def turns(self, nodes: Tensor) -> Tensor:
        """How many of some nodes, a bool mask, are more typical of the cluster of a node, (N,)."""
        order = torch.where(nodes, self.typical, -1.0).argsort(descending=True, stable=True)
        order = order[self.of[order].argsort(stable=True)]
        sizes = torch.bincount(self.of, minlength=self.number)
        first = (sizes.cumsum(0) - sizes)[self.of[order]]
        result = torch.empty_like(order)
        result[order] = torch.arange(len(order)) - first
        return result


def find_clusters(rows: Tensor, count: int = MOST) -> Clusters:
    """Cluster rows by k-means; in a large graph the means are found from a sample.

    Args:
        count: Clusters, at most; fewer where nodes are few.
    """
    size = len(rows)
    count = max(1, min(count, min(size, SAMPLE) // SMALLEST))
    sample = torch.randperm(size, generator=generator(SEED))[:SAMPLE].sort().values
    part = rows[sample]
    groups = kmeans(part, count, SEED, max_iterations=ITERATIONS)
    means = cluster_means(part, groups, count)
    of = nearest_mean(rows, means)
    parts = zip(rows.split(BLOCK), of.split(BLOCK), strict=True)
    distance = torch.cat([(part - means[group]).square().sum(1) for part, group in parts])
    total = rows.new_zeros(count).index_add_(0, of, distance)
    usual = total / torch.bincount(of, minlength=count).clamp(min=1)
    return Clusters(of, torch.exp(-distance / usual[of].clamp(min=1e-12)), means)


GROUP = 5  # nodes that may be a class of their own
FAR = 1.5  # times the usual gap between clusters


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """A graph, the labels so far, and what a model thinks.

    Args:
        graph: Features and edges.
        rows: Every node as a row of numbers; see `node_rows`.
        clusters: Groups of nodes that are alike.
        operator: Averages over a node and its neighbours.
        labels: -1 for unlabelled.
        candidates: Nodes that may be offered; none of them has a label.
        num_classes: Including those without labels.
        probabilities: What the model predicts; None without a model.
        budget: How many nodes will be labelled.
        seed: Of everything random.

    Shapes:
        rows: (N, d); operator: (N, N); labels: int64, (N,); candidates: bool, (N,)
        probabilities: (N, C)
    """

    graph: Data
    rows: Tensor
    clusters: Clusters
    operator: Sparse
    labels: Tensor
    candidates: Tensor
    num_classes: int
    probabilities: Tensor | None = None
    budget: int = 20
    seed: int = 0

    @cached_property
    def known(self) -> Tensor:
        """Labelled nodes, ascending, (n,)."""
        return (self.labels >= 0).nonzero().squeeze(1)

    @cached_property
    def counts(self) -> Tensor:
        """Labels of each class, (C,)."""
        return torch.bincount(self.labels[self.known], minlength=self.num_classes)


def unlike_labels(evidence: Evidence) -> Tensor:
    """Nodes in clusters without a label whose nearest label is farther than clusters usually are.

    A class that nobody has labelled would be found there, so it is worth looking. With few labels
    these are many; see `new_class`. Without labels there are none.

    Shapes:
        returns: bool, (N,)
    """
    clusters = evidence.clusters
    if not len(evidence.known) or clusters.number < 2:
        return torch.zeros(len(evidence.labels), dtype=torch.bool)
    empty = clusters.sizes(evidence.labels >= 0) == 0
    between = torch.cdist(clusters.means, clusters.means).fill_diagonal_(torch.inf).amin(1)
    large = clusters.sizes(evidence.candidates) >= GROUP
    return (empty & large & (_gaps(evidence) > FAR * between.median()))[clusters.of]


def new_class(evidence: Evidence) -> Tensor:
    """Nodes unlike every label that are farther from labels than most nodes are, bool, (N,).

    With few labels nearly all nodes are far from them, and that says nothing of their class.
    """
    unlike = unlike_labels(evidence)
    if not unlike.any():
        return unlike
    gaps = _gaps(evidence)
    return unlike & (gaps > FAR * gaps.median())[evidence.clusters.of]


def _gaps(evidence: Evidence) -> Tensor:
    """How far each cluster is from the nearest label, (K,)."""
    return torch.cdist(evidence.clusters.means, evidence.rows[evidence.known]).amin(1)


def vote(committee: Committee) -> Tensor:
    """The mean of what the members predict, by weight, (N, C)."""
    return torch.einsum("m,mnc->nc", committee.weights, committee.probabilities)


TIMES = 2.0  # share of the labels over share of the nodes
LARGEST = 0.5  # of the labels
PART = 3  # of ten nodes; more cost the other classes
RARE = 0.9  # of an equal share of the nodes: a class with more is not rare


class Hunt(NamedTuple):
    """The class to look for.

    Args:
        label: Its number.
        likely: Candidates that are predicted to be of it, bool, (N,).
        number: How many of them belong to the next batch.
    """

    label: int
    likely: Tensor
    number: int


def find_hunt(evidence: Evidence) -> Hunt | None:
    """The rarest class and how many nodes it still needs; None if no class is rare.

    Of the classes that have labels and are predicted for a candidate, it is the one with the fewest
    nodes by the model. It should have as many labels as the others on average, or twice its share
    of the nodes if that is more, but at most half of all.
    """
    found = evidence.probabilities
    if found is None:
        return None
    predicted, seen = found.argmax(1), evidence.counts > 0
    usable = torch.bincount(predicted[evidence.candidates], minlength=evidence.num_classes) > 0
    shares = torch.where(usable & seen, found.mean(0), torch.inf)
    label, equal = int(shares.argmin()), 1 / max(1, int(seen.sum()))
    share = float(shares[label])
    if share >= RARE * equal or equal == 1:
        return None
    before, after = len(evidence.known), len(evidence.known) + evidence.budget
    goal = min(LARGEST, max(equal, TIMES * share)) * after
    likely = evidence.candidates & (predicted == label)
    lacking = math.ceil(goal - int(evidence.counts[label]))
    allowed = PART * after // 10 - PART * before // 10  # the same however batches are cut
    number = min(lacking, allowed, int(likely.sum()))
    return Hunt(label, likely, max(0, number))


CLEAR, CLOSE = 0.5, 0.15  # probability of a likely class; gap below which two compete
SCARCE = 5  # labels of a class
NEAR = 2  # steps within which a label is near


def reasons(evidence: Evidence, nodes: Tensor, class_names: Sequence[str]) -> list[str]:
    """One short text per node: what it probably is, how well known its surroundings are."""
    places, followers = _places(evidence, nodes), _followers(evidence, nodes)
    guesses = [""] * len(nodes)
    if evidence.probabilities is not None:
        top = evidence.probabilities[nodes].topk(min(2, evidence.num_classes), dim=1)
        counts, hunt = evidence.counts.tolist(), find_hunt(evidence)
        rarest = None if hunt is None else hunt.label
        guesses = [
            _guess(values, classes, class_names, counts, rarest)
            for values, classes in zip(top.values.tolist(), top.indices.tolist(), strict=True)
        ]
    texts = zip(guesses, places, followers, strict=True)
    return [", ".join(filter(None, parts)) or "no label nearby" for parts in texts]


def notes(evidence: Evidence, nodes: Tensor, class_names: Sequence[str]) -> tuple[str, ...]:
    """What to know about a batch as a whole, in sentences."""
    counts = evidence.counts.tolist()
    labelled = [name for name, count in zip(class_names, counts, strict=True) if count]
    texts = []
    if not labelled:
        texts.append("No label yet: nodes are chosen by the graph and the features alone.")
    elif len(labelled) == 1:
        texts.append(f"All labels are {labelled[0]}: nodes are chosen without a model.")
    missing = [name for name, count in zip(class_names, counts, strict=True) if not count]
    if labelled and missing:
        texts.append(f"No label yet of {', '.join(missing)}.")
    if alien := int(new_class(evidence)[nodes].sum()):
        where = "it is in a group" if alien == 1 else "they are in groups"
        texts.append(
            f"{alien} of {len(nodes)} may be of a class that nobody has labelled: {where} unlike "
            "every labelled node."
        )
    return tuple(texts)


def _guess(
    values: Sequence[float],
    classes: Sequence[int],
    names: Sequence[str],
    counts: Sequence[int],
    rarest: int | None,
) -> str:
    """What the model thinks, and whether it has seen little of it."""
    first = names[classes[0]]
    if len(values) > 1 and values[0] - values[1] < CLOSE:
        return f"{first} or {names[classes[1]]} ({values[0]:.0%}, {values[1]:.0%})"
    text = f"{'likely' if values[0] > CLEAR else 'perhaps'} {first} ({values[0]:.0%})"
    few = counts[classes[0]]
    if 0 < few <= SCARCE:
        return f"{text}, which has {few} label{'s' * (few != 1)}"
    return f"{text}, the rarest class" if classes[0] == rarest else text


def _places(evidence: Evidence, nodes: Tensor) -> list[str]:
    """How well known its surroundings are."""
    clusters, alien = evidence.clusters, new_class(evidence)
    sizes = clusters.sizes(evidence.labels < 0).tolist()
    labels = clusters.sizes(evidence.labels >= 0).tolist()
    texts = []
    for node, cluster in zip(nodes.tolist(), clusters.of[nodes].tolist(), strict=True):
        size = sizes[cluster]
        if alien[node]:
            texts.append(f"in a group of {size:,} unlike every label: a new class?")
        elif labels[cluster] == 0 and size >= GROUP:
            texts.append(f"in a group of {size:,} without a label")
        else:
            texts.append("")
    return texts


def _followers(evidence: Evidence, nodes: Tensor) -> list[str]:
    """How many nodes would have a label within two steps that have none now."""
    walk = to_scipy(evidence.operator.matrix)
    known = np.zeros(walk.shape[0], dtype=bool)
    known[evidence.known.numpy()] = True
    reached = _spread(walk, known)
    texts = []
    for node in nodes.tolist():
        around = _around(walk, node)
        fresh = around[~reached[around]]
        far = "far from any label" if len(evidence.known) and not reached[node] else ""
        count = len(fresh) - int(not reached[node])
        reached[fresh] = True
        follow = f"{count:,} node{'s' * (count != 1)} would follow" if count > 0 else ""
        texts.append(", ".join(filter(None, (far, follow))))
    return texts


def _spread(walk: sp.csr_matrix, start: np.ndarray) -> np.ndarray:
    """Nodes within NEAR steps of some nodes, bool, (N,)."""
    state = start.astype(np.float32)
    for _ in range(NEAR):
        state = (walk @ state > 0).astype(np.float32)  # the diagonal keeps what is there
    return state > 0


def _around(walk: sp.csr_matrix, node: int) -> np.ndarray:
    """Nodes within NEAR steps of a node, itself included, ascending."""
    nodes = np.array([node])
    for _ in range(NEAR):
        parts = [walk.indices[walk.indptr[one] : walk.indptr[one + 1]] for one in nodes]
        nodes = np.unique(np.concatenate(parts))
    return nodes
