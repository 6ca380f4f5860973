"""Evidence: all that a strategy may look at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.labelling.clusters import Clusters
from evengraph.methods.bases.committee import Committee
from evengraph.ops.sparse import Sparse

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
        disagreement: How far the members of its committee differ; None without one.
        budget: How many nodes will be labelled.
        seed: Of everything random.

    Shapes:
        rows: (N, d); operator: (N, N); labels: int64, (N,); candidates: bool, (N,)
        probabilities: (N, C); disagreement: (N,)
    """

    graph: Data
    rows: Tensor
    clusters: Clusters
    operator: Sparse
    labels: Tensor
    candidates: Tensor
    num_classes: int
    probabilities: Tensor | None = None
    disagreement: Tensor | None = None
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


def disagreement(committee: Committee) -> Tensor | None:
    """How much of the uncertainty comes from members that contradict one another, (N,).

    It is the mutual information between the class and the member: the entropy of the vote less
    the mean entropy of the members; 0 where all predict the same probabilities. None with one
    member.
    """
    if len(committee.weights) == 1:
        return None
    own = committee.weights @ entropy(committee.probabilities)
    return (entropy(vote(committee)) - own).clamp(min=0)


def entropy(probabilities: Tensor) -> Tensor:
    """Entropy over the last dimension, in nats."""
    result: Tensor = torch.special.entr(probabilities).sum(-1)
    return result
