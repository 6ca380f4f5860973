"""Class sizes, and whether neighbours share a class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evengraph.inspection.edges import Bools, Ints


@dataclass(frozen=True, kw_only=True)
class Labels:
    """How many nodes each class has.

    Args:
        names: A name for each class.
        labelled: Labelled nodes of each class.
        hidden: Nodes of each class whose label is known but was set aside, as for a test.
        num_labelled: All labelled nodes.
        num_unlabelled: All others, the hidden ones included.
        labelled_share: Share of the nodes that are labelled.
        ratio: Largest class over smallest, of the classes that have a labelled node.
    """

    names: tuple[str, ...]
    labelled: tuple[int, ...]
    hidden: tuple[int, ...]
    num_labelled: int
    num_unlabelled: int
    labelled_share: float
    ratio: float | None


@dataclass(frozen=True, kw_only=True)
class Homophily:
    """Whether the two ends of an edge share a class, among edges with both ends labelled.

    Args:
        edges: How many such edges there are.
        edge: Share of them that join two nodes of one class.
        by_chance: The same share if ends were paired at random; large when one class is.
        adjusted: How far `edge` lies from chance (0) towards certainty (1); below 0 is avoidance.
        per_class: For each class, the share of its nodes' neighbours that are of it, too.
        neighbours: For each class, how many neighbours that share was taken from.

    Reference:
        Platonov et al., "Characterizing Graph Datasets for Node Classification:
        Homophily-Heterophily Dichotomy and Beyond", NeurIPS 2023, for the adjusted share.
    """

    edges: int
    edge: float | None
    by_chance: float | None
    adjusted: float | None
    per_class: tuple[float | None, ...]
    neighbours: tuple[int, ...]


def count_labels(labels: Ints, labelled: Bools, names: Sequence[str]) -> Labels:
    """Count the classes.

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
    one, other = labels[pairs[0][both]], labels[pairs[1][both]]
    mixing = np.bincount(one * num_classes + other, minlength=num_classes**2)
    mixing = mixing.reshape(num_classes, num_classes)
    mixing = mixing + mixing.T  # seen from either end
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
