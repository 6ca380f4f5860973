"""Strategies: what is known of a graph -> a score for every node, and reasons in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.rng import generator
from evengraph.ops.semantic import cluster_means, kmeans, nearest_mean
from evengraph.ops.sparse import Sparse, diffuse, to_scipy

MOST = 100  # clusters
SMALLEST = 10  # nodes per cluster, on average
CLUSTERED = 4_000  # nodes that the means are found from
ITERATIONS = 20  # of k-means
MEASURED = 100_000  # rows whose distance to their mean is computed at a time
CLUSTER_SEED = 0  # clusters of a graph are always the same

GROUP = 5  # nodes that may be a class of their own
FAR = 1.5  # times the usual gap between clusters

TIMES = 2.0  # share of the labels over share of the nodes
LARGEST = 0.5  # of the labels
PART = 3  # of ten nodes; more cost the other classes
SCANT, SCANT_PART = 0.15, 5  # predicted share of a scarce class, and its part of ten nodes
RARE = 0.9  # of an equal share of the nodes: a class with more is not rare

UNLIKE = 10  # one node in so many is unlike every label, where there are any
CERTAIN = 0.75  # share of its worth that a label loses where the class is certain
LEAST = 1e-3  # share of the nodes that a class has at least
SAMPLE = 600  # nodes that stand for all in `representative`
SURE = 0.05  # weight of a node whose class is certain, against 1 of one between two classes
BLOCK = 4_000  # rows compared at a time, whose distances stay in the cache
FEW = 10  # nodes of a cluster that count half
STEPS, TELEPORT = 20, 0.2  # of walks, of five steps on average
CLEAR, CLOSE = 0.5, 0.15  # probability of a likely class; gap below which two compete
SCARCE = 5  # labels of a class


class Clusters(NamedTuple):
    """The cluster of every node, and how near it is to the middle.

    Shapes:
        of: int64, (N,); typical: (N,), between 0 and 1; means: (K, d)
    """

    of: Tensor
    typical: Tensor
    means: Tensor

    def sizes(self, nodes: Tensor) -> Tensor:
        """How many of some nodes, a bool mask, each cluster holds, (K,)."""
        return torch.bincount(self.of[nodes], minlength=len(self.means))

    def turns(self, nodes: Tensor) -> Tensor:
        """How many of some nodes, a bool mask, are more typical of the cluster of a node, (N,)."""
        order = torch.where(nodes, self.typical, -1.0).argsort(descending=True, stable=True)
        order = order[self.of[order].argsort(stable=True)]
        sizes = torch.bincount(self.of, minlength=len(self.means))
        first = (sizes.cumsum(0) - sizes)[self.of[order]]
        result = torch.empty_like(order)
        result[order] = torch.arange(len(order)) - first
        return result


def find_clusters(rows: Tensor, count: int = MOST) -> Clusters:
    """Cluster rows by k-means, into fewer than `count` where nodes are few; means of a sample."""
    count = max(1, min(count, min(len(rows), CLUSTERED) // SMALLEST))
    sample = torch.randperm(len(rows), generator=generator(CLUSTER_SEED))[:CLUSTERED].sort().values
    part = rows[sample]
    groups = kmeans(part, count, CLUSTER_SEED, max_iterations=ITERATIONS)
    means = cluster_means(part, groups, count)
    of = nearest_mean(rows, means)
    parts = zip(rows.split(MEASURED), of.split(MEASURED), strict=True)
    distance = torch.cat([(part - means[group]).square().sum(1) for part, group in parts])
    total = rows.new_zeros(count).index_add_(0, of, distance)
    usual = total / torch.bincount(of, minlength=count).clamp(min=1)
    return Clusters(of, torch.exp(-distance / usual[of].clamp(min=1e-12)), means)


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """A graph, the labels so far, and what a model predicts."""

    graph: Data  # features and edges
    rows: Tensor  # every node as a row of numbers, (N, d); see `node_rows`
    clusters: Clusters  # groups of nodes that are alike
    operator: Sparse  # averages over a node and its neighbours, (N, N)
    labels: Tensor  # -1 for unlabelled, int64, (N,)
    candidates: Tensor  # nodes that may be offered, none of which has a label, bool, (N,)
    num_classes: int  # those without labels included
    probabilities: Tensor | None = None  # what the model predicts, (N, C); None without a model
    budget: int = 20  # how many nodes will be labelled
    seed: int = 0  # of everything random

    @cached_property
    def known(self) -> Tensor:
        return (self.labels >= 0).nonzero().squeeze(1)

    @cached_property
    def counts(self) -> Tensor:
        return torch.bincount(self.labels[self.known], minlength=self.num_classes)

    @cached_property
    def gaps(self) -> Tensor:
        """How far each cluster is from the nearest label, (K,); needs a label."""
        return torch.cdist(self.clusters.means, self.rows[self.known]).amin(1)


def unlike_labels(evidence: Evidence) -> Tensor:
    """Nodes in clusters without a label, farther from labels than clusters usually are, bool, (N,).

    A class that nobody has labelled would be found there, so it is worth looking. With few labels
    these are many; see `new_class`. Without labels there are none.
    """
    clusters = evidence.clusters
    if not len(evidence.known) or len(clusters.means) < 2:
        return torch.zeros(len(evidence.labels), dtype=torch.bool)
    empty = clusters.sizes(evidence.labels >= 0) == 0
    between = torch.cdist(clusters.means, clusters.means).fill_diagonal_(torch.inf).amin(1)
    large = clusters.sizes(evidence.candidates) >= GROUP
    return (empty & large & (evidence.gaps > FAR * between.median()))[clusters.of]


def new_class(evidence: Evidence) -> Tensor:
    """Nodes unlike every label that are farther from labels than most nodes are, bool, (N,).

    With few labels nearly all nodes are far from them, which tells nothing about their class.
    """
    unlike = unlike_labels(evidence)
    if not unlike.any():
        return unlike
    return unlike & (evidence.gaps > FAR * evidence.gaps.median())[evidence.clusters.of]


class Hunt(NamedTuple):
    """The class to look for, its likely candidates, bool, (N,), and how many the batch takes.

    `surest` says to take the most probable ones, not those that teach most.
    """

    label: int
    likely: Tensor
    number: int
    surest: bool = False


def find_hunt(evidence: Evidence) -> Hunt | None:
    """The rarest class and how many nodes it still needs; None if no class is rare.

    Of the classes that have labels and are predicted for a candidate, it is the one with the fewest
    nodes by the model. The rarer of two classes is found by taking the most probable nodes: models
    balance classes, so that of those between the two hardly any is of a class of 2%.

    It should have as many labels as the others on average, or twice its share of the nodes if that
    is more, but at most half of all.
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
    surest = int(seen.sum()) == 2 and share < SCANT
    part = SCANT_PART if surest else PART
    allowed = part * after // 10 - part * before // 10  # the same however batches are cut
    number = min(lacking, allowed, int(likely.sum()))
    return Hunt(label, likely, max(0, number), surest)


@dataclass(frozen=True)
class Strategy:
    """A way to choose nodes to label."""

    score: Callable[[Evidence], Tensor]  # of all nodes, (N,); those of candidates count
    needs_model: bool = False  # looks at probabilities: needs labels of two classes
    spread: float = 1.0  # of a batch over unlike nodes; 0 takes the highest scores
    hunts: bool = False  # a part of a batch goes to the rarest class; see `find_hunt`


def random_scores(evidence: Evidence) -> Tensor:
    return torch.rand(len(evidence.labels), generator=generator(evidence.seed))


def uncertainty(evidence: Evidence) -> Tensor:
    """One less the gap between the two most probable classes."""
    top = _probabilities(evidence).topk(2, dim=1).values
    return 1 - (top[:, 0] - top[:, 1])


def reach(evidence: Evidence) -> Tensor:
    """How often walks that start at nodes far from every label end at a node.

    This is PageRank with such nodes as starting points: a label there would reach them.
    """
    walk = evidence.operator
    known = torch.zeros(len(evidence.labels), 1)
    known[evidence.known] = 1
    near = diffuse(walk, known, STEPS, TELEPORT)  # share of walks that end at a label
    back = Sparse(walk.transpose, walk.matrix)
    return diffuse(back, (1 - near).clamp(min=0), STEPS, TELEPORT).squeeze(1)


def coverage(evidence: Evidence) -> Tensor:
    """The most typical node of every cluster, then the second, by the size of the cluster."""
    clusters = evidence.clusters
    sizes, labels = clusters.sizes(evidence.candidates), clusters.sizes(evidence.labels >= 0)
    return sizes[clusters.of] / (1 + labels[clusters.of] + clusters.turns(evidence.candidates))


def rare(evidence: Evidence) -> Tensor:
    """The worth of a label: high for classes with few labels and few nodes, less if it is certain.

    The worth of a class falls with its share of the labels and with its share of the nodes, as
    predicted. A node that surely is of a rare class adds to its labels but teaches little.
    """
    found, counts = _probabilities(evidence), 1 + evidence.counts.float()
    labels, nodes = counts / counts.sum(), found.mean(0).clamp(min=LEAST)
    return (found * (1 - CERTAIN * found)) @ (1 / (labels * nodes))


def representative(evidence: Evidence) -> Tensor:
    """How many nodes are like a node that are like no labelled one, (N,).

    Those count for more whose class is uncertain, or rare. A sample stands for all of them.
    """
    unlabelled = (evidence.labels < 0).nonzero().squeeze(1)
    order = torch.randperm(len(unlabelled), generator=generator(evidence.seed))
    nodes = unlabelled[order[:SAMPLE]]
    others, clusters = evidence.rows[nodes], evidence.clusters
    usual = (others - clusters.means[clusters.of[nodes]]).square().sum(1).mean().clamp(min=1e-12)

    def likeness(rows: Tensor) -> Tensor:
        return torch.cdist(rows, others).square_().div_(-2 * usual).exp_()

    covered = torch.zeros(len(nodes))
    for part in evidence.known.split(BLOCK) if len(evidence.known) else ():
        covered = torch.maximum(covered, likeness(evidence.rows[part]).amax(0))
    weights = torch.ones(len(nodes))
    if evidence.probabilities is not None:
        found = evidence.probabilities[nodes]
        shares = found.mean(0).clamp(min=LEAST)
        weights = (SURE + uncertainty(evidence)[nodes]) * (found @ (1 / shares))
    parts = evidence.rows.split(BLOCK)
    return torch.cat([likeness(part).sub_(covered).clamp_(min=0) @ weights for part in parts])


def novelty(evidence: Evidence) -> Tensor:
    """Typical nodes of clusters that are unlike every labelled node; a few nodes are none."""
    clusters = evidence.clusters
    sizes = clusters.sizes(evidence.candidates)
    groups = sizes / (sizes + FEW)
    if len(evidence.known):
        groups *= evidence.gaps
    return groups[clusters.of] * clusters.typical


WEIGHTS = {uncertainty: 1.0, rare: 0.5, representative: 1.0, coverage: 0.5, reach: 0.5}
"""Of the ranks in the default; set on other graphs than those of the documentation."""
OF_MODELS = (uncertainty, rare)  # look at probabilities


def combined(evidence: Evidence) -> Tensor:
    """The weighted mean of the ranks by several scores; without a model, by those without.

    Some nodes of each batch come first, one of a cluster. With a model, a few that are unlike every
    label: a class may be hidden there, and a model is often sure of what it has never seen. Without
    one, the most typical node of every group without a label: ranks alone would take the first
    batch from a few large groups, and so from a few classes.
    """
    total = torch.zeros(len(evidence.labels))
    for score, weight in WEIGHTS.items():
        if evidence.probabilities is not None or score not in OF_MODELS:
            total += weight * ranks(score(evidence), evidence.candidates)
    total /= sum(WEIGHTS.values())
    if evidence.probabilities is None:  # as many groups as there will be labels
        clusters = find_clusters(evidence.rows, len(evidence.known) + evidence.budget)
        wanted = (clusters.sizes(evidence.labels >= 0) == 0)[clusters.of]
        value, number = clusters.sizes(evidence.candidates)[clusters.of], evidence.budget
    else:
        clusters, wanted = evidence.clusters, unlike_labels(evidence)
        value, number = novelty(evidence), evidence.budget // UNLIKE
    first = evidence.candidates & (clusters.turns(evidence.candidates) == 0)
    nodes = (first & wanted).nonzero().squeeze(1)
    stable = evidence.probabilities is not None  # results depend on how sizes that tie are sorted
    total[nodes[value[nodes].argsort(descending=True, stable=stable)[:number]]] += 1
    return total


def ranks(scores: Tensor, candidates: Tensor) -> Tensor:
    """The share of candidates with a lower score, (N,)."""
    ordered = scores[candidates].sort().values
    return torch.searchsorted(ordered, scores.contiguous()) / len(ordered)


def _probabilities(evidence: Evidence) -> Tensor:
    if evidence.probabilities is None:
        raise ValueError("This strategy needs a model, and so labels of at least two classes.")
    return evidence.probabilities


STRATEGIES = {
    "default": Strategy(combined, hunts=True),
    "random": Strategy(random_scores, spread=0.0),
    "uncertainty": Strategy(uncertainty, needs_model=True),
}


def reasons(evidence: Evidence, nodes: Tensor, class_names: Sequence[str]) -> list[str]:
    """One short text per node: what it probably is, how well known its surroundings are."""
    clusters, alien = evidence.clusters, new_class(evidence)
    sizes, labels = clusters.sizes(evidence.labels < 0), clusters.sizes(evidence.labels >= 0)
    followers, guesses = _followers(evidence, nodes), _guesses(evidence, nodes, class_names)
    texts = []
    for node, guess, follow in zip(nodes.tolist(), guesses, followers, strict=True):
        cluster, place = clusters.of[node], ""
        size = int(sizes[cluster])
        if alien[node]:
            place = f"in a group of {size:,} unlike every label: a new class?"
        elif labels[cluster] == 0 and size >= GROUP:
            place = f"in a group of {size:,} without a label"
        texts.append(", ".join(filter(None, (guess, place, follow))) or "no label nearby")
    return texts


def _guesses(evidence: Evidence, nodes: Tensor, names: Sequence[str]) -> list[str]:
    """What the model predicts, and whether it has seen little of it; empty without a model."""
    if evidence.probabilities is None:
        return [""] * len(nodes)
    top = evidence.probabilities[nodes].topk(min(2, evidence.num_classes), dim=1)
    counts, hunt = evidence.counts.tolist(), find_hunt(evidence)
    texts = []
    for values, classes in zip(top.values.tolist(), top.indices.tolist(), strict=True):
        first, count = names[classes[0]], counts[classes[0]]
        text = f"{'likely' if values[0] > CLEAR else 'perhaps'} {first} ({values[0]:.0%})"
        if len(values) > 1 and values[0] - values[1] < CLOSE:
            text = f"{first} or {names[classes[1]]} ({values[0]:.0%}, {values[1]:.0%})"
        elif 0 < count <= SCARCE:
            text += f", which has {count} label{'s' * (count != 1)}"
        elif hunt is not None and classes[0] == hunt.label:
            text += ", the rarest class"
        texts.append(text)
    return texts


def _followers(evidence: Evidence, nodes: Tensor) -> list[str]:
    """How many nodes would have a label within two steps that have none now."""
    walk = to_scipy(evidence.operator.matrix)  # the diagonal keeps what is there
    reached = walk @ (walk @ (evidence.labels >= 0).numpy().astype(np.float32)) > 0
    texts = []
    for node in nodes.tolist():
        around = (walk[[node]] @ walk).indices
        fresh = around[~reached[around]]
        far = "far from any label" if len(evidence.known) and not reached[node] else ""
        count = len(fresh) - int(not reached[node])
        reached[fresh] = True
        follow = f"{count:,} node{'s' * (count != 1)} would follow" if count > 0 else ""
        texts.append(", ".join(filter(None, (far, follow))))
    return texts


def notes(evidence: Evidence, nodes: Tensor, class_names: Sequence[str]) -> tuple[str, ...]:
    """What to know about a batch as a whole, in sentences."""
    counts = dict(zip(class_names, evidence.counts.tolist(), strict=True))
    labelled = [name for name, count in counts.items() if count]
    missing = [name for name, count in counts.items() if not count]
    texts = []
    if not labelled:
        texts.append("No label yet: nodes are chosen by the graph and the features alone.")
    elif len(labelled) == 1:
        texts.append(f"All labels are {labelled[0]}: nodes are chosen without a model.")
    if labelled and missing:
        texts.append(f"No label yet of {', '.join(missing)}.")
    if alien := int(new_class(evidence)[nodes].sum()):
        where = "it is in a group" if alien == 1 else "they are in groups"
        texts.append(
            f"{alien} of {len(nodes)} may be of a class that nobody has labelled: {where} unlike "
            "every labelled node."
        )
    return tuple(texts)
