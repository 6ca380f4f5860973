"""What split protocols share: the interface, drawing nodes of a class, checks, making the task."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Protocol

import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.errors import ArgumentError
from evengraph.core.task import Task

Nodes = list[int]
ALL = "train, validation and test"


class SplitProtocol(Protocol):
    """Turns a graph and a seed into a task; the same seed gives the same task."""

    def __call__(self, graph: Data, *, seed: int) -> Task: ...


def count_classes(graph: Data) -> int:
    if graph.y is None:
        raise ValueError("graph.y must hold the labels; this graph has none.")
    if not (graph.y >= 0).any():
        raise ArgumentError("No node has a label.", argument="label")
    return int(graph.y.max()) + 1


def class_nodes(graph: Data, label: int, among: Tensor | None = None) -> Nodes:
    """Nodes of a class, ascending, within a mask if there is one."""
    mask = graph.y == label
    nodes: Nodes = (mask if among is None else mask & among).nonzero().flatten().tolist()
    return nodes


def shuffled_nodes(
    graph: Data,
    label: int,
    stream: random.Random,
    among: Tensor | None = None,
    *,
    required: int = 0,
    purpose: str = "",
) -> Nodes:
    """Nodes of a class in random order, within a mask if there is one; an error for too few."""
    nodes = class_nodes(graph, label, among)
    stream.shuffle(nodes)
    check_class_size(graph, label, nodes, required, purpose)
    return nodes


def make_task(
    graph: Data, train: Tensor | Nodes, val: Tensor | Nodes, test: Tensor | Nodes
) -> Task:
    """A task from masks or lists of nodes."""
    masks = (p if isinstance(p, Tensor) else mask_of(p, graph) for p in (train, val, test))
    train, val, test = masks
    return Task(graph, train, val, test, count_classes(graph), _class_names(graph))


def join_classes(graph: Data, parts: Iterable[tuple[Nodes, Nodes, Nodes]]) -> Task:
    """A task from the training, validation and test nodes of each class."""
    train, val, test = (list(chain.from_iterable(nodes)) for nodes in zip(*parts, strict=True))
    return make_task(graph, train, val, test)


def mask_of(nodes: Sequence[int], graph: Data) -> Tensor:
    """A bool mask that is true at these nodes, (N,)."""
    mask = torch.zeros(graph.num_nodes, dtype=torch.bool, device=graph.y.device)
    mask[torch.as_tensor(nodes, dtype=torch.long, device=mask.device)] = True
    return mask


def relabel(graph: Data, order: Sequence[int]) -> Data:
    """A copy of the graph in which class `order[i]` has label i, with class names in that order."""
    new_label = torch.full((len(order) + 1,), -1, device=graph.y.device)
    new_label[list(order)] = torch.arange(len(order), device=graph.y.device)
    copy = graph.clone("y")
    copy.y = new_label[graph.y]  # -1, unlabelled, reads the last entry and stays -1
    if names := _class_names(graph):
        copy.class_names = [names[old] for old in order]
    return copy


def _class_names(graph: Data) -> tuple[str, ...]:
    return tuple(graph.class_names) if "class_names" in graph else ()


def display_name(graph: Data, label: int) -> str:
    """A class in messages: its name if it has one, else its label."""
    names = _class_names(graph)
    return repr(str(names[label])) if label < len(names) else str(label)


def check_class_size(
    graph: Data, label: int, nodes: Sequence[int], required: int, purpose: str
) -> None:
    """Raise an error if a class has too few nodes for a protocol."""
    if len(nodes) < required:
        count = "1 labelled node" if len(nodes) == 1 else f"{len(nodes)} labelled nodes"
        raise ValueError(
            f"Class {display_name(graph, label)} has {count} for {purpose}, {required} are needed; "
            "label more, leave the class out (empty its label cells), or choose another split "
            "protocol."
        )


def check_sizes(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}.")


def check_shares(**shares: float) -> None:
    """Shares must lie between 0 and 1 and leave some nodes for the test."""
    for name, share in shares.items():
        if not 0 < share < 1:
            raise ValueError(f"{name} must lie between 0 and 1, got {share}.")
    if (total := sum(shares.values())) >= 1:
        names = " + ".join(shares)
        raise ValueError(f"{names} must be below 1 to leave test nodes, got {total:g}.")
