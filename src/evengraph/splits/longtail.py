"""Long-tail imbalance: class sizes that fall exponentially, the surplus of a class removed."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.graphs import keep_edges
from evengraph.core.task import Task
from evengraph.splits.base import (
    Nodes,
    check_class_size,
    check_ratio,
    check_sizes,
    class_nodes,
    count_classes,
    display_name,
    make_task,
    mask_of,
    relabel,
    shuffled_nodes,
)

ROUNDS = 10


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
        check_ratio(self.ratio)
        check_sizes(val_per_class=self.val_per_class, test_per_class=self.test_per_class)

    def __call__(self, graph: Data, *, seed: int) -> Task:
        """Split the graph."""
        num_classes = count_classes(graph)
        stream = random.Random(seed)
        if "val_mask" in graph:
            val_pool, test_pool = graph.val_mask, graph.test_mask
        else:
            val_pool, test_pool = self._draw_pools(graph, stream)
        train_pool = (graph.y >= 0) & ~val_pool & ~test_pool
        sizes = torch.bincount(graph.y[train_pool], minlength=num_classes)
        if sizes.min() < 1:
            name = display_name(graph, int(sizes.argmin()))
            raise ValueError(f"Class {name} has no node that may train.")
        order = torch.argsort(sizes, descending=True, stable=True).tolist()
        val, test = [], []
        for label in order:
            val += _draw(graph, label, val_pool, self.val_per_class, stream)
            test += _draw(graph, label, test_pool, self.test_per_class, stream)
        graph = relabel(graph, order)
        removed = _cut_tail(graph, train_pool, _target_sizes(sizes[order].tolist(), self.ratio))
        graph = keep_edges(graph, ~removed[graph.edge_index].any(dim=0))
        return make_task(graph, train_pool & ~removed, val, test)

    def _draw_pools(self, graph: Data, stream: random.Random) -> tuple[Tensor, Tensor]:
        """Nodes that may validate and test, for a graph without public sets."""
        val, test = [], []
        for label in range(count_classes(graph)):
            count = self.val_per_class + self.test_per_class
            nodes = _draw(graph, label, None, count, stream)
            val += nodes[: self.val_per_class]
            test += nodes[self.val_per_class :]
        return mask_of(val, graph), mask_of(test, graph)


def _draw(graph: Data, label: int, pool: Tensor | None, count: int, stream: random.Random) -> Nodes:
    """Draw nodes of a class, from a pool if there is one."""
    nodes = shuffled_nodes(graph, label, stream, among=pool)
    check_class_size(graph, label, nodes, count, "validation or test")
    return nodes[:count]


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
        for step in range(1, ROUNDS + 1):
            alive = ~removed[source] & ~removed[target]
            degree = np.bincount(source[alive], minlength=len(removed))[nodes]
            lowest = nodes[np.argsort(degree, kind="stable")]
            removed[nodes] = False
            removed[lowest[: step * surplus // ROUNDS]] = True
    return torch.from_numpy(removed).to(graph.y.device)
