"""Step imbalance: the smallest classes keep a fixed share of the labels of the others."""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.splits.base import (
    check_class_size,
    check_minority,
    check_ratio,
    check_sizes,
    count_classes,
    join_classes,
    minority_size,
    relabel,
    shuffled_nodes,
)


@dataclass(frozen=True, kw_only=True)
class Step:
    """The paper's main protocol.

    Classes are relabelled by size, largest first. Each of the last `minority` classes gets
    `ratio` times the labels of the others; validation and test are balanced.

    Args:
        minority: Number of minority classes.
        ratio: Labelled nodes of a minority class over those of a majority class.
        train_per_class: Labelled nodes of a majority class.
        val_per_class: Validation nodes of each class.
        test_per_class: Test nodes of each class.

    Reference:
        Zhao, Zhang and Wang, "GraphSMOTE", WSDM 2021; Yun et al., "LTE4G", CIKM 2022.
    """

    minority: int = 3
    ratio: float = 0.1
    train_per_class: int = 20
    val_per_class: int = 25
    test_per_class: int = 55

    def __post_init__(self) -> None:
        check_ratio(self.ratio)
        check_sizes(
            train_per_class=self.train_per_class,
            val_per_class=self.val_per_class,
            test_per_class=self.test_per_class,
        )
        minority_size(self.train_per_class, self.ratio)

    def __call__(self, graph: Data, *, seed: int) -> Task:
        """Split the graph."""
        num_classes = count_classes(graph)
        check_minority(self.minority, num_classes)
        sizes = torch.bincount(graph.y[graph.y >= 0], minlength=num_classes)
        order = torch.argsort(sizes, descending=True, stable=True).tolist()
        stream = random.Random(seed)
        parts = []
        for rank, label in enumerate(order):
            first = self.train_per_class
            if rank >= num_classes - self.minority:
                first = minority_size(first, self.ratio)
            second = first + self.val_per_class
            end = second + self.test_per_class
            nodes = shuffled_nodes(graph, label, stream)
            check_class_size(graph, label, nodes, end, "train, validation and test")
            parts.append((nodes[:first], nodes[first:second], nodes[second:end]))
        return join_classes(relabel(graph, order), parts)
