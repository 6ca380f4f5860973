"""Labelled rows of tables on disk, read in passes to grow trees on them and to validate these."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from evengraph.core.task import Task
from evengraph.disk.propagation import RowBlocks, Workspace, block_rows
from evengraph.disk.tables import DerivedTable, Table, scratch_folder
from evengraph.methods.bases.tree_engines import Engine, Grown, TreeParams
from evengraph.methods.bases.tree_streams import streamed_grower
from evengraph.ops.trees import separation_in_passes, tree_values, trees_from_tables

SUMS_SHARE = 8  # of the memory are in what rounds add to the validation rows


@dataclass(frozen=True, eq=False)
class RowStream:
    """Training and validation rows of a table.

    Args:
        task: The labelled nodes; its graph has labels alone.
        nodes: Which rows of the table these are, (n,).
        table: The rows.
        space: Where to write files, and how much memory to use.
        prepare: What is done to values that are read.
    """

    task: Task
    nodes: Tensor
    table: Table
    space: Workspace
    prepare: Callable[[Tensor], Tensor]

    def separation(self, columns: Tensor) -> Tensor:
        """The F statistic of some columns of the training rows, in two passes."""
        labels, rows = self.task.graph.y[self.task.train_nodes], self._rows("train", columns)

        def blocks() -> Iterator[tuple[Tensor, Tensor]]:
            for index, block in rows:
                yield block, labels[index]

        return separation_in_passes(blocks, self.task.num_classes)

    @contextmanager
    def grower(
        self, engine: Engine, columns: Tensor, weights: Tensor, params: TreeParams
    ) -> Iterator[Callable[[int], Grown]]:
        """A function that grows trees on some columns of the training rows; see `grower`."""
        rows, labels = self._rows("train", columns), self.task.graph.y[self.task.train_nodes]
        count, width = rows.shape
        needed = count * (width + 8 * self.task.num_classes)
        with scratch_folder(self.space.folder, needed) as folder:
            memory = self.space.memory
            yield streamed_grower(engine, rows, labels, weights, params, memory, folder)

    def validation_sums(self, columns: Tensor, tables: list[Any], sums: Tensor) -> Iterator[Tensor]:
        """Sums of trees for the validation rows, after each round of new trees.

        Rows are read once for as many rounds as fit in memory.

        Args:
            columns: Of the table, that the trees split.
            tables: Nodes of the new trees.
            sums: Those before the new trees, (V, outputs). The result is one tensor that changes
                from round to round.
        """
        rows, outputs, sums = self._rows("val", columns), sums.shape[1], sums.clone()
        rounds = max(self.space.memory // SUMS_SHARE // max(sums.nbytes, 1), 1)
        for first in range(0, len(tables), rounds * outputs):
            some = tables[first : first + rounds * outputs]
            trees = trees_from_tables(some, sums.device)
            values = sums.new_empty(len(sums), len(some))
            for index, block in rows:
                values[index] = tree_values(trees, block)
            for added in values.split(outputs, dim=1):
                sums += added
                yield sums

    def _rows(self, part: str, columns: Tensor) -> RowBlocks:
        """Rows of one mask, some columns."""
        table = DerivedTable(
            self.table,
            lambda rows, some: self.prepare(rows[:, columns][:, some]),
            len(columns),
            ("prepared", [columns]),
        )
        nodes = self.nodes[getattr(self.task, part)]
        return RowBlocks(table, nodes, block_rows(self.table.shape[1], self.space.memory))
