"""Folds: the labels of a task divided again, so that each of them is held out once."""

from __future__ import annotations

from dataclasses import replace

import torch

from evengraph.core.task import Task


def folds(task: Task, number: int, generator: torch.Generator) -> list[Task]:
    """Divide training and validation nodes: every part is held out once, the others learn.

    Every class is divided evenly, so there are no more parts than nodes in the smallest class.

    Args:
        task: The task; its test nodes stay as they are.
        number: How many parts at most.
        generator: Draws the parts.

    Returns:
        One task per part; the task itself if its nodes cannot be divided.
    """
    labels = task.graph.y.cpu()
    known = (task.train | task.val).cpu()
    classes = [
        (known & (labels == label)).nonzero().squeeze(1) for label in range(task.num_classes)
    ]
    sizes = [nodes.numel() for nodes in classes if nodes.numel()]
    number = min([number, *sizes])
    if number < 2:
        return [task]
    part = torch.full_like(labels, -1)
    for offset, nodes in enumerate(classes):
        order = nodes[torch.randperm(nodes.numel(), generator=generator)]
        part[order] = (torch.arange(nodes.numel()) + offset) % number
    part = part.to(task.graph.y.device)
    return [replace(task, train=(part >= 0) & (part != k), val=part == k) for k in range(number)]
