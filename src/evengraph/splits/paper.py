"""The imbalance of papers: Step and LongTail of the paper's tables, PublicStep of others."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.errors import ArgumentError
from evengraph.core.task import Task, keep_edges
from evengraph.splits.base import (
    ALL,
    check_class_size,
    check_sizes,
    class_nodes,
    count_classes,
    display_name,
    join_classes,
    make_task,
    mask_of,
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
        _check_ratio(self.ratio)
        names = ("train_per_class", "val_per_class", "test_per_class")
        check_sizes(**{name: getattr(self, name) for name in names})
        minority_size(self.train_per_class, self.ratio)

    def __call__(self, graph: Data, *, seed: int) -> Task:
        """Split the graph."""
        num_classes = count_classes(graph)
        _check_minority(self.minority, num_classes)
        sizes = torch.bincount(graph.y[graph.y >= 0], minlength=num_classes)
        order = torch.argsort(sizes, descending=True, stable=True).tolist()
        stream, parts = random.Random(seed), []
        for rank, label in enumerate(order):
            first = self.train_per_class
            if rank >= num_classes - self.minority:
                first = minority_size(first, self.ratio)
            second = first + self.val_per_class
            end = second + self.test_per_class
            nodes = shuffled_nodes(graph, label, stream, required=end, purpose=ALL)
            parts.append((nodes[:first], nodes[first:second], nodes[second:end]))
        return join_classes(relabel(graph, order), parts)


@dataclass(frozen=True, kw_only=True)
class PublicStep:
    """Reduce the public training set of the last classes; keep public validation and test sets.

    Classes keep their labels. Test sets are not balanced here, so accuracy and balanced accuracy
    differ.

    Args:
        minority: Number of minority classes, counted from the last label.
        ratio: Labelled nodes of a minority class over those of a majority class.
        normalise_features: Scale the features of each node to sum to one, as those papers do.

    Reference:
        Park, Song and Yang, "GraphENS", ICLR 2022; Song, Park and Yang, "TAM", ICML 2022.
    """

    minority: int = 3
    ratio: float = 0.1
    normalise_features: bool = True

    def __post_init__(self) -> None:
        _check_ratio(self.ratio)

    def __call__(self, graph: Data, *, seed: int) -> Task:
        """Split the graph."""
        if "train_mask" not in graph:
            masks = "train_mask, val_mask, test_mask"
            raise ValueError(f"The split protocol publicstep needs a public split ({masks}).")
        num_classes = count_classes(graph)
        _check_minority(self.minority, num_classes)
        stream = random.Random(seed)
        pools = [class_nodes(graph, c, among=graph.train_mask) for c in range(num_classes)]
        size, train = minority_size(max(map(len, pools)), self.ratio), list[int]()
        for label, pool in enumerate(pools):
            check_class_size(graph, label, pool, 1, "training")
            if label >= num_classes - self.minority:
                stream.shuffle(pool)
                pool = pool[:size]
            train += pool
        if self.normalise_features:
            graph = graph.clone("x")
            graph.x = graph.x / graph.x.sum(dim=1, keepdim=True).clamp(min=1)
        return make_task(graph, train, graph.val_mask, graph.test_mask)


def _check_ratio(ratio: float) -> None:
    if not 0 < ratio <= 1:
        raise ValueError(f"ratio must lie in (0, 1], got {ratio}.")


def _check_minority(minority: int, num_classes: int) -> None:
    """At least one class must stay a majority class."""
    if not 0 <= minority < num_classes:
        raise ArgumentError(
            f"minority must lie between 0 and {num_classes - 1} on a graph with {num_classes} "
            f"classes, got {minority}; the split protocol natural keeps the class sizes.",
            argument="imbalance",
            value="natural",
        )


def minority_size(per_class: int, ratio: float) -> int:
    """Labelled nodes of a minority class: per_class x ratio, rounded down."""
    size = int(per_class * ratio + 1e-9)  # 20 x 0.15 is 2.9999... in floating point
    if size < 1:
        text = f"ratio={ratio} would leave a minority class without a labelled node; "
        raise ValueError(f"{text}the smallest that works is {1 / per_class:g}.")
    return size


HELD_OUT = "validation or test"


@dataclass(frozen=True, kw_only=True)
class LongTail:
    """The paper's second protocol.

    Every node outside the public validation and test sets may train. The class of rank i keeps
    n_max x ratio^(i / (C - 1)) of its nodes; of the others, those of lowest degree, label and
    edges are removed, in ten rounds, with degrees counted anew in each. Nodes of equal degree are
    removed in the order of their ids. A graph without public sets gets random ones.

    Args:
        ratio: Training nodes of the smallest class over those of the largest.
        val_per_class: Validation nodes of each class.
        test_per_class: Test nodes of each class.

    Departs:
        The paper does not state the order of equal degrees; ours is by id.

    Reference:
        Park, Song and Yang, "GraphENS", ICLR 2022; Yun et al., "LTE4G", CIKM 2022.
    """

    ratio: float = 0.01
    val_per_class: int = 25
    test_per_class: int = 55

    def __post_init__(self) -> None:
        _check_ratio(self.ratio)
        check_sizes(val_per_class=self.val_per_class, test_per_class=self.test_per_class)

    def __call__(self, graph: Data, *, seed: int) -> Task:
        """Split the graph."""
        num_classes = count_classes(graph)
        stream = random.Random(seed)
        if "val_mask" in graph:
            val_pool, test_pool = graph.val_mask, graph.test_mask
        else:
            val, test = list[int](), list[int]()
            count = self.val_per_class + self.test_per_class
            for label in range(num_classes):
                nodes = shuffled_nodes(graph, label, stream, required=count, purpose=HELD_OUT)
                val += nodes[: self.val_per_class]
                test += nodes[self.val_per_class : count]
            val_pool, test_pool = mask_of(val, graph), mask_of(test, graph)
        train_pool = (graph.y >= 0) & ~val_pool & ~test_pool
        sizes = torch.bincount(graph.y[train_pool], minlength=num_classes)
        if sizes.min() < 1:
            name = display_name(graph, int(sizes.argmin()))
            raise ValueError(f"Class {name} has no node that may train.")
        order = torch.argsort(sizes, descending=True, stable=True).tolist()
        val, test = [], []
        held_out = (val, val_pool, self.val_per_class), (test, test_pool, self.test_per_class)
        for label in order:
            for part, pool, count in held_out:
                nodes = shuffled_nodes(graph, label, stream, pool, required=count, purpose=HELD_OUT)
                part += nodes[:count]
        graph = relabel(graph, order)
        removed = _cut_tail(graph, train_pool, _target_sizes(sizes[order].tolist(), self.ratio))
        graph = keep_edges(graph, ~removed[graph.edge_index].any(dim=0))
        return make_task(graph, train_pool & ~removed, val, test)


def _target_sizes(sizes: list[int], ratio: float) -> list[int]:
    """Training nodes that each class keeps, classes in descending order of size."""
    decay = ratio ** (1 / max(len(sizes) - 1, 1))
    return [int(min(sizes[0] * decay**rank, size)) for rank, size in enumerate(sizes)]


def _cut_tail(graph: Data, pool: Tensor, sizes: list[int]) -> Tensor:
    """Mark the training nodes to remove, (N,)."""
    source, target = graph.edge_index.cpu().numpy()
    between = source != target
    source, target = source[between], target[between]
    removed = np.zeros(graph.num_nodes, dtype=bool)
    for label, size in enumerate(sizes):
        if size < 1:
            raise ValueError("ratio is too small: the last class would keep no training node.")
        nodes = np.array(class_nodes(graph, label, among=pool))
        surplus = len(nodes) - size
        for step in range(1, 11):
            alive = ~removed[source] & ~removed[target]
            degree = np.bincount(source[alive], minlength=len(removed))[nodes]
            lowest = nodes[np.argsort(degree, kind="stable")]
            removed[nodes] = False
            removed[lowest[: step * surplus // 10]] = True
    return torch.from_numpy(removed).to(graph.y.device)
