"""Long-tail imbalance: class sizes that fall exponentially, the rest of a class cut off."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.splits.base import (
    check_ratio,
    check_sizes,
    class_word,
    count_classes,
    mask_of,
    need,
    nodes_of_class,
    relabelled,
    shuffled,
)

ROUNDS = 10


@dataclass(frozen=True, kw_only=True)
class LongTail:
    """The paper's second protocol.

    Every node outside the public validation and test sets may train. The class of rank i keeps
    n_max x ratio^(i / (C - 1)) of its nodes; of the others, those of lowest degree, label and
    edges are removed, in ten rounds, with degrees counted anew in each. Nodes of equal degree go
    in the order of their ids. A graph without public sets gets its own, drawn by the seed.

    Args:
        ratio: Training nodes of the smallest class over those of the largest.
        val_per_class: Validation nodes of each class.
        test_per_class: Test nodes of each class.

    Departs:
        The order of equal degrees is stated nowhere; ours is by id.

    Reference:
        Park, Song and Yang, "GraphENS", ICLR 2022; Yun et al., "LTE4G", CIKM 2022.
    """

    ratio: float = 0.01
    val_per_class: int = 25
    test_per_class: int = 55

    def __post_init__(self) -> None:
        check_ratio(self.ratio)
        check_sizes(val_per_class=self.val_per_class, test_per_class=self.test_per_class)

    def __call__(self, graph: Data, *, seed: int) -> Task:
        """Split the graph."""
        num_classes = count_classes(graph)
        stream = random.Random(seed)
        pools = _public_pools(graph) if "val_mask" in graph else self._pools(graph, stream)
        train_pool, val_pool, test_pool = pools
        sizes = torch.bincount(graph.y[train_pool], minlength=num_classes)
        if sizes.min() < 1:
            called = class_word(graph, int(sizes.argmin()))
            raise ValueError(f"Class {called} has no node that may train.")
        order = torch.argsort(sizes, descending=True, stable=True).tolist()
        words = [class_word(graph, label) for label in order]
        graph, names = relabelled(graph, order)
        removed = _cut_tail(graph, train_pool, _targets(sizes[order].tolist(), self.ratio))
        graph.edge_index = graph.edge_index[:, ~removed[graph.edge_index].any(dim=0)]
        val: list[int] = []
        test: list[int] = []
        for label in range(num_classes):
            called = words[label]
            val += _draw(graph, label, val_pool, self.val_per_class, stream, called)
            test += _draw(graph, label, test_pool, self.test_per_class, stream, called)
        return Task(
            graph,
            train_pool & ~removed,
            mask_of(val, graph),
            mask_of(test, graph),
            num_classes=num_classes,
            class_names=names,
        )

    def _pools(self, graph: Data, stream: random.Random) -> tuple[Tensor, Tensor, Tensor]:
        """Nodes that may train, validate and test, for a graph without public sets."""
        labelled = graph.y >= 0
        many = self.val_per_class + self.test_per_class
        val: list[int] = []
        test: list[int] = []
        for label in range(count_classes(graph)):
            nodes = _draw(graph, label, labelled, many, stream, class_word(graph, label))
            val += nodes[: self.val_per_class]
            test += nodes[self.val_per_class :]
        val_pool, test_pool = mask_of(val, graph), mask_of(test, graph)
        return labelled & ~val_pool & ~test_pool, val_pool, test_pool


def _draw(
    graph: Data, label: int, pool: Tensor, many: int, stream: random.Random, called: str
) -> list[int]:
    """So many nodes of a class out of a pool; `called` is what the caller knows it by."""
    nodes = shuffled(nodes_of_class(graph, label, among=pool), stream)
    need(nodes, many, called, "validation or test")
    return nodes[:many]


def _public_pools(graph: Data) -> tuple[Tensor, Tensor, Tensor]:
    return (graph.y >= 0) & ~graph.val_mask & ~graph.test_mask, graph.val_mask, graph.test_mask


def _targets(sizes: list[int], ratio: float) -> list[int]:
    """Training nodes that each class keeps, classes in descending order of size."""
    decay = ratio ** (1 / max(len(sizes) - 1, 1))
    return [int(min(sizes[0] * decay**rank, size)) for rank, size in enumerate(sizes)]


def _cut_tail(graph: Data, pool: Tensor, targets: list[int]) -> Tensor:
    """Mark the training nodes to remove, (N,)."""
    source, target = graph.edge_index.cpu().numpy()
    between = source != target
    source, target = source[between], target[between]
    removed = np.zeros(graph.num_nodes, dtype=bool)
    for label, keep in enumerate(targets):
        if keep < 1:
            raise ValueError("ratio is too small: the last class would keep no training node.")
        nodes = np.array(nodes_of_class(graph, label, among=pool))
        surplus = len(nodes) - keep
        for step in range(1, ROUNDS + 1):
            alive = ~removed[source] & ~removed[target]
            degree = np.bincount(source[alive], minlength=len(removed))[nodes]
            lowest = nodes[np.argsort(degree, kind="stable")]
            removed[nodes] = False
            removed[lowest[: step * surplus // ROUNDS]] = True
    return torch.from_numpy(removed).to(graph.y.device)
