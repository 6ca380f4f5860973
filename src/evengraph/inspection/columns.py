"""Features: counts, density, constant and missing ones; nodes with equal features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evengraph.inspection.edges import Bools, Ints

Matrix = NDArray[Any]
Floats = NDArray[np.float64]

CHUNK_ENTRIES = 4_000_000  # processed at a time, so that x is never copied as a whole
MIX_ONE, MIX_TWO = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


@dataclass(frozen=True, kw_only=True)
class Features:
    """Measurements of the columns of x."""

    count: int
    hashed: int = 0  # columns that are buckets of hashed words
    density: float | None  # share of non-zero entries
    constant: int  # other columns with the same value in every row
    missing: int  # NaN and infinite entries
    empty_nodes: int  # nodes whose features are all zero
    duplicate_nodes: int  # nodes with the features of an earlier node, unless all zero
    conflicting_nodes: int  # labelled nodes with a duplicate of another class


@dataclass(frozen=True)
class Columns:
    """Statistics of every column, over its finite entries.

    Shapes:
        all: (F,)
    """

    low: Floats
    high: Floats
    mean: Floats
    variance: Floats
    missing: Ints
    nonzero: Ints


def measure_features(
    x: Matrix, labels: Ints, labelled: Bools, num_classes: int, hashed: Bools | None = None
) -> tuple[Features, Columns]:
    """Measure all features in one pass.

    Shapes:
        x: (N, F)
        labels, labelled: (N,)
        hashed: (F,)
    """
    columns, prints, full = _read(x)
    empty = int((~full).sum())
    duplicates, conflicts = _duplicates(prints[full], labels[full], labelled[full], num_classes)
    entries = x.shape[0] * x.shape[1]
    hashed = np.zeros(x.shape[1], np.bool_) if hashed is None else hashed
    constant = (columns.low >= columns.high) & (columns.missing == 0) & ~hashed
    features = Features(
        count=x.shape[1],
        hashed=int(hashed.sum()),
        density=int(columns.nonzero.sum()) / entries if entries else None,
        constant=int(constant.sum()),
        missing=int(columns.missing.sum()),
        empty_nodes=empty if x.shape[1] else 0,
        duplicate_nodes=duplicates,
        conflicting_nodes=conflicts,
    )
    return features, columns


def _read(x: Matrix) -> tuple[Columns, NDArray[np.uint64], Bools]:
    """Statistics of the columns, a fingerprint of each row, and whether it is not all zero."""
    num_nodes, width = x.shape
    low, high = np.full(width, np.inf), np.full(width, -np.inf)
    total, squares = np.zeros(width), np.zeros(width)
    missing, nonzero = np.zeros(width, np.int64), np.zeros(width, np.int64)
    prints, full = np.zeros(num_nodes, np.uint64), np.zeros(num_nodes, np.bool_)
    keys = np.random.default_rng(0).integers(2**63, size=(width,), dtype=np.uint64)
    keys = keys * np.uint64(2) + np.uint64(1)  # odd, and distinct for each column
    # sums of differences to the first row stay exact enough for large numbers such as years
    shift = np.nan_to_num(x[:1].astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0).reshape(-1)
    step = max(CHUNK_ENTRIES // max(width, 1), 1)
    for start in range(0, num_nodes, step):
        rows = slice(start, start + step)
        chunk = x[rows]
        filled = chunk != 0
        full[rows] = filled.any(1)
        nonzero += filled.sum(0)
        prints[rows] = _fingerprints(chunk, keys)
        shifted = chunk - shift
        finite = np.isfinite(shifted)
        lowest = highest = chunk
        if not finite.all():
            missing += (~finite).sum(0)
            lowest, highest = np.where(finite, chunk, np.inf), np.where(finite, chunk, -np.inf)
            shifted = np.where(finite, shifted, 0.0)
        low, high = np.minimum(low, lowest.min(0)), np.maximum(high, highest.max(0))
        total += shifted.sum(0)
        squares += np.einsum("ij,ij->j", shifted, shifted)
    count = np.maximum(num_nodes - missing, 1)
    mean = total / count
    variance = squares / count - mean**2
    return Columns(low, high, mean + shift, variance, missing, nonzero), prints, full


def _fingerprints(chunk: Matrix, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A 64-bit hash per row; two different rows collide with probability of about 10^-19."""
    single = chunk.dtype == np.float32
    plain: Matrix = chunk.astype(np.float32 if single else np.float64)
    plain += 0.0  # -0.0 becomes 0.0
    bits = plain.view(np.uint32 if single else np.uint64).astype(np.uint64)
    # the low bits of most floats are zero and would stay zero in a sum of products
    bits = bits * MIX_ONE
    bits ^= bits >> np.uint64(29)
    bits *= MIX_TWO
    bits ^= bits >> np.uint64(32)
    hashes: NDArray[np.uint64] = bits @ keys
    return hashes


def _duplicates(
    prints: NDArray[np.uint64], labels: Ints, labelled: Bools, num_classes: int
) -> tuple[int, int]:
    """Numbers of nodes that repeat an earlier one, and of conflicting labelled nodes."""
    _, group = np.unique(prints, return_inverse=True)
    num_groups = int(group.max()) + 1 if len(group) else 0
    pairs = np.unique(group[labelled] * num_classes + labels[labelled])
    classes = np.bincount(pairs // num_classes, minlength=num_groups)
    conflicts = int((classes[group[labelled]] > 1).sum())
    return len(prints) - num_groups, conflicts


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
