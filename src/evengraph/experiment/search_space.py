"""Candidate settings of a method, for selection on validation."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import MISSING, asdict, fields
from itertools import product
from typing import Any

from evengraph.methods import Method


def candidates(method: Method, budget: int) -> list[Method]:
    """The given method, then others with parameters drawn at random from its search space.

    The draw is the same each time. Parameters that differ from their defaults stay as they are. A
    method that selects its settings itself has one candidate; one with a small search space has
    all of it.
    """
    if budget < 1:
        raise ValueError(f"budget must be at least 1, got {budget}.")
    budget = 1 if method.selects_itself else budget
    params = asdict(method)
    space = _space(method)
    rest = [
        dict(zip(space, values, strict=True))
        for values in product(*space.values())
        if any(params[name] != value for name, value in zip(space, values, strict=True))
    ]
    drawn = random.Random(0).sample(rest, min(budget - 1, len(rest)))
    return [type(method)(**{**params, **changed}) for changed in ({}, *drawn)]


def _space(method: Method) -> dict[str, Sequence[Any]]:
    """Values per parameter that may vary, its own included."""
    known = {**method.shared_search_space, **method.search_space}
    free: dict[str, Sequence[Any]] = {}
    for item in fields(method):
        value = getattr(method, item.name)
        if item.name in known and item.default is not MISSING and value == item.default:
            free[item.name] = tuple(dict.fromkeys((value, *known[item.name])))
    return free
