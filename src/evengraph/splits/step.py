"""Step imbalance: the smallest classes keep a fixed share of the labels of the others."""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.splits.base import (
    check_minority,
    check_ratio,
    check_sizes,
    class_word,
    count_classes,
    mask_of,
    minority_size,
    need,
    nodes_of_class,
    relabelled,
    shuffled,
)


@dataclass(frozen=True, kw_only=True)
class Step:
    """The paper's main protocol.

    Classes are renamed by size, largest first. Each of the last `minority` classes gets
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
        called = [class_word(graph, label) for label in order]
        graph, names = relabelled(graph, order)
        stream = random.Random(seed)
        train: list[int] = []
        val: list[int] = []
        test: list[int] = []
        for label in range(num_classes):
            many = self.train_per_class
            if label >= num_classes - self.minority:
                many = minority_size(many, self.ratio)
            nodes = shuffled(nodes_of_class(graph, label), stream)
            end = many + self.val_per_class + self.test_per_class
            need(nodes, end, called[label], "train, validation and test")
            train += nodes[:many]
            val += nodes[many : many + self.val_per_class]
            test += nodes[many + self.val_per_class : end]
        return Task(
            graph,
            mask_of(train, graph),
            mask_of(val, graph),
            mask_of(test, graph),
            num_classes=num_classes,
            class_names=names,
        )
