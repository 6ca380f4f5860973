"""Assertions of the contract, which hold under `python -O` as well."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


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


def expect_error(kind: type[Exception], words: str, call: Callable[[], object]) -> str:
    """Expect a call to raise an error whose message contains some words; returns the message."""
    try:
        call()
    except kind as error:
        expect(words in str(error), f"the error does not contain {words!r}: {error}")
        return str(error)
    raise AssertionError(f"no {kind.__name__} was raised.")
