"""Methods that learn from rows of tables on disk, and those that predict them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from torch import Tensor

from evengraph.core.task import Task
from evengraph.disk.propagation import Workspace
from evengraph.disk.tables import Table
from evengraph.training.row_supply import RowSupply


@runtime_checkable
class DiskPredictor(Protocol):
    """What a method has that predicts a graph on disk."""

    def tables(self, x: Table, space: Workspace) -> dict[str, Table]:
        """The tables of a graph, to predict it."""
        ...

    def row_logits(self, rows: Mapping[str, Tensor]) -> Tensor:
        """Logits of rows, (n, C)."""
        ...


@runtime_checkable
class DiskModel(DiskPredictor, Protocol):
    """What a method has that learns from, and predicts, a graph on disk.

    Tables and rows go by the names of `row_inputs`.
    """

    def row_width(self, num_features: int) -> int:
        """Numbers in a row of all tables together, or a few more."""
        ...

    def fit_tables(self, x: Table, space: Workspace) -> dict[str, Table]:
        """The tables to learn from; what comes before training is fitted to them in passes."""
        ...

    def fit_rows(self, task: Task, rows: Mapping[str, Tensor]) -> None:
        """Train on rows of these tables that are in memory.

        Args:
            task: The nodes of these rows; its graph has labels, and neither features nor edges.
            rows: (n, width) each.
        """
        ...


@runtime_checkable
class RowLearner(DiskModel, Protocol):
    """A method that learns from more rows than fit in memory, and draws some in each epoch."""

    max_epochs: int

    @property
    def networks(self) -> int:
        """Networks that predict every validation node."""
        ...

    def drawn_per_epoch(self) -> tuple[int, int]:
        """Labelled rows, and others, that an epoch draws."""
        ...

    def stacked(self, rows: Mapping[str, Tensor]) -> Tensor:
        """Rows of the tables as the input of the network, (..., n, width)."""
        ...

    def fit_supply(self, supply: RowSupply) -> None:
        """Train on rows that are in memory some at a time."""
        ...


@runtime_checkable
class StreamedModel(DiskModel, Protocol):
    """A method that also learns from rows that are read in passes."""

    def streamed_rows(self, num_features: int, num_classes: int, memory: int) -> tuple[int, int]:
        """How many training and validation rows it can use within so many bytes."""
        ...

    def fit_streamed(
        self, task: Task, nodes: Tensor, tables: Mapping[str, Table], space: Workspace
    ) -> None:
        """Train on rows of these tables that need not fit in memory.

        Args:
            task: The nodes of these rows, all of them labelled; its graph has labels, and neither
                features nor edges.
            nodes: Which rows of the tables these are, (n,).
            tables: What `fit_tables` returned.
            space: Where to store what is needed to train, and how much memory to use.
        """
        ...
