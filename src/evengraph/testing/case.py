"""A method under test, and the assertions that the checks share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from evengraph.core.task import Task
from evengraph.methods import Method

EPOCHS = 6


@dataclass(frozen=True)
class Case:
    """A method class, and what the checks need to know about it."""

    cls: type[Method]
    params: Mapping[str, Any]
    deterministic: bool
    train_accuracy: float

    def make(self, **params: Any) -> Method:
        """Construct the method with few epochs."""
        return self.cls(**{"max_epochs": EPOCHS, "patience": EPOCHS, **self.params, **params})

    def fit(self, task: Task, seed: int = 0, **params: Any) -> Method:
        """Construct and fit the method."""
        return self.make(**params).fit(task, seed=seed)

    def predict(self, task: Task, seed: int = 0, **params: Any) -> Tensor:
        """Return the probabilities of a newly fitted method, (N, C)."""
        return self.fit(task, seed, **params).predict_proba(task.graph)


def expect(condition: bool | Tensor, message: str) -> None:
    """Raise AssertionError unless the condition holds, also under `python -O`."""
    if not condition:
        raise AssertionError(message)


def expect_equal(first: Tensor, second: Tensor, message: str) -> None:
    """Expect the same bits."""
    expect(first.shape == second.shape and torch.equal(first, second), message)


def expect_probabilities(values: Tensor, num_nodes: int, num_classes: int) -> None:
    """Expect non-negative rows that sum to one."""
    shape = (num_nodes, num_classes)
    expect(values.shape == shape, f"the shape is {tuple(values.shape)} instead of {shape}.")
    expect(torch.isfinite(values).all(), "some probabilities are not finite.")
    expect((values >= 0).all(), "some probabilities are negative.")
    torch.testing.assert_close(values.sum(1), torch.ones(num_nodes), msg="rows do not sum to one.")
    expect(not values.requires_grad, "the result requires gradients.")


def expect_fits(case: Case, task: Task) -> None:
    """Expect probabilities after a fit."""
    expect_probabilities(case.predict(task), int(task.graph.num_nodes or 0), task.num_classes)


def error_of(kind: type[Exception], call: Callable[[], object]) -> str:
    """Return the message of the error that a call must raise."""
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__} was raised.")
