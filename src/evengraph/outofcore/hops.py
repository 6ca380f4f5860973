"""Features, log degrees and means over neighbours as tables on disk."""

from __future__ import annotations

import torch

from evengraph.ops.scaling import Scaling, sample_step
from evengraph.outofcore.operators import Links, log_degrees
from evengraph.outofcore.propagation import Walk, Workspace
from evengraph.outofcore.tables import (
    ArrayTable,
    DerivedTable,
    JoinedTable,
    Table,
    joined_hash,
    row_slices,
)


def degree_table(links: Links) -> ArrayTable:
    """The logarithm of one plus the number of neighbours, one column."""
    column = log_degrees(links)[:, None]
    return ArrayTable(lambda: column, joined_hash("log degree", links.content_hash))


def own_columns(x: Table, links: Links, *, degree: bool) -> Table:
    """The features of a node, with its log degree if asked for."""
    return JoinedTable([x, degree_table(links)]) if degree else x


def mean_tables(own: Table, space: Workspace, hops: int) -> list[Table]:
    """The means over neighbours, over their means and so on."""
    walks = (Walk("mean", hop) for hop in range(1, hops + 1))
    return [space.propagate(own, walk, f"means, hop {walk.steps}") for walk in walks]


def fit_scaling(table: Table) -> Scaling:
    """Measure the columns of a table in one pass."""
    sample = torch.arange(0, table.shape[0], sample_step(*table.shape))
    return Scaling.measure(table.read(sample), map(table.read, row_slices(table.shape[0])))


def rescaled_table(table: Table, scaling: Scaling) -> DerivedTable:
    """A table with scaled columns."""
    content = "rescaled", [part.float() for part in scaling]
    return DerivedTable(table, lambda rows, some: scaling(rows)[:, some], table.shape[1], content)
