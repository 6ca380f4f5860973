"""Refitting: once everything is selected and scored, learn from the test labels, too."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch

from evengraph.core.task import Task


class Refit(NamedTuple):
    """How many labels a model was fitted to again, after its scores were computed.

    Args:
        train: Labels it has learnt from.
        validation: Labels that decided when to stop, and the threshold.
        train_before: Labels that the model with the test scores had learnt from.
    """

    train: int
    validation: int
    train_before: int

    @classmethod
    def of(cls, task: Task) -> Refit:
        """What refitting after a task uses."""
        full = all_labels(task)
        return cls(int(full.train.sum()), int(task.val.sum()), int(task.train.sum()))


def all_labels(task: Task) -> Task:
    """A task that trains on every label outside validation; nothing is left to test on.

    The validation nodes stay: early stopping, threshold and calibration need labels that were not
    learnt from, and giving half of them away did not help in trials. Edges that a split by time
    hides are seen.
    """
    train = (task.graph.y >= 0) & ~task.val
    return replace(task, train=train, test=torch.zeros_like(task.test), past=None)
