"""Propagate tables of a graph on disk, in strips of columns, with the matrix in blocks of rows.

A block holds the same entries, in the same order and with the same rounding, as those rows of the
matrix in memory (`ops.sparse`), so that products are equal bit by bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evengraph.core.machine import format_size
from evengraph.core.rng import generator
from evengraph.disk.packed_graph import PackedGraph, Progress, fitting_rows, no_progress
from evengraph.disk.tables import (
    ArrayTable,
    ColumnTable,
    JoinedTable,
    Rows,
    Table,
    check_disk,
    joined_hash,
    product_table,
    row_slices,
    scaled_table,
    wait_until,
)
from evengraph.nn.members import HOPS, LENGTH, Components, Views
from evengraph.ops.features import EXTRA, LARGEST, SEED, eigenvectors
from evengraph.ops.sparse import csr, product
from evengraph.training.ranks import ALONE, Ranks

# `symmetric` and `row` have self-loops, as in `normalise`; `mean` is over neighbours alone
Kind = Literal["symmetric", "row", "mean", "mean transposed"]
ENTRY_BYTES = 48  # of an entry while its block is made
KEPT_BYTES = 8  # of an entry in a block: a column and a value
PASS = 2**22  # entries that are read at a time where only sums are wanted
BUFFERS = 3  # of the columns: the start, the current step and the next one
FLOAT = 4
FACTOR = 8  # bytes of a node's factor in the matrix
LINE = 16  # columns of a cache line: rows that begin within one are read more slowly
FEWER = 4  # times as few columns at a time are worth keeping the matrix
SHARE = 0.125  # of the memory for the block of rows that is being made
CPU = torch.device("cpu")
GPU_SHARE = 0.8  # of the free memory of a GPU
VERSION = "1"  # of the results; incremented when the same input gives other numbers
MOST_ROWS, LEAST_ROWS = 2**14, 2**8  # of a block
ROWS_SHARE = 64  # of the memory are in a block; reading and evaluating it takes several copies
ONE = torch.tensor(1.0)


class Operator:
    """left (A + loops) right, where left and right are diagonal, of a graph and a kind.

    Its blocks stay in memory from step to step where all of them fit.
    """

    def __init__(self, links: PackedGraph, kind: Kind) -> None:
        self.links, self.kind, self.num_nodes = links, kind, links.num_nodes
        self.has_loops = kind in ("symmetric", "row")
        self.stored: list[Tensor] = []

    def walk(self, start: Tensor, walk: Walk, memory: int) -> Iterator[Tensor]:
        """Columns after each step, where the start is; the last ones are the result."""
        room = int(SHARE * memory)
        every = list(self.blocks(room))
        left = memory - room - FACTOR * self.num_nodes - BUFFERS * FLOAT * start.numel()
        keep = KEPT_BYTES * self.num_entries <= left  # all blocks, beside the columns
        if keep and not self.stored:
            self.stored = [self.block(rows).to(start.device) for rows in every]
        current, other = start, torch.empty_like(start)
        for step in range(walk.steps):
            made = (self.block(rows).to(start.device) for rows in every)
            for rows, block in zip(every, self.stored if keep else made, strict=True):
                moved = product(block, current)
                if walk.teleport:
                    moved.mul_(1 - walk.teleport).add_(start[rows] * walk.teleport)
                other[rows] = moved
            # the start is needed to the end, if there is a share of it
            spare = torch.empty_like(start) if step == 0 and walk.teleport else current
            current, other = other, spare
            yield current

    @property
    def num_entries(self) -> int:
        return int(self.links.array("indptr")[-1]) + self.has_loops * self.num_nodes

    def blocks(self, memory: int) -> Iterator[slice]:
        """Slices of rows, each of which takes at most so many bytes; at least one row."""
        return fitting_rows(self.links.array("indptr"), max(memory // ENTRY_BYTES, 1), 1, 1)

    def block(self, rows: slice) -> Tensor:
        """Some rows as a sparse CSR tensor, (rows, N)."""
        pointers, columns, weights = self._entries(rows)
        own = np.arange(rows.start, rows.stop)
        if self.has_loops:  # each among the ascending columns of its row
            below = columns < np.repeat(own, np.diff(pointers))
            counts = np.concatenate([[0], np.cumsum(below)])
            positions = pointers[:-1] + counts[pointers[1:]] - counts[pointers[:-1]]
            columns = np.insert(columns, positions, own)
            weights = None if weights is None else np.insert(weights, positions, np.float32(1))
            pointers = pointers + np.arange(len(pointers))
        owners = np.repeat(own, np.diff(pointers))
        # in double precision, in the order of `normalise`
        values = self._factor[columns if self.kind == "mean transposed" else owners]
        values = values if weights is None else values * weights
        if self.kind == "symmetric":
            values = values * self._factor[columns]
        parts = pointers, columns, values.astype(np.float32)
        ends, others, entries = (torch.from_numpy(part) for part in parts)
        return csr(ends, others, entries, (len(own), self.num_nodes))

    def _entries(
        self, rows: slice
    ) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.float32] | None]:
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
        weights = self.links.array("edge_weight")
        starts = range(0, len(weights), PASS)
        total = sum(float(weights[i : i + PASS].sum(dtype=np.float64)) for i in starts)
        return total / len(weights) if total else 1.0

    @cached_property
    def _factor(self) -> NDArray[Any]:
        degree = np.diff(self.links.array("indptr")).astype(np.float64)
        if self.links.edge_weight is not None:  # sums of weights
            for rows in self.blocks(PASS * ENTRY_BYTES):
                pointers, _, weights = self._entries(rows)
                owners = np.repeat(np.arange(len(pointers) - 1), np.diff(pointers))
                degree[rows] = np.bincount(owners, weights, minlength=len(pointers) - 1)
        degree += self.has_loops
        return degree**-0.5 if self.kind == "symmetric" else 1 / np.where(degree, degree, 1)


class Walk(NamedTuple):
    """How a table is propagated: so many steps, each of which adds a share of the start again."""

    kind: Kind
    steps: int
    teleport: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind} {self.steps} {self.teleport!r}"


@dataclass(frozen=True, eq=False)
class Workspace:
    """A graph on disk, and where and with how much memory to work on it."""

    links: PackedGraph
    folder: Path  # results, each under a hash of what it was computed from; the same for all ranks
    memory: int
    device: torch.device = CPU  # blocks are sent there one at a time
    progress: Progress = no_progress
    ranks: Ranks = ALONE
    mark: str = ""  # of this copy of the graph
    checked: set[str] = field(default_factory=set)  # tables whose files this run has looked at

    def propagate(self, table: Table, walk: Walk, stage: str = "propagate") -> Table:
        """The propagated table; columns that are stored already are not computed again."""
        if not walk.steps:
            return table
        if not walk.teleport and walk.steps > 1:  # whose first steps may be stored
            table = self.propagate(table, walk._replace(steps=walk.steps - 1), stage)
            walk = walk._replace(steps=1)
        made_from = self.mark, self.links.edges_hash, table.content_hash
        key = joined_hash(VERSION, *made_from, str(walk))
        result, total = ColumnTable(self.folder / key[:24], table.shape, key), table.shape[1]
        strips = self.ranks.once(lambda: self._strips(result))
        if not strips:
            return self._complete(result)
        needed = FLOAT * result.shape[0] * sum(strip.stop - strip.start for strip in strips)
        check_disk(self.folder, needed, "propagated features")
        matrix, limit = Operator(self.links, walk.kind), self.limit  # free before columns load

        def compute(columns: slice) -> None:
            start, width = columns.start / total, (columns.stop - columns.start) / total
            values = self.load(table, columns)
            for step, after in enumerate(matrix.walk(values, walk, limit), start=1):
                self.progress(stage, start + width * step / walk.steps)
                values = after
            result.write(columns.start, values.cpu().numpy())

        self.ranks.each(compute, strips)
        if not self.ranks.is_alone:  # the last strip was another's
            self.progress(stage, 1.0)
        return self._complete(result)

    def _strips(self, result: ColumnTable) -> list[slice]:
        """The columns that are missing, in strips that fit in memory; some for every process."""
        if result.content_hash not in self.checked:
            result.check()
        self.checked.add(result.content_hash)
        if not (gaps := result.missing()):
            return []
        missing = sum(end - first for first, end in gaps)
        width = min(self._width(), ceil(missing / self.ranks.size))
        return [
            slice(start, min(start + width, end))
            for first, end in gaps
            for start in range(first, end, width)
        ]

    def _complete(self, result: ColumnTable) -> ColumnTable:
        """The table, once all columns are seen from here: other machines may have written them."""
        lacks = f"{result.folder} lacks columns that another machine has computed: it"
        wait_until(lambda: not result.missing(), lacks)
        return result

    def load(self, table: Table, columns: slice) -> Tensor:
        values = torch.empty(table.shape[0], columns.stop - columns.start, device=self.device)
        for rows in row_slices(table.shape[0]):
            values[rows] = table.read(rows, columns)
        return values

    def _width(self) -> int:
        """How many columns fit in memory at a time."""
        nodes = self.links.num_nodes
        column, others = BUFFERS * FLOAT * nodes, FACTOR * nodes
        room = self.limit - others - int(SHARE * self.limit)
        width = room // column
        if width < 1:
            least = (column + others) / (1 - SHARE)
            raise ValueError(
                f"memory must be at least {format_size(least)} for {nodes:,} nodes, "
                f"got {format_size(self.limit)}."
            )
        entries = int(self.links.array("indptr")[-1]) + nodes
        fewer = (room - KEPT_BYTES * entries) // column
        width = fewer if FEWER * fewer >= width else width
        return int(width if width < LINE else width // LINE * LINE)

    @property
    def limit(self) -> int:
        """Bytes to use, on a GPU no more than most of what is free there."""
        if self.device.type != "cuda":
            return self.memory
        free, _ = torch.cuda.mem_get_info(self.device)
        return min(self.memory, int(GPU_SHARE * free))


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """Some rows of a table, in an order of their own, in blocks of `size`."""

    table: Table
    nodes: Tensor
    size: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.nodes), self.table.shape[1]

    def __iter__(self) -> Iterator[tuple[slice, Tensor]]:
        for rows in row_slices(len(self.nodes), self.size):
            yield rows, self.read(rows)

    def read(self, rows: Rows) -> Tensor:
        return self.table.read(self.nodes[rows])

    def sample(self, count: int) -> Tensor:
        """All rows, or so many at equal distances."""
        total = len(self.nodes)
        rows = torch.arange(min(count, total)) * total // max(min(count, total), 1)
        parts = [self.read(some) for some in rows.split(self.size)]
        return torch.cat(parts) if parts else self.read(rows)


def block_rows(width: int, memory: int) -> int:
    """How many rows of so many columns are read at a time."""
    rows = memory // (ROWS_SHARE * FLOAT * max(width, 1))
    return min(max(rows, LEAST_ROWS), MOST_ROWS)


def degree_table(links: PackedGraph) -> ArrayTable:
    """The logarithm of one plus the number of neighbours, one column."""
    counts = torch.from_numpy(np.diff(links.array("indptr"))).float()
    column = counts.log1p().numpy()[:, None]
    return ArrayTable(lambda: column, joined_hash("log degree", links.edges_hash))


def component_table(
    part: Components, x: Table, space: Workspace, walk: Walk, *, fit: bool, stage: str
) -> Table:
    """The components of propagated features; `fit` finds them in these features first."""
    if fit:
        part.basis, rows = _principal_components(x, space, walk, part.width, stage)
        part.centre = space.ranks.once(lambda: column_means(rows))
        centred = scaled_table(rows, part.centre, ONE)
        part.scale = space.ranks.once(lambda: scale_of(centred))
    else:
        narrow = product_table(x, part.basis) if part.width < x.shape[1] else x
        rows = space.propagate(narrow, walk, stage)
    return scaled_table(rows, part.centre, part.scale)


def _principal_components(
    x: Table, space: Workspace, walk: Walk, count: int, stage: str
) -> tuple[Tensor, Table]:
    num_features = x.shape[1]
    if num_features <= count:
        return torch.eye(num_features), space.propagate(x, walk, stage)
    width = min(count + EXTRA, num_features)
    sketch = torch.randn(num_features, width, generator=generator(SEED))
    once = space.ranks.once
    rows = space.propagate(product_table(x, sketch), walk, f"{stage}: sketch")
    transposed = walk._replace(kind="mean transposed") if walk.kind == "mean" else walk
    back = space.propagate(_squarable(rows, space), transposed, f"{stage}: transposed")
    basis = once(lambda: torch.linalg.qr(cross_product(x, back)).Q)
    rows = space.propagate(product_table(x, basis), walk, stage)
    centred = _squarable(rows, space)
    vectors = once(lambda: eigenvectors(cross_product(centred, centred)))[:, -count:].flip(1)
    return once(lambda: basis @ vectors), product_table(rows, vectors)


def column_means(table: Table) -> Tensor:
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
    slices = row_slices(table.shape[0])
    largest = space.ranks.once(lambda: max(centred.read(rows).abs().max() for rows in slices))
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


def view_tables(views: Views, x: Table, space: Workspace, *, fit: bool = False) -> dict[str, Table]:
    """The tables of `Views.forward`, by name of the view; `fit` finds components first."""
    tables: dict[str, Table] = {}
    if "structural" in views.names:
        walk = Walk("symmetric", *views.diffusion)
        tables["structural"] = component_table(
            views.structural, x, space, walk, fit=fit, stage="structural view"
        )
    if "ego" in views.names:
        if len(views.ego) > HOPS + 1:
            raise ValueError("Relations are not available for graphs on disk.")
        joined = JoinedTable(
            [
                component_table(part, x, space, Walk("mean", hops), fit=fit, stage=stage)
                for hops, part in enumerate(cast(Iterable[Components], views.ego))
                for stage in [f"ego view, hop {hops}"]
            ]
        )
        scale = torch.tensor(1 / math.sqrt(len(views.ego)))
        tables["ego"] = scaled_table(joined, torch.zeros(joined.shape[1]), scale)
    return {name: tables[name] for name in views.names}
