"""Masks and labels of a PyG graph, as a task needs them."""

from __future__ import annotations

import random
from functools import cache
from typing import TYPE_CHECKING, Any
from warnings import warn

import torch
from torch import Tensor

if TYPE_CHECKING:
    from torch_geometric.data import Data

HELD_OUT = 0.2
"""Share of the training nodes to validate on, where a graph has no validation nodes."""


def split_masks(
    graph: Data, labels: Tensor, seed: int, split: int | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Training, validation and test nodes of a graph, as `Task.from_graph` describes them."""
    labelled = labels >= 0
    if not labelled.any():
        raise ValueError("graph.y must hold labels; every node is unlabelled (-1).")
    train, val, test = (node_mask(graph, part, split) for part in ("train", "val", "test"))
    rest = labelled.clone()
    for mask in (train, val, test):
        rest &= True if mask is None else ~mask
    if train is None:
        if labelled.all():
            raise ValueError(
                "graph.train_mask must say which nodes to train on: every node has a label. Or "
                "split the graph: evengraph.splits.Natural()(graph, seed=0)."
            )
        train, rest = rest, torch.zeros_like(rest)
    train = train & labelled
    if val is None:
        _warn_held_out()
        val = hold_out(labels, train, HELD_OUT, seed)
        train = train & ~val
    return train, val & labelled, rest if test is None else test & labelled


@cache
def _warn_held_out() -> None:
    """Warn once: a loop over parameters or seeds need not repeat it."""
    warn(
        f"The graph has no val_mask: {HELD_OUT:.0%} of the training nodes are held out to "
        "validate on.",
        stacklevel=6,  # the line that calls fit
    )


def scored_nodes(graph: Data) -> Tensor:
    """The test nodes of a graph; without `test_mask`, labelled nodes in no other mask."""
    train, val, test = (node_mask(graph, part) for part in ("train", "val", "test"))
    labelled = class_labels(graph) >= 0
    if test is not None:
        return test & labelled
    if train is None:  # all labelled nodes were for training
        return torch.zeros_like(labelled)
    return labelled & ~train if val is None else labelled & ~train & ~val


def class_labels(graph: Data) -> Tensor:
    """Labels as integers, (N,); -1 is unlabelled. A column of them, (N, 1), is flattened."""
    labels = graph.y
    if not isinstance(labels, Tensor):
        raise ValueError("graph.y must hold the labels; this graph has none.")
    if labels.dim() == 2 and labels.shape[1] == 1:
        labels = labels.squeeze(1)
    if labels.shape != (graph.num_nodes,):
        raise ValueError(
            f"graph.y must hold one label for each of the {graph.num_nodes} nodes, got shape "
            f"{tuple(labels.shape)}."
        )
    if labels.is_floating_point():
        raise ValueError(f"graph.y must hold classes as integers, got {labels.dtype}.")
    return labels.long()


def node_mask(graph: Data, part: str, split: int | None = None) -> Tensor | None:
    """The mask of a part of the graph, such as train; None if it has none.

    Args:
        graph: A graph with `train_mask`, `val_mask` or `test_mask`.
        part: train, val or test.
        split: Column of a mask with several splits.
    """
    name = f"{part}_mask"
    value: Any = graph.get(name)
    if value is None:
        return None
    mask = torch.as_tensor(value)
    if mask.dtype != torch.bool and not ((mask == 0) | (mask == 1)).all():
        raise ValueError(f"graph.{name} must be a mask of {graph.num_nodes} nodes, not indices.")
    mask = mask.bool()
    if mask.dim() == 2 and mask.shape[1] == 1:
        mask = mask.squeeze(1)
    if mask.dim() == 2:
        mask = _column(mask, name, split)
    if mask.shape != (graph.num_nodes,):
        raise ValueError(
            f"graph.{name} must be a mask of {graph.num_nodes} nodes, got shape "
            f"{tuple(mask.shape)}."
        )
    return mask


def node_indices(nodes: Tensor, graph: Data) -> Tensor:
    """A mask or node indices, as indices."""
    num_nodes, nodes = graph.num_nodes, torch.as_tensor(nodes, device=graph.y.device)
    if nodes.dtype == torch.bool:
        if nodes.shape != (num_nodes,):
            raise ValueError(f"nodes must be a mask of {num_nodes} nodes, got {nodes.numel()}.")
        return nodes.nonzero().squeeze(1)
    if nodes.is_floating_point() or nodes.dim() != 1:
        raise ValueError("nodes must be a bool mask or a list of integers.")
    if nodes.numel() and not 0 <= int(nodes.min()) <= int(nodes.max()) < num_nodes:
        raise ValueError(f"nodes must lie between 0 and {num_nodes - 1}.")
    return nodes


def _column(mask: Tensor, name: str, split: int | None) -> Tensor:
    count = mask.shape[1]
    if split is None:
        raise ValueError(
            f"graph.{name} holds {count} splits, one per column; choose one with "
            "Task.from_graph(graph, split=0)."
        )
    if not 0 <= split < count:
        raise ValueError(f"split must lie between 0 and {count - 1}, got {split}.")
    return mask[:, split]


def hold_out(labels: Tensor, train: Tensor, share: float, seed: int) -> Tensor:
    """A mask of the same share of each class's training nodes; every class keeps one.

    Shapes:
        labels, train, returns: (N,)
    """
    stream, drawn = random.Random(seed), torch.zeros_like(train)
    for label in range(int(labels.max()) + 1):
        nodes: list[int] = ((labels == label) & train).nonzero().flatten().tolist()
        stream.shuffle(nodes)
        drawn[nodes[: min(max(1, round(share * len(nodes))), len(nodes) - 1)]] = True
    return drawn
