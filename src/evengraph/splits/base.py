"""What every protocol shares: the contract, and small pieces of splitting."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Protocol

import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.errors import ArgumentError
from evengraph.core.task import Task


class Imbalance(Protocol):
    """Turns a graph and a seed into a task; the same seed gives the same task."""

    def __call__(self, graph: Data, *, seed: int) -> Task:
        """Split the graph."""
        ...


def count_classes(graph: Data) -> int:
    """Number of classes in a graph's labels."""
    if graph.y is None:
        raise ValueError("graph.y must hold the labels; this graph has none.")
    if not (graph.y >= 0).any():
        raise ArgumentError("No node has a label.", argument="label")
    return int(graph.y.max()) + 1


def nodes_of_class(graph: Data, label: int, among: Tensor | None = None) -> list[int]:
    """Ids of the nodes of a class, ascending."""
    mask = graph.y == label
    if among is not None:
        mask = mask & among
    ids: list[int] = mask.nonzero().flatten().tolist()
    return ids


def shuffled(nodes: Iterable[int], stream: random.Random) -> list[int]:
    """The nodes in random order."""
    nodes = list(nodes)
    stream.shuffle(nodes)
    return nodes


def mask_of(nodes: Sequence[int], graph: Data) -> Tensor:
    """A bool mask that is true at these nodes, (N,)."""
    mask = torch.zeros(graph.num_nodes, dtype=torch.bool, device=graph.y.device)
    mask[torch.as_tensor(nodes, dtype=torch.long, device=mask.device)] = True
    return mask


def relabelled(graph: Data, order: Sequence[int]) -> tuple[Data, tuple[str, ...]]:
    """A copy of the graph in which class `order[i]` is called i, and the names in that order."""
    new_label = torch.full((len(order) + 1,), -1, device=graph.y.device)
    for new, old in enumerate(order):
        new_label[old] = new
    copy = graph.clone("y")
    copy.y = new_label[graph.y]  # -1, unlabelled, reads the last entry and stays -1
    names = class_names(graph)
    reordered = tuple(names[old] for old in order) if names else ()
    if reordered:
        copy.class_names = list(reordered)
    return copy, reordered


def class_names(graph: Data) -> tuple[str, ...]:
    """Names of the classes where the graph has them."""
    return tuple(graph.class_names) if "class_names" in graph else ()


def class_word(graph: Data, label: int) -> str:
    """A class as messages call it: by its name where it has one, else by its number."""
    names = class_names(graph)
    return repr(str(names[label])) if label < len(names) else str(label)


def check_sizes(**sizes: int) -> None:
    """Refuse sets that would be empty."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}.")


def need(nodes: Sequence[int], wanted: int, called: str, what: str) -> None:
    """Refuse a class that is too small for a protocol; `called` is its `class_word`."""
    if len(nodes) < wanted:
        many = "1 labelled node" if len(nodes) == 1 else f"{len(nodes)} labelled nodes"
        raise ValueError(
            f"Class {called} has {many} for {what}, {wanted} are needed; label more, leave the "
            "class out (empty its label cells), or choose another protocol."
        )


def check_shares(train: float, val: float) -> None:
    """Shares to train and to choose on leave some nodes for the test."""
    for name, share in (("train", train), ("val", val)):
        if not 0 < share < 1:
            raise ValueError(f"{name} must lie between 0 and 1, got {share}.")
    if train + val >= 1:
        raise ValueError(f"train + val must be below 1 to leave test nodes, got {train + val:g}.")


def check_ratio(ratio: float) -> None:
    """A ratio lies in (0, 1]."""
    if not 0 < ratio <= 1:
        raise ValueError(f"ratio must lie in (0, 1], got {ratio}.")


def check_minority(minority: int, num_classes: int) -> None:
    """At least one class must stay a majority class."""
    if not 0 <= minority < num_classes:
        raise ArgumentError(
            f"minority must lie between 0 and {num_classes - 1} on a graph with {num_classes} "
            f"classes, got {minority}; the split protocol natural keeps the class sizes.",
            argument="imbalance",
            value="natural",
        )


def minority_size(per_class: int, ratio: float) -> int:
    """Labelled nodes of a minority class: the whole part of per_class x ratio."""
    size = int(per_class * ratio + 1e-9)  # 20 x 0.15 is 2.9999... in floating point elsewhere
    if size < 1:
        raise ValueError(
            f"ratio={ratio} would leave a minority class without a labelled node; "
            f"the smallest that works is {1 / per_class:g}."
        )
    return size
