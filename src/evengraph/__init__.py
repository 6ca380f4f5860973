"""Node classification when the classes are unequal.

import evengraph as eg

graph = eg.load("cora")
task = eg.imbalance.Step(minority=3, ratio=0.1)(graph, seed=5)
model = eg.UniGNN(alpha=2).fit(task, seed=5)
eg.evaluate(task, model.predict_proba(task.graph))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evengraph import data, imbalance, methods, metrics, ops
    from evengraph.data import from_frames, from_matrix, from_networkx, load, open_graph, toy
    from evengraph.methods import (
        GCN,
        LTE4G,
        METHODS,
        SMOTE,
        EmbedSMOTE,
        GraphENS,
        GraphSMOTE,
        Method,
        Oversampling,
        Reweight,
        UniGNN,
        fit_many,
    )
    from evengraph.metrics import evaluate
    from evengraph.task import Task

__version__ = "0.1.0"

# Torch takes seconds to import, so every name is fetched when it is first asked for.
_HOMES = {
    "EmbedSMOTE": "methods",
    "GCN": "methods",
    "GraphENS": "methods",
    "GraphSMOTE": "methods",
    "LTE4G": "methods",
    "METHODS": "methods",
    "Method": "methods",
    "Oversampling": "methods",
    "Reweight": "methods",
    "SMOTE": "methods",
    "UniGNN": "methods",
    "fit_many": "methods",
    "Task": "task",
    "evaluate": "metrics",
    "from_frames": "data",
    "from_matrix": "data",
    "from_networkx": "data",
    "load": "data",
    "open_graph": "data",
    "toy": "data",
}
_ROOMS = ("data", "imbalance", "methods", "metrics", "ops")

__all__ = [
    "GCN",
    "LTE4G",
    "METHODS",
    "SMOTE",
    "EmbedSMOTE",
    "GraphENS",
    "GraphSMOTE",
    "Method",
    "Oversampling",
    "Reweight",
    "Task",
    "UniGNN",
    "data",
    "evaluate",
    "fit_many",
    "from_frames",
    "from_matrix",
    "from_networkx",
    "imbalance",
    "load",
    "methods",
    "metrics",
    "open_graph",
    "ops",
    "toy",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"evengraph.{name}")
    if name in _HOMES:
        return getattr(import_module(f"evengraph.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'evengraph' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
