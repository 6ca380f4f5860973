"""Semi-supervised: a hundred labels, a fifth of them positive, as fraud benchmarks draw them."""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.metrics.binary import positive_class
from evengraph.splits.base import (
    check_class_size,
    check_sizes,
    count_classes,
    join_classes,
    shuffled_nodes,
)


@dataclass(frozen=True, kw_only=True)
class SemiSupervised:
    """A few labels of two classes to train on, as many to validate on, all others to test on.

    The rarer class is positive. Averages over ten draws are usual.

    Args:
        positives: Nodes of the positive class to train on.
        negatives: Nodes of the other class to train on.

    Reference:
        Tang, Hua, Gao, Zhao and Li, "GADBench: Revisiting and Benchmarking Supervised Graph Anomaly
        Detection", NeurIPS 2023.
    """

    positives: int = 20
    negatives: int = 80

    def __post_init__(self) -> None:
        check_sizes(positives=self.positives, negatives=self.negatives)

    def __call__(self, graph: Data, *, seed: int) -> Task:
        """Split the graph."""
        num_classes = count_classes(graph)
        if num_classes != 2:
            raise ValueError(f"semisupervised is for two classes, this graph has {num_classes}.")
        positive = positive_class(torch.bincount(graph.y[graph.y >= 0], minlength=2))
        stream = random.Random(seed)
        parts = []
        for label in range(2):
            size = self.positives if label == positive else self.negatives
            nodes = shuffled_nodes(graph, label, stream)
            check_class_size(graph, label, nodes, 2 * size + 1, "train, validation and test")
            parts.append((nodes[:size], nodes[size : 2 * size], nodes[2 * size :]))
        return join_classes(graph, parts)
