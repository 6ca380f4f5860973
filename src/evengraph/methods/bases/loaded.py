"""Predicting with a model of a folder, whose tensors may be anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from evengraph.core.errors import first_line


@contextmanager
def one_line_errors(title: str, *, loaded: bool) -> Iterator[None]:
    """Turn errors of torch into one of a line, if the tensors come from a folder.

    Args:
        title: Name of the method.
        loaded: Whether it was loaded; an error of a method that was fitted here is a bug.
    """
    try:
        yield
    except (IndexError, KeyError, RuntimeError, TypeError) as error:
        if not loaded or _is_memory(error):
            raise
        raise ValueError(
            f"The saved model cannot predict: the tensors of {title} do not fit together "
            f"({first_line(error)})."
        ) from error


def check_classes(probabilities: Tensor, classes: int) -> None:
    """Raise ValueError unless there is a column for each class."""
    if probabilities.dim() != 2 or probabilities.shape[1] != classes:
        shape = " by ".join(map(str, probabilities.shape))
        raise ValueError(
            f"The saved model must predict {classes} classes, and its tensors give {shape} values."
        )


def _is_memory(error: Exception) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or "allocate" in str(error)
