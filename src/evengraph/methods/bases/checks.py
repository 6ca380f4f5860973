"""Validation of tasks, graphs and parameters."""

from __future__ import annotations

import math
from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.errors import short
from evengraph.core.graphs import check_edge_weight, check_relations
from evengraph.core.task import Task

LARGE = 1e9
"""Features from which on single precision may overflow: networks multiply them several times."""


def as_task(task: Task | Data, seed: int) -> Task:
    """A task, or that of a PyG graph with masks."""
    if isinstance(task, Task):
        return task
    if not isinstance(task, Data):
        raise TypeError(
            f"task must be a Task or a torch_geometric.data.Data, got {type(task).__name__}."
        )
    check_graph(task)
    return Task.from_graph(task, seed=seed)


def check_task(task: Task) -> None:
    """Raise ValueError for a task that nothing can be learnt from."""
    check_graph(task.graph)
    counts = task.class_counts
    if counts.min() < 1:
        empty = int(counts.argmin())
        name = f" ({task.class_names[empty]})" if task.class_names else ""
        gap = "" if (task.graph.y == empty).any() else " Number the classes without gaps."
        raise ValueError(f"Class {empty}{name} has no training node; every class needs one.{gap}")
    for name in ("train", "val"):
        mask = getattr(task, name)
        if not mask.any():
            raise ValueError(f"The {name} set is empty.")
        if (task.graph.y[mask] < 0).any():
            raise ValueError(f"Some {name} nodes have no label.")


def check_graph(graph: Data) -> None:
    """Raise ValueError for a graph without usable features and edges."""
    x, edges = graph.x, graph.edge_index
    if not isinstance(x, Tensor) or x.dim() != 2 or not x.is_floating_point():
        raise ValueError("graph.x must hold a row of floating-point features per node, a tensor.")
    if x.layout != torch.strided:
        raise ValueError("graph.x must be a dense tensor, got a sparse one; x.to_dense() is dense.")
    # a sum needs no memory and a fraction of the time; that of huge numbers overflows
    if not torch.isfinite(x.sum()) and not torch.isfinite(x).all():
        row = int((~torch.isfinite(x)).any(dim=1).nonzero()[0])
        raise ValueError(f"graph.x must be finite; node {row} has a NaN or an infinity.")
    if edges is None or edges.dim() != 2 or edges.shape[0] != 2 or edges.is_floating_point():
        raise ValueError("graph.edge_index must hold the edges as integers, shape (2, E).")
    check_edge_weight(graph)
    check_relations(graph)


def describe_large(x: Tensor) -> str:
    """A sentence about features so large that their products overflow; otherwise nothing."""
    largest = float(x.abs().max()) if x.numel() else 0.0
    if largest < LARGE:
        return ""
    return f" Features are as large as {largest:.0e}: scale them, for example to mean 0 and std 1."


def reason_of_overflow(message: str, x: Tensor) -> str:
    """The message of a loss that overflowed: huge features are to blame, not the learning rate."""
    large = describe_large(x)
    return f"{message.partition(';')[0].rstrip('.')}.{large}" if large else message


Limit = float | tuple[int, int] | Literal["fraction", "positive"]
"""What a number must be: at least this, from the first to the second, in [0, 1), or above 0."""


def check_params(method: Any) -> None:
    """Validate parameters by their annotations, and numbers by the `limits` of their classes."""
    limits, hints = _rules(method.__class__)
    for item in fields(method):
        name, value = item.name, getattr(method, item.name)
        limit, hint = limits.get(name), hints.get(name)
        words, hint = split_words(hint)
        if value in words:
            continue
        if words and isinstance(value, str):
            raise ValueError(f"{name} must be a number or {' or '.join(words)}, got {value!r}.")
        if isinstance(item.default, bool) and not isinstance(value, bool):
            raise ValueError(f"{name} must be True or False, got {value!r}.")
        if get_origin(hint) is Literal:
            check_choice(name, value, get_args(hint))
        elif limit == "fraction":
            check_fraction(name, value)
        elif limit == "positive":
            check_positive(name, value)
        elif isinstance(limit, tuple):
            check_range(name, value, *limit)
        elif limit is not None and hint is int:
            check_integer(name, value, int(limit))
        elif isinstance(limit, float | int):
            check_minimum(name, value, limit)


def split_words(hint: Any) -> tuple[tuple[str, ...], Any]:
    """Words that stand beside numbers, and the type of these: `int | Literal["auto"]`."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else ()
    words = tuple(word for part in parts if get_origin(part) is Literal for word in get_args(part))
    return words, next(part for part in parts if get_origin(part) is not Literal) if words else hint


@cache
def _rules(kind: type) -> tuple[dict[str, Limit], dict[str, Any]]:
    """Limits and types of all parameters of a class; evaluating the types takes a millisecond."""
    limits: dict[str, Limit] = {}
    for base in reversed(kind.__mro__):
        limits |= vars(base).get("limits", {})
    try:
        return limits, get_type_hints(kind)
    except NameError:  # a type that is imported for type checkers only
        return limits, {}


def check_integer(name: str, value: int, minimum: int) -> None:
    """Raise ValueError for a parameter that is no integer, or below its minimum."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} must be an integer, got {value!r}.")
    check_minimum(name, value, minimum)


def check_range(name: str, value: int, minimum: int, maximum: int) -> None:
    """Raise ValueError for a parameter that is no integer, or outside its range."""
    check_integer(name, value, minimum)
    if value > maximum:
        raise ValueError(f"{name} must be at most {maximum}, got {short(value)}.")


def check_minimum(name: str, value: float, minimum: float) -> None:
    """Raise ValueError for a parameter that is below its minimum, or infinite."""
    if not value >= minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}.")
    if value == math.inf:
        raise ValueError(f"{name} must be finite, got {value}.")


def check_positive(name: str, value: float) -> None:
    """Raise ValueError for a parameter that is not above 0, or infinite."""
    if not value > 0:
        raise ValueError(f"{name} must be above 0, got {value}.")
    if value == math.inf:
        raise ValueError(f"{name} must be finite, got {value}.")


def check_fraction(name: str, value: float) -> None:
    """Raise ValueError for a parameter outside [0, 1)."""
    if not 0 <= value < 1:
        raise ValueError(f"{name} must lie in [0, 1), got {value}.")


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise ValueError for a parameter that is not among its choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}.")
