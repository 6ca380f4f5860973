"""Fits of several methods trained as one batch on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from evengraph.core.task import Task
from evengraph.training.batch.replicas import can_replicate

if TYPE_CHECKING:
    from evengraph.methods.bases.method import Method


class Fit(NamedTuple):
    """A method to fit, its task and seed, and what to call once it is fitted."""

    method: Any  # a Method; all of a batch are of one class
    task: Task
    seed: int
    on_fitted: Callable[[], None] = lambda: None


class Batching(NamedTuple):
    """How the fits of a method are trained as one batch."""

    train: Callable[[Sequence[Fit], int], Iterator[None]]  # at most so many at a time
    may_differ: frozenset[str] = frozenset()  # parameters that may differ within a batch


def share_batch(one: Method, other: Method) -> bool:
    """Whether two methods can be fitted in one batch on the same graph."""
    batching = one.batching()
    return (
        batching is not None
        and type(one) is type(other)
        and all(
            getattr(one, item.name) == getattr(other, item.name)
            for item in fields(one)
            if item.name not in batching.may_differ
        )
    )


def fit_batch(fits: Sequence[Fit], slots: int) -> Iterator[None]:
    """Fit methods that share a batch, at most `slots` at a time."""
    batching = fits[0].method.batching()
    yield from batching.train(fits, slots)


def fit_as_batch(method: Method, task: Task, seed: int) -> bool:
    """Fit one method as a batch of one if possible; return whether it was."""
    device = task.graph.x.device
    if not can_replicate(device) or method.batching() is None:
        return False
    with torch.cuda.device(device):
        for _ in fit_batch([Fit(method, task, seed)], slots=1):
            pass
    return True
