"""The views of a graph as tables on disk, and their fit in passes."""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor

from evengraph.core.sizes import format_size
from evengraph.nn.views import HOPS, Components, Views, averaged_over_similar
from evengraph.outofcore.components import component_table, scale_of
from evengraph.outofcore.propagation import Walk, Workspace
from evengraph.outofcore.tables import JoinedTable, Table, scaled_table

SIMILAR_BYTES = 3_000  # per node, while similar nodes are searched for


def view_tables(views: Views, x: Table, space: Workspace, *, fit: bool = False) -> dict[str, Table]:
    """The tables of `Views.forward`, by name of the view; `fit` finds components and scales first.

    The semantic view compares nodes in memory: leave it out of `views` where N is large.
    """
    tables: dict[str, Table] = {}
    if {"structural", "semantic"} & set(views.names):
        walk = Walk("symmetric", *views.diffusion)
        tables["structural"] = component_table(
            views.structural, x, space, walk, fit=fit, stage="structural view"
        )
    if "semantic" in views.names:
        tables["semantic"] = _semantic(views, tables["structural"], space, fit)
    if "ego" in views.names:
        tables["ego"] = _ego(views, x, space, fit)
    return {name: tables[name] for name in views.names}


def _semantic(views: Views, structural: Table, space: Workspace, fit: bool) -> Table:
    needed = SIMILAR_BYTES * structural.shape[0]
    if needed > space.memory:
        raise ValueError(
            f"The semantic view of {structural.shape[0]:,} nodes takes about "
            f"{format_size(needed)} of memory, got {format_size(space.memory)}; use a model "
            "without it (views=structural,ego)."
        )

    def average(rows: Tensor) -> Tensor:
        space.progress("semantic view", 0.0)
        rows = averaged_over_similar(rows, views.neighbours)
        space.progress("semantic view", 1.0)
        return rows

    rows = space.store(f"semantic {views.neighbours}", structural, average)
    if fit:
        views.semantic_scale = space.ranks.once(lambda: scale_of(rows))
    return scaled_table(rows, torch.zeros(rows.shape[1]), views.semantic_scale)


def _ego(views: Views, x: Table, space: Workspace, fit: bool) -> Table:
    if len(views.ego) > HOPS + 1:
        raise ValueError("Relations are not available for graphs on disk.")
    parts = [
        component_table(
            cast(Components, part),
            x,
            space,
            Walk("mean", hops),
            fit=fit,
            stage=f"ego view, hop {hops}",
        )
        for hops, part in enumerate(views.ego)
    ]
    joined = JoinedTable(parts)
    width = joined.shape[1]
    return scaled_table(joined, torch.zeros(width), torch.tensor(1 / math.sqrt(len(parts))))
