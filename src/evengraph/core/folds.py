"""Folds: other divisions of a task's labels, so that more of them are held out once."""

from __future__ import annotations

from dataclasses import replace

import torch

from evengraph.core.task import Task


def folds(task: Task, limit: int, generator: torch.Generator) -> list[Task]:
    """The task, and tasks that hold out other nodes, and learn from the validation nodes instead.

    The training nodes are divided into parts of about the size of validation, every class evenly;
    each part is held out once. A class without validation nodes keeps one training node throughout.

    Args:
        task: The first fold; its test nodes are those of all.
        limit: How many folds at most.
        generator: Draws the parts.
    """
    sizes = int(task.train.sum()), max(int(task.val.sum()), 1)
    number = min(limit - 1, round(sizes[0] / sizes[1]))
    if number < 1:
        return [task]
    labels, train = task.graph.y.cpu(), task.train.cpu()
    part = torch.full_like(labels, -1)
    for label in range(task.num_classes):
        nodes = (train & (labels == label)).nonzero().squeeze(1)
        order = nodes[torch.randperm(nodes.numel(), generator=generator)]
        if not task.val_counts[label]:
            order = order[1:]
        part[order] = (torch.arange(order.numel()) + label) % number
    part, known = part.to(task.graph.y.device), task.train | task.val
    others = [part == index for index in range(number)]
    return [task, *(replace(task, train=known & ~held, val=held) for held in others if held.any())]
