"""Node classification when the classes are unequal.

import evengraph as eg

graph = eg.load("cora")
task = eg.splits.Step(minority=3, ratio=0.1)(graph, seed=5)
model = eg.UniGNN(alpha=2).fit(task, seed=5)
eg.evaluate(task, model.predict_proba(task.graph))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evengraph import datasets, methods, metrics, nn, ops, splits, tables
    from evengraph.core.task import (
        Task,
    )
    from evengraph.datasets import (
        load,
        toy,
    )
    from evengraph.experiment.comparison import (
        compare,
    )
    from evengraph.inspection import (
        inspect_graph,
    )
    from evengraph.methods import (
        BAT,
        GCN,
        LTE4G,
        METHODS,
        MLP,
        SMOTE,
        UNREAL,
        BalancedSoftmax,
        Boosting,
        ClassBalanced,
        DoubleBalancing,
        EmbedSMOTE,
        Focal,
        GraphENS,
        GraphSHA,
        GraphSMOTE,
        IceBerg,
        ImGAGN,
        LabelPropagation,
        LogitAdjustment,
        Method,
        Oversampling,
        PCSoftmax,
        ReNode,
        Reweight,
        UniGNN,
        fit_many,
    )
    from evengraph.metrics import (
        evaluate,
    )
    from evengraph.nn import transforms
    from evengraph.pipeline.explanation import (
        explain,
    )
    from evengraph.pipeline.loading import (
        load_model,
    )
    from evengraph.pipeline.table_model import (
        TableModel,
    )
    from evengraph.tables import (
        from_frames,
        from_matrix,
        from_networkx,
        open_graph,
    )

__version__ = "0.1.0"

# Importing torch takes seconds, so every name is imported on first use.
_NAMES = {
    "methods": (
        "BAT",
        "GCN",
        "LTE4G",
        "METHODS",
        "MLP",
        "SMOTE",
        "UNREAL",
        "BalancedSoftmax",
        "Boosting",
        "ClassBalanced",
        "DoubleBalancing",
        "EmbedSMOTE",
        "Focal",
        "GraphENS",
        "GraphSHA",
        "GraphSMOTE",
        "IceBerg",
        "ImGAGN",
        "LabelPropagation",
        "LogitAdjustment",
        "Method",
        "Oversampling",
        "PCSoftmax",
        "ReNode",
        "Reweight",
        "UniGNN",
        "fit_many",
    ),
    "core.task": ("Task",),
    "metrics": ("evaluate",),
    "pipeline.explanation": ("explain",),
    "pipeline.loading": ("load_model",),
    "pipeline.table_model": ("TableModel",),
    "experiment.comparison": ("compare",),
    "tables": (
        "from_frames",
        "from_matrix",
        "from_networkx",
        "open_graph",
    ),
    "datasets": (
        "load",
        "toy",
    ),
    "inspection": ("inspect_graph",),
}
_HOMES = {name: room for room, names in _NAMES.items() for name in names}
_ROOMS = {
    **{name: name for name in ("datasets", "methods", "metrics", "nn", "ops", "splits", "tables")},
    "transforms": "nn.transforms",
    "imbalance": "splits",  # its name before 0.2
}

__all__ = [
    "BAT",
    "GCN",
    "LTE4G",
    "METHODS",
    "MLP",
    "SMOTE",
    "UNREAL",
    "BalancedSoftmax",
    "Boosting",
    "ClassBalanced",
    "DoubleBalancing",
    "EmbedSMOTE",
    "Focal",
    "GraphENS",
    "GraphSHA",
    "GraphSMOTE",
    "IceBerg",
    "ImGAGN",
    "LabelPropagation",
    "LogitAdjustment",
    "Method",
    "Oversampling",
    "PCSoftmax",
    "ReNode",
    "Reweight",
    "TableModel",
    "Task",
    "UniGNN",
    "compare",
    "datasets",
    "evaluate",
    "explain",
    "fit_many",
    "from_frames",
    "from_matrix",
    "from_networkx",
    "inspect_graph",
    "load",
    "load_model",
    "methods",
    "metrics",
    "nn",
    "open_graph",
    "ops",
    "splits",
    "tables",
    "toy",
    "transforms",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"evengraph.{_ROOMS[name]}")
    if name in _HOMES:
        return getattr(import_module(f"evengraph.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'evengraph' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
