"""Principal components of propagated features in passes over tables on disk.

The steps are those of `ops.features`. A table of one block gives the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor

from evengraph.core.machine import format_size
from evengraph.core.rng import generator
from evengraph.disk.propagation import Walk, Workspace
from evengraph.disk.tables import JoinedTable, Table, product_table, row_slices, scaled_table
from evengraph.nn.members import HOPS, LENGTH, Components, Views, averaged_over_similar
from evengraph.ops.features import EXTRA, LARGEST, SEED, eigenvectors

ONE = torch.tensor(1.0)


def component_table(
    part: Components, x: Table, space: Workspace, walk: Walk, *, fit: bool, stage: str
) -> Table:
    """The components of propagated features; `fit` finds them in these features first."""
    basis, rows = part.basis, x
    if fit:
        basis, rows = _principal_components(x, space, walk, part.width, stage)
        part.basis, part.centre = basis, space.ranks.once(lambda: column_means(rows))
        centred = scaled_table(rows, part.centre, ONE)
        part.scale = space.ranks.once(lambda: scale_of(centred))
    elif part.width < x.shape[1]:
        rows = space.propagate(product_table(x, basis), walk, stage)
    else:
        rows = space.propagate(x, walk, stage)
    return scaled_table(rows, part.centre, part.scale)


def _principal_components(
    x: Table, space: Workspace, walk: Walk, count: int, stage: str
) -> tuple[Tensor, Table]:
    """See `ops.features.principal_components`."""
    num_features = x.shape[1]
    if num_features <= count:
        return torch.eye(num_features), space.propagate(x, walk, stage)
    width = min(count + EXTRA, num_features)
    sketch = torch.randn(num_features, width, generator=generator(SEED))
    once = space.ranks.once
    rows = space.propagate(product_table(x, sketch), walk, f"{stage}: sketch")
    start = _squarable(rows, space)
    back = space.propagate(start, walk.transposed, f"{stage}: transposed")
    basis = once(lambda: torch.linalg.qr(cross_product(x, back)).Q)
    rows = space.propagate(product_table(x, basis), walk, stage)
    centred = _squarable(rows, space)
    vectors = once(lambda: eigenvectors(cross_product(centred, centred)))[:, -count:].flip(1)
    return once(lambda: basis @ vectors), product_table(rows, vectors)


def column_means(table: Table) -> Tensor:
    """The mean of each column, (F,)."""
    return _weighted_mean(table, lambda rows: rows.mean(0)).float()


def scale_of(table: Table) -> Tensor:
    """The factor that makes the root mean square length of rows `LENGTH`; 1 if all are zero."""
    square = _weighted_mean(table, lambda rows: rows.square().sum(1).mean())
    if torch.isinf(square):  # squares of huge features leave single precision
        square = _weighted_mean(table, lambda rows: rows.double().square().sum(1).mean())
    length = square.float().sqrt() if torch.isfinite(square.float()) else square.sqrt().float()
    return torch.where(length > 0, LENGTH / length, 1.0)


def cross_product(left: Table, right: Table) -> Tensor:
    """The transpose of a table times another one, (F, d)."""
    total = torch.zeros(left.shape[1], right.shape[1])
    for rows in row_slices(left.shape[0]):
        ours = left.read(rows)
        total += ours.T @ (ours if right is left else right.read(rows))
    return total


def _squarable(table: Table, space: Workspace) -> Table:
    """Centred rows whose products stay finite; directions do not depend on their scale."""
    means = space.ranks.once(lambda: column_means(table))
    centred = scaled_table(table, means, ONE)

    def furthest() -> Tensor:
        slices = row_slices(table.shape[0])
        return torch.stack([centred.read(rows).abs().max() for rows in slices]).max()

    largest = space.ranks.once(furthest)
    if largest <= LARGEST:
        return centred
    return scaled_table(centred, torch.zeros(table.shape[1]), 1 / largest)


def _weighted_mean(table: Table, mean: Callable[[Tensor], Tensor]) -> Tensor:
    """The mean over all rows of what a function gives as the mean over some, in float64."""
    parts = [
        mean(table.read(rows)).double() * ((rows.stop - rows.start) / table.shape[0])
        for rows in row_slices(table.shape[0])
    ]
    total: Tensor = torch.stack(parts).sum(0)
    return total


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
