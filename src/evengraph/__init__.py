"""Node classification with imbalanced classes.

import evengraph as eg

graph = eg.load("cora")
task = eg.splits.Step(minority=3, ratio=0.1)(graph, seed=5)
model = eg.UniGNN().fit(task, seed=5)
eg.evaluate(task, model.predict_proba(task.graph))
"""

from importlib import import_module
from sys import modules
from typing import TYPE_CHECKING, Any

from evengraph.core import threads

if TYPE_CHECKING:  # for type checkers and editors; `__getattr__` does the same at run time
    from evengraph import datasets as datasets
    from evengraph import methods as methods
    from evengraph import metrics as metrics
    from evengraph import nn as nn
    from evengraph import ops as ops
    from evengraph import splits as splits
    from evengraph import tables as tables
    from evengraph import testing as testing
    from evengraph.core.task import Task as Task
    from evengraph.datasets import load as load
    from evengraph.datasets import toy as toy
    from evengraph.desk import suggest as suggest
    from evengraph.inspection import inspect_graph as inspect_graph
    from evengraph.methods import *  # noqa: F403
    from evengraph.metrics.evaluation import evaluate as evaluate
    from evengraph.pipeline.explanation import explain as explain
    from evengraph.pipeline.model_info import load_model as load_model
    from evengraph.pipeline.node_classifier import NodeClassifier as NodeClassifier
    from evengraph.pipeline.run import compare as compare
    from evengraph.pipeline.scorer import Scorer as Scorer
    from evengraph.pipeline.table_model import TableModel as TableModel
    from evengraph.tables import from_frames as from_frames
    from evengraph.tables import from_matrix as from_matrix
    from evengraph.tables import from_networkx as from_networkx
    from evengraph.tables import open_graph as open_graph

__version__ = "0.3.0"

threads.prepare()

# Importing torch takes seconds, so names are imported on first use: these from the given module,
# every method from evengraph.methods.
_ROOMS = ("datasets", "methods", "metrics", "nn", "ops", "splits", "tables", "testing")
_NAMES = {
    "core.task": ("Task",),
    "datasets": ("load", "toy"),
    "pipeline.run": ("compare",),
    "inspection": ("inspect_graph",),
    "desk": ("suggest",),
    "methods": ("METHODS", "Method", "fit_many"),
    "metrics": ("evaluate",),
    "pipeline.explanation": ("explain",),
    "pipeline.model_info": ("load_model",),
    "pipeline.node_classifier": ("NodeClassifier",),
    "pipeline.scorer": ("Scorer",),
    "pipeline.table_model": ("TableModel",),
    "tables": ("from_frames", "from_matrix", "from_networkx", "open_graph"),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}
_MODULES = {name: name for name in _ROOMS} | {"labelling": "desk"}


def _methods() -> dict[str, Any]:
    module = import_module("evengraph.methods")
    classes = (value for value in vars(module).values() if isinstance(value, type))
    return {value.__name__: value for value in classes if issubclass(value, module.Method)}


if not TYPE_CHECKING:  # a type checker would take any name for defined

    def __getattr__(name: str) -> Any:
        if name == "imbalance":  # the former name of splits, in older scripts
            name = "splits"
        if name in _MODULES:
            return import_module(f"evengraph.{_MODULES[name]}")
        if name in _HOMES:
            return getattr(import_module(f"evengraph.{_HOMES[name]}"), name)
        if name == "__all__":
            return __dir__()
        if name[0].isupper() and name in (methods := _methods()):
            return methods[name]
        message = f"module 'evengraph' has no attribute {name!r}"
        raise AttributeError(message, name=name, obj=modules[__name__])


def __dir__() -> list[str]:
    return sorted({*_MODULES, *_HOMES, *_methods(), "__version__"})
