"""Class sizes and homophily."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evengraph.inspection.edges import Bools, Ints


@dataclass(frozen=True, kw_only=True)
class Labels:
    """Class sizes."""

    names: tuple[str, ...]  # one per class
    labelled: tuple[int, ...]  # labelled nodes of each class
    hidden: tuple[int, ...]  # nodes of each class whose label may not be used, such as test nodes
    num_labelled: int  # all labelled nodes
    num_unlabelled: int  # all other nodes, including hidden ones
    labelled_share: float
    ratio: float | None  # largest class over smallest, among classes with a labelled node


@dataclass(frozen=True, kw_only=True)
class Homophily:
    """Whether neighbours share a class, over edges between labelled nodes.

    Reference:
        Platonov et al., "Characterizing Graph Datasets for Node Classification:
        Homophily-Heterophily Dichotomy and Beyond", NeurIPS 2023, for the adjusted share.
    """

    edges: int  # between labelled nodes
    edge: float | None  # share of them that join nodes of one class
    by_chance: float | None  # expected share if the ends of edges were paired at random
    adjusted: float | None  # `edge` rescaled so that chance is 0 and certainty 1
    per_class: tuple[float | None, ...]  # share of its nodes' neighbours that are of the class
    neighbours: tuple[int, ...]  # number of neighbours behind that share


def count_labels(labels: Ints, labelled: Bools, names: Sequence[str]) -> Labels:
    """Count the nodes of each class.

    Shapes:
        labels, labelled: (N,)
    """
    hidden = (labels >= 0) & ~labelled
    counts = np.bincount(labels[labelled], minlength=len(names))
    present = counts[counts > 0]
    total = int(counts.sum())
    return Labels(
        names=tuple(names),
        labelled=tuple(counts.tolist()),
        hidden=tuple(np.bincount(labels[hidden], minlength=len(names)).tolist()),
        num_labelled=total,
        num_unlabelled=len(labels) - total,
        labelled_share=total / len(labels),
        ratio=float(present.max() / present.min()) if len(present) else None,
    )


def measure_homophily(pairs: Ints, labels: Ints, labelled: Bools, num_classes: int) -> Homophily:
    """Compare the classes of the two ends of every edge.

    Shapes:
        pairs: (2, P), each pair of neighbours once
        labels, labelled: (N,)
    """
    both = labelled[pairs[0]] & labelled[pairs[1]]
    first, second = labels[pairs[0][both]], labels[pairs[1][both]]
    mixing = np.bincount(first * num_classes + second, minlength=num_classes**2)
    mixing = mixing.reshape(num_classes, num_classes)
    mixing = mixing + mixing.T  # from both ends
    same, ends = mixing.diagonal(), mixing.sum(1)
    count = int(both.sum())
    edge = float(same.sum() / ends.sum()) if count else None
    chance = float(((ends / ends.sum()) ** 2).sum()) if count else None
    adjusted = None
    if edge is not None and chance is not None and (ends > 0).sum() > 1:
        adjusted = (edge - chance) / (1 - chance)
    shares = (float(s / e) if e else None for s, e in zip(same, ends, strict=True))
    return Homophily(
        edges=count,
        edge=edge,
        by_chance=chance,
        adjusted=adjusted,
        per_class=tuple(shares),
        neighbours=tuple(ends.tolist()),
    )
