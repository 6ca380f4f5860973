"""Task: a graph and its training, validation and test nodes."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from evengraph.core.graphs import bare_graph
from evengraph.core.html_table import html_table
from evengraph.core.masks import class_labels, split_masks

if TYPE_CHECKING:
    from torch_geometric.data import Data

HIDDEN_LABEL = -1
"""Replaces labels that a method must not see."""


@dataclass(frozen=True, eq=False)
class Task:
    """A graph with labels and the nodes to train on, validate on and test on.

    Args:
        graph: Features `x`, edges `edge_index` and labels `y`; -1 is unlabelled.
        train: Nodes whose labels a method learns from.
        val: Nodes whose labels a method may use for selection, such as early stopping.
        test: Nodes whose labels are used by `evaluate` alone.
        num_classes: Number of classes, including those without nodes in a set.
        class_names: A display name for each class.
        past: The graph as methods may see it in training, if it has edges that came later; its
            nodes are those of `graph`.

    Shapes:
        graph.x: (N, F), graph.edge_index: (2, E), graph.y: (N,)
        train, val, test: bool, (N,)
    """

    graph: Data
    train: Tensor
    val: Tensor
    test: Tensor
    num_classes: int
    class_names: tuple[str, ...] = ()
    past: Data | None = None

    def __post_init__(self) -> None:
        num_nodes = self.graph.num_nodes
        if not num_nodes:
            raise ValueError("The graph has no nodes.")
        if self.graph.y is None or self.graph.y.shape != (num_nodes,):
            raise ValueError(f"graph.y must hold one label for each of the {num_nodes} nodes.")
        for name in ("train", "val", "test"):
            mask = getattr(self, name)
            if mask.device != self.graph.y.device:
                raise ValueError(f"{name} is on {mask.device}, the graph on {self.graph.y.device}.")
            if mask.dtype != torch.bool or mask.shape != (num_nodes,):
                raise ValueError(
                    f"{name} must be a bool mask of shape ({num_nodes},), "
                    f"got {mask.dtype} of shape {tuple(mask.shape)}."
                )
        if (self.train & self.val | self.train & self.test | self.val & self.test).any():
            raise ValueError("train, val and test must not share nodes.")
        smallest, largest = int(self.graph.y.min()), int(self.graph.y.max())
        if smallest < HIDDEN_LABEL:
            raise ValueError(f"labels must be -1 for unlabelled or a class, got {smallest}.")
        if largest >= self.num_classes:
            raise ValueError(f"labels must be below num_classes={self.num_classes}, got {largest}.")
        if self.class_names and len(self.class_names) != self.num_classes:
            raise ValueError(
                f"class_names must hold {self.num_classes} names, got {len(self.class_names)}."
            )

    def _repr_html_(self) -> str:
        """Classes and their nodes in each set, for notebooks."""
        labels, sets = self.graph.y, (self.train, self.val, self.test)
        counts = [
            torch.bincount(labels[mask & (labels >= 0)], minlength=self.num_classes).tolist()
            for mask in sets
        ]
        names = self.class_names or tuple(map(str, range(self.num_classes)))
        nodes = f"{self.graph.num_nodes:,} nodes, {self.graph.num_edges // 2:,} edges"
        title = f"Task: {nodes}, {self.graph.num_features:,} features"
        heads = ("class", "train", "validation", "test")
        return html_table(title, heads, list(zip(names, *counts, strict=True)))

    @classmethod
    def from_graph(cls, graph: Data, *, seed: int = 0, split: int | None = None) -> Task:
        """The task of a PyG graph with `train_mask`, `val_mask` and `test_mask`.

        Without `train_mask`, all labelled nodes are for training, provided that others have the
        label -1. Without `val_mask`, a fifth of each class's training nodes is held out to validate
        on, with a warning. Without `test_mask`, all other labelled nodes are for testing. Nodes
        without a label are in no set.

        Args:
            graph: Features, edges, labels and masks.
            seed: Decides which nodes are held out.
            split: Column of masks that hold several splits.
        """
        labels = class_labels(graph)
        train, val, test = split_masks(graph, labels, seed, split)
        if labels is not graph.y:
            graph = copy(graph)
            graph.y = labels
        names = tuple(map(str, graph.class_names)) if "class_names" in graph else ()
        return cls(graph, train, val, test, int(labels.max()) + 1, names)

    @cached_property
    def train_nodes(self) -> Tensor:
        """Training nodes, ascending, (n,); unlike a mask, indexing by them needs no GPU sync."""
        return self.train.nonzero().squeeze(1)

    @cached_property
    def val_nodes(self) -> Tensor:
        """Validation nodes, ascending."""
        return self.val.nonzero().squeeze(1)

    @cached_property
    def val_counts(self) -> tuple[int, ...]:
        """Validation nodes of each class, as numbers that need no GPU sync."""
        labels = self.graph.y[self.val]
        counts: list[int] = torch.bincount(labels[labels >= 0], minlength=self.num_classes).tolist()
        return tuple(counts)

    @property
    def class_counts(self) -> Tensor:
        """Training nodes of each class, (C,)."""
        labels = self.graph.y[self.train]
        return torch.bincount(labels[labels >= 0], minlength=self.num_classes)

    def hide_test_labels(self) -> Task:
        """A task with features, edges and masks, and -1 for labels outside train and validation.

        Edges that came after the time of a split are hidden, too.
        """
        labels = torch.where(self.train | self.val, self.graph.y, HIDDEN_LABEL)
        graph = bare_graph(self.graph if self.past is None else self.past, y=labels)
        return replace(self, graph=graph, past=None)

    def to(self, device: torch.device | str) -> Task:
        """A copy of the task on a device."""
        device = torch.device(device)
        graph = _moved(self.graph, device)
        train, val, test = (mask.to(device) for mask in (self.train, self.val, self.test))
        past = None if self.past is None else _moved(self.past, device)
        return replace(self, graph=graph, train=train, val=val, test=test, past=past)


def _moved(graph: Data, device: torch.device) -> Data:
    """A copy of a graph on a device; only one that stays where it is has to be cloned."""
    return (graph.clone() if graph.y.device.type == device.type else copy(graph)).to(device)
