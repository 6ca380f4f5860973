"""Settings that suit a graph nobody has tuned for: quick to try, and no worse than the paper's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch_geometric.data import Data

from evengraph.methods import METHODS, Method

PATIENCE = 100
"""Epochs without a better validation score; the paper waits ten times as long."""
READY: Mapping[str, Mapping[str, Any]] = {
    "reweight": {"balance": True},
    "oversampling": {"sound": True},  # else the graph that is predicted holds no copies,
    "smote": {"sound": True},  # and what was tested is not what is used later
}
"""Fields that serve any graph better than the paper's do."""
DENSE = 25
"""Ways of two steps for each edge, from which on Uni-GNN looks at direct neighbours alone."""


def suited(name: str, graph: Data) -> dict[str, Any]:
    """Fields of a method for a graph.

    Where neighbours have many neighbours, paths of two steps lead to most of the graph: they cost
    much and tell little apart.
    """
    fields = {"patience": PATIENCE, **READY.get(name, {})}
    if name == "unignn" and ways_per_edge(graph) > DENSE:
        fields["alpha"] = 1
    return fields


def ready(name: str, graph: Data, **fields: Any) -> Method:
    """A method by name with settings that suit a graph, but for those that are given."""
    return METHODS[name](**{**suited(name, graph), **fields})


def ways_per_edge(graph: Data) -> float:
    """How many ways of two steps there are for each edge: the mean degree at the end of one."""
    ends = graph.edge_index[1]
    if not ends.numel():
        return 0.0
    degrees = torch.bincount(ends, minlength=graph.num_nodes)
    return float(degrees[ends].double().mean())
