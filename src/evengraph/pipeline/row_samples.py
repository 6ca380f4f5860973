"""Which rows of a graph on disk a fit sees, and what it says about them."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.rng import generator
from evengraph.core.task import HIDDEN_LABEL, Task
from evengraph.outofcore.shards import RowPlan


def sample_nodes(task: Task, room: int, seed: int) -> Tensor:
    """The nodes to have in memory, ascending: all, or up to `room` of each kind.

    Of the training nodes, rare classes keep all; the others share what is left.
    """
    if task.graph.num_nodes <= room:
        return torch.arange(task.graph.num_nodes)
    random = generator(seed)
    others = (~task.train & ~task.val).nonzero().squeeze(1)
    parts = [*_labelled_parts(task, (room, room), random), _some(others, room, random)]
    return torch.cat(parts).sort().values


def sample_labelled(task: Task, room: tuple[int, int], seed: int) -> Tensor:
    """As `sample_nodes`, of training and validation nodes alone, with a limit for each."""
    return torch.cat(_labelled_parts(task, room, generator(seed))).sort().values


def _labelled_parts(task: Task, room: tuple[int, int], random: torch.Generator) -> list[Tensor]:
    """Training nodes, class by class, and validation nodes, up to a limit each."""
    labels = task.graph.y[task.train_nodes]
    counts = torch.bincount(labels, minlength=task.num_classes)
    parts = []
    for label, size in enumerate(fair_sizes(counts.tolist(), room[0])):
        parts.append(_some(task.train_nodes[labels == label], size, random))
    return [*parts, _some(task.val_nodes, room[1], random)]


def fair_sizes(counts: list[int], room: int) -> list[int]:
    """How many of each class to take: the same limit for all, as large as `room` allows."""
    sizes, left, waiting = [0] * len(counts), room, len(counts)
    for index in sorted(range(len(counts)), key=counts.__getitem__):
        sizes[index] = min(counts[index], left // waiting)
        left, waiting = left - sizes[index], waiting - 1
    return sizes


def select_nodes(task: Task, nodes: Tensor) -> Task:
    """The task on some of its nodes; its graph has labels, and neither features nor edges."""
    graph = without_features(task.graph.y[nodes], task.graph.num_features)
    train, val, test = (mask[nodes] for mask in (task.train, task.val, task.test))
    return Task(graph, train, val, test, task.num_classes, task.class_names)


def hide_others(task: Task) -> Task:
    """The task without labels outside of training and validation."""
    labels = torch.where(task.train | task.val, task.graph.y, HIDDEN_LABEL)
    graph = without_features(labels, task.graph.num_features)
    return Task(graph, task.train, task.val, task.test, task.num_classes, task.class_names)


def plan_note(task: Task, plan: RowPlan) -> str:
    """A sentence about the rows that training reads from disk."""
    kinds = (
        ("training nodes", sum(map(len, plan.labelled)), int(task.train.sum())),
        ("validation nodes", len(plan.validation), int(task.val.sum())),
        ("others", sum(map(len, plan.others)), int((~task.train).sum())),
    )
    counts = [
        f"all {total:,} {kind}" if count == total else f"{count:,} of {total:,} {kind}"
        for kind, count, total in kinds
        if count
    ]
    shards = f"{plan.shards} shards" if plan.shards > 1 else "one shard"
    drawn = any(count < total for _, count, total in (kinds[0], kinds[2]) if count)
    limit = " Epochs draw no more than these." if drawn else ""
    return f"Rows from disk, in {shards}: {', '.join(counts)}.{limit}"


def sampling_notes(task: Task, part: Task) -> list[str]:
    """A sentence about the rows that training had in memory, if these are not all."""
    others = int((~part.train & ~part.val).sum())
    labelled = int((task.train | task.val).sum())
    if part.graph.num_nodes == (task.graph.num_nodes if others else labelled):
        return []
    kinds = (("training", "train"), ("validation", "val"))
    counts = [
        f"{int(getattr(part, mask).sum()):,} of {int(getattr(task, mask).sum()):,} {kind} nodes"
        for kind, mask in kinds
    ]
    if not others:  # rows are read in passes
        return [f"Rows to learn from: {' and '.join(counts)}; more memory allows for more."]
    return [f"Rows in memory: {', '.join(counts)}, and {others:,} others."]


def _some(nodes: Tensor, count: int, random: torch.Generator) -> Tensor:
    """So many nodes at random, or all."""
    if len(nodes) <= count:
        return nodes
    return nodes[torch.randperm(len(nodes), generator=random)[:count]]


def without_features(labels: Tensor, num_features: int) -> Data:
    """A graph of labelled nodes without edges; one zero stands for all features."""
    x = torch.zeros(1, 1).expand(len(labels), num_features)
    return Data(x=x, edge_index=torch.empty(2, 0, dtype=torch.long), y=labels)
