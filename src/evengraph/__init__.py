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
    from evengraph import data, imbalance, methods, metrics, nn, ops, transforms
    from evengraph.data import from_frames, from_matrix, from_networkx, load, open_graph, toy
    from evengraph.explaining import explain
    from evengraph.inspection import inspect_graph
    from evengraph.keeping import load_model
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
    "explain": "explaining",
    "from_frames": "data",
    "from_matrix": "data",
    "from_networkx": "data",
    "inspect_graph": "inspection",
    "load": "data",
    "load_model": "keeping",
    "open_graph": "data",
    "toy": "data",
}
_ROOMS = ("data", "imbalance", "methods", "metrics", "nn", "ops", "transforms")

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
    "explain",
    "fit_many",
    "from_frames",
    "from_matrix",
    "from_networkx",
    "imbalance",
    "inspect_graph",
    "load",
    "load_model",
    "methods",
    "metrics",
    "nn",
    "open_graph",
    "ops",
    "toy",
    "transforms",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"evengraph.{name}")
    if name in _HOMES:
        return getattr(import_module(f"evengraph.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'evengraph' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
