"""Normalised adjacency matrices of a graph on disk, some rows at a time.

A block holds the same entries, in the same order and with the same rounding, as those rows of the
matrix in memory (`ops.propagate`), so that products are equal bit by bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evengraph.ops.sparse import csr

Kind = Literal["symmetric", "row", "mean", "mean transposed"]
"""`symmetric` and `row` have self-loops, as in `normalise`; `mean` is over neighbours alone."""

ENTRY_BYTES = 48  # of an entry while its block is made
KEPT_BYTES = 8  # of an entry in a block: a column and a value
PASS = 2**22  # entries that are read at a time where only sums are wanted


class Links(Protocol):
    """A graph in CSR form, both directions of every edge, columns ascending in each row."""

    @property
    def num_nodes(self) -> int:
        """N."""
        ...

    @property
    def content_hash(self) -> str:
        """A hash of the content."""
        ...

    def array(self, name: str) -> NDArray[Any]:
        """`indptr`, `indices` or `edge_weight`, as a memory map that is opened by every call."""
        ...

    @property
    def edge_weight(self) -> NDArray[Any] | None:
        """Weights of the edges; None if there are none."""
        ...


@dataclass(frozen=True, eq=False)
class _Unweighted:
    """A graph without the weights of its edges."""

    links: Links
    edge_weight = None

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.links.num_nodes

    @property
    def content_hash(self) -> str:
        """A hash of the content."""
        return f"{self.links.content_hash} unweighted"

    def array(self, name: str) -> NDArray[Any]:
        """`indptr` or `indices`."""
        return self.links.array(name)


def unweighted(links: Links) -> Links:
    """The same graph, where all edges count the same."""
    return links if links.edge_weight is None else _Unweighted(links)


@dataclass(frozen=True, eq=False)
class Operator:
    """left (A + loops) right, where left and right are diagonal.

    Args:
        links: The graph.
        kind: Which normalisation.
    """

    links: Links
    kind: Kind

    @property
    def num_nodes(self) -> int:
        """Rows and columns."""
        return self.links.num_nodes

    @property
    def num_entries(self) -> int:
        """Entries of all rows, self-loops included."""
        return int(self.links.array("indptr")[-1]) + self.has_loops * self.num_nodes

    @property
    def has_loops(self) -> bool:
        """Whether every node is its own neighbour, too."""
        return self.kind in ("symmetric", "row")

    def blocks(self, memory: int) -> Iterator[slice]:
        """Slices of rows, each of which takes at most so many bytes; at least one row."""
        pointers = self.links.array("indptr")
        room, start = max(memory // ENTRY_BYTES, 1), 0
        while start < self.num_nodes:
            stop = _block_end(pointers, start, room)
            yield slice(start, stop)
            start = stop

    def block(self, rows: slice) -> Tensor:
        """Some rows as a sparse CSR tensor, (rows, N)."""
        pointers, columns, weights = self._entries(rows)
        own = np.arange(rows.start, rows.stop)
        if self.has_loops:
            positions = _loop_positions(pointers, columns, own)
            columns = np.insert(columns, positions, own)
            weights = None if weights is None else np.insert(weights, positions, np.float32(1))
            pointers = pointers + np.arange(len(pointers))
        owners = np.repeat(own, np.diff(pointers))
        values = self._values(owners, columns, weights)
        ends, others, entries = (torch.from_numpy(part) for part in (pointers, columns, values))
        return csr(ends, others, entries, (len(own), self.num_nodes))

    def _values(
        self, rows: NDArray[Any], columns: NDArray[Any], weights: NDArray[Any] | None
    ) -> NDArray[np.float32]:
        """One value per entry, computed in double precision in the order of `normalise`."""
        factor = self._factor
        if self.kind == "mean transposed":
            values = factor[columns] if weights is None else factor[columns] * weights
        else:
            values = factor[rows] if weights is None else factor[rows] * weights
            if self.kind == "symmetric":
                values = values * factor[columns]
        result: NDArray[np.float32] = values.astype(np.float32)
        return result

    def _entries(
        self, rows: slice
    ) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.float32] | None]:
        """Row pointers from 0 on, columns and weights of some rows, copied from the files."""
        pointers = np.array(self.links.array("indptr")[rows.start : rows.stop + 1], np.int64)
        some = slice(int(pointers[0]), int(pointers[-1]))
        columns = np.array(self.links.array("indices")[some])
        weights: NDArray[np.float32] | None = None
        if self.links.edge_weight is not None:
            raw = np.asarray(self.links.array("edge_weight")[some], np.float64)
            weights = (raw / self._mean_weight).astype(np.float32)
        return pointers - pointers[0], columns, weights

    @cached_property
    def _mean_weight(self) -> float:
        """The mean of all weights, which the weights are divided by."""
        weights = self.links.array("edge_weight")
        starts = range(0, len(weights), PASS)
        total = sum(float(weights[i : i + PASS].sum(dtype=np.float64)) for i in starts)
        return total / len(weights) if total else 1.0

    @cached_property
    def _factor(self) -> NDArray[np.float64]:
        """What the entries of a row, or of a row and a column, are multiplied with, (N,)."""
        degree = self._degrees + (1.0 if self.has_loops else 0.0)
        if self.kind == "symmetric":
            root: NDArray[np.float64] = degree**-0.5
            return root
        return 1 / np.where(degree, degree, 1)

    @cached_property
    def _degrees(self) -> NDArray[np.float64]:
        """Sums of the weights of each node's edges, without self-loops, (N,)."""
        if self.links.edge_weight is None:
            return np.diff(self.links.array("indptr")).astype(np.float64)
        degrees = np.zeros(self.num_nodes)
        for rows in self.blocks(PASS * ENTRY_BYTES):
            pointers, _, weights = self._entries(rows)
            assert weights is not None
            owners = np.repeat(np.arange(len(pointers) - 1), np.diff(pointers))
            degrees[rows] = np.bincount(owners, weights, minlength=len(pointers) - 1)
        return degrees


def log_degrees(links: Links) -> NDArray[np.float32]:
    """The logarithm of one plus the number of neighbours of each node, (N,)."""
    counts = torch.from_numpy(np.diff(links.array("indptr"))).float()
    result: NDArray[np.float32] = counts.log1p().numpy()
    return result


def _block_end(pointers: NDArray[Any], start: int, room: int) -> int:
    """The end of the longest block from a row on that has at most `room` entries, loops included.

    Bisection: the number of entries, and of rows, grows with the end.
    """
    low, high, first = start + 1, len(pointers) - 1, int(pointers[start])
    while low < high:
        middle = (low + high + 1) // 2
        if int(pointers[middle]) - first + middle - start <= room:
            low = middle
        else:
            high = middle - 1
    return low


def _loop_positions(
    pointers: NDArray[np.int64], columns: NDArray[Any], own: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Where the column of each row's own node belongs among its ascending columns."""
    below = columns < np.repeat(own, np.diff(pointers))
    counts = np.concatenate([[0], np.cumsum(below)])
    positions: NDArray[np.int64] = pointers[:-1] + counts[pointers[1:]] - counts[pointers[:-1]]
    return positions
