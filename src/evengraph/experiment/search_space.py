"""Settings to try: for every method as many, its own first."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, fields
from itertools import product
from typing import Any

from evengraph.methods import METHODS, Method

SHARED: Mapping[str, Sequence[Any]] = {
    "learning_rate": (0.01, 0.003, 0.03),
    "weight_decay": (5e-4, 5e-5, 5e-3),
    "dropout": (0.5, 0.2, 0.7),
    "hidden": (64, 128),
    "network": ("comparison", "plain"),
}
OWN: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "reweight": {"balance": (False, True)},
    "lte4g": {"class_weights": (False, True), "reconstruct": (False, True)},
    "logitadjustment": {"tau": (0.5, 1.0, 1.5)},
    "focal": {"gamma": (1.0, 2.0), "balance": (False, True)},
    "balancedsoftmax": {"margin": ("none", "tam")},
    "renode": {"loss": ("cross_entropy", "reweight", "balanced_softmax")},
    "graphens": {"masked": (0.01, 0.05), "temperature": (1.0, 2.0), "links": ("none", "BAT1")},
    "graphsha": {"fill": (False, True)},
    "bat": {"variant": ("BAT0", "BAT1"), "loss": ("cross_entropy", "reweight")},
    "unreal": {"rounds": (10, 40), "quota": (4, 16, 64), "clusters": (100, 200)},
    "doublebalancing": {"loss": ("balanced_softmax", "reweight"), "hidden": (128, 256)},
    "iceberg": {
        "learning_rate": (0.01, 0.03, 0.1),
        "teleport": (0.05, 0.1, 0.2),
        "loss": ("balanced_softmax", "reweight"),
    },
    "labelpropagation": {
        "learning_rate": (),  # nothing is learnt: other values would be the same setting again
        "weight_decay": (),
        "restart": (0.01, 0.03, 0.1, 0.2, 0.4, 0.7),
        "balance": (False, True),
    },
    "boosting": {
        "learning_rate": (0.03, 0.1, 0.3),
        "weight_decay": (0.0, 1.0),
        "smallest_leaf": (1, 5),
        "balance": (False, True),
    },
    "unignn": {
        "alpha": (1, 2),
        "clusters_per_class": (4, 10, 30),
        "threshold": (0.5, 0.7),
        "recluster_every": (50, 100),
    },
}
"""Fields beside the shared ones, or other values of those, that papers found worth trying."""


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
    name = next((key for key, kind in METHODS.items() if kind is type(method)), "")
    known = {**SHARED, **OWN.get(name, {})}
    free: dict[str, Sequence[Any]] = {}
    for item in fields(method):
        value = getattr(method, item.name)
        if item.name in known and item.default is not MISSING and value == item.default:
            free[item.name] = tuple(dict.fromkeys((value, *known[item.name])))
    return free
