"""Settings to try: for every method as many, its own first."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import MISSING, asdict, fields
from itertools import product
from typing import Any

from evengraph.methods import Method


def candidates(method: Method, budget: int) -> list[Method]:
    """Fresh methods to choose from on validation: the given one, then others drawn by chance.

    The same each time. Fields that differ from their defaults were chosen by somebody and stay.
    """
    if budget < 1:
        raise ValueError(f"budget must be at least 1, got {budget}.")
    own = asdict(method)
    space = _space(method)
    rest = [
        dict(zip(space, values, strict=True))
        for values in product(*space.values())
        if any(own[name] != value for name, value in zip(space, values, strict=True))
    ]
    if budget - 1 > len(rest):
        raise ValueError(
            f"{method.title} has {len(rest) + 1} settings to try, budget={budget} is too large."
        )
    drawn = random.Random(0).sample(rest, budget - 1)
    return [type(method)(**{**own, **changed}) for changed in ({}, *drawn)]


def _space(method: Method) -> dict[str, Sequence[Any]]:
    """Values of each field that may vary, its own among them."""
    known = {**method.shared_search_space, **method.search_space}
    free: dict[str, Sequence[Any]] = {}
    for item in fields(method):
        value = getattr(method, item.name)
        if item.name in known and item.default is not MISSING and value == item.default:
            free[item.name] = tuple(dict.fromkeys((value, *known[item.name])))
    return free
