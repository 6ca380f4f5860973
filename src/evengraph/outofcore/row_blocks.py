"""Rows of some nodes of a table, read a block at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from evengraph.outofcore.tables import Rows, Table, row_slices

FLOAT = 4
LARGEST = 2**14  # rows of a block
SMALLEST = 2**8
SHARE = 64  # of the memory are in a block; reading and evaluating it takes several copies


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """Some rows of a table, in an order of their own.

    Args:
        table: The table.
        nodes: Which of its rows, (n,).
        size: Rows of a block.
    """

    table: Table
    nodes: Tensor
    size: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.nodes), self.table.shape[1]

    def __iter__(self) -> Iterator[tuple[slice, Tensor]]:
        """Where each block is among the rows, and the block."""
        for rows in row_slices(len(self.nodes), self.size):
            yield rows, self.read(rows)

    def read(self, rows: Rows) -> Tensor:
        """Some of the rows, in memory."""
        return self.table.read(self.nodes[rows])

    def sample(self, count: int) -> Tensor:
        """All rows, or so many at equal distances."""
        total = len(self.nodes)
        rows = torch.arange(min(count, total)) * total // max(min(count, total), 1)
        parts = [self.read(some) for some in rows.split(self.size)]
        return torch.cat(parts) if parts else self.read(rows)


def block_rows(width: int, memory: int) -> int:
    """How many rows of so many columns are read at a time."""
    rows = memory // (SHARE * FLOAT * max(width, 1))
    return min(max(rows, SMALLEST), LARGEST)
