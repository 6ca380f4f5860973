"""Propagate tables over a graph on disk, within a limit of memory.

Columns do not depend on one another. So as many as fit are loaded for all nodes and taken through
all steps, while the matrix passes by in blocks of rows; then the next ones.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from evengraph.core.ranks import ALONE, Ranks
from evengraph.core.sizes import format_size
from evengraph.ops.sparse import product
from evengraph.outofcore.operators import KEPT_BYTES, Kind, Links, Operator
from evengraph.outofcore.tables import ColumnTable, Table, joined_hash, row_slices

BUFFERS = 3  # of the columns: the start, the current step and the next one
FLOAT = 4
FACTOR = 8  # bytes of a node's factor in the matrix
LINE = 16  # columns of a cache line: rows that begin within one are read more slowly
FEWER = 4  # times as few columns at a time are worth keeping the matrix
SHARE = 0.125  # of the memory for the block of rows that is being made
CPU = torch.device("cpu")
GPU_SHARE = 0.8  # of the free memory of a GPU
VISIBLE = 90.0  # seconds until a file is seen by other machines; NFS looks again after 60
VERSION = "1"  # of the results; incremented when the same input gives other numbers

Progress = Callable[[str, float], None]
"""Called with the name of a stage and the share of it that is done."""


class Walk(NamedTuple):
    """How a table is propagated: so many steps, each of which adds a share of the start again."""

    kind: Kind
    steps: int
    teleport: float = 0.0

    @property
    def transposed(self) -> Walk:
        """The walk of the transposed matrix."""
        kinds: dict[Kind, Kind] = {"mean": "mean transposed", "mean transposed": "mean"}
        if self.kind == "row":
            raise ValueError("The transpose of row normalisation is not available in blocks.")
        return self._replace(kind=kinds.get(self.kind, self.kind))

    def __str__(self) -> str:
        return f"{self.kind} {self.steps} {self.teleport!r}"


def no_progress(stage: str, share: float) -> None:
    """Ignore progress."""


class Tasks(Protocol):
    """Workers elsewhere that compute strips of columns, such as `RayTasks`."""

    @property
    def workers(self) -> int:
        """How many there are."""
        ...

    def each(
        self,
        compute: Callable[[slice], None],
        strips: Sequence[slice],
        done: Callable[[float], None],
    ) -> None:
        """Compute every strip; `done` is called with the share that is finished."""
        ...


@dataclass(frozen=True, eq=False)
class Workspace:
    """A graph on disk, and where and with how much memory to work on it.

    Args:
        links: The graph.
        folder: Where results are stored, each under a hash of what it was computed from. What is
            there is not computed again.
        memory: Bytes to use.
        device: Where products are computed; blocks are sent there one at a time.
        progress: Called as a stage goes on.
        ranks: The processes that share the work; the folder must be the same for all of them.
        tasks: Workers that propagate instead of this process; each takes as much memory.
    """

    links: Links
    folder: Path
    memory: int
    device: torch.device = CPU
    progress: Progress = no_progress
    ranks: Ranks = ALONE
    tasks: Tasks | None = None

    def propagate(self, table: Table, walk: Walk, stage: str = "propagate") -> Table:
        """The propagated table; columns that are stored already are not computed again."""
        if not walk.steps:
            return table
        if not walk.teleport and walk.steps > 1:  # whose first steps may be stored
            table = self.propagate(table, walk._replace(steps=walk.steps - 1), stage)
            walk = walk._replace(steps=1)
        key = joined_hash(VERSION, self.links.content_hash, table.content_hash, str(walk))
        result = ColumnTable(self.folder / key[:24], table.shape, key)
        return self.fill(_Strips(self, result, table, stage, walk))

    def fill(self, compute: Strips, beside: int = 0) -> Table:
        """A table that is computed in strips of columns, unless it is stored already.

        Args:
            compute: Computes a strip and writes it to its `result`.
            beside: Further columns of all nodes that it has in memory.
        """
        result = compute.result
        strips = self.ranks.once(lambda: self._strips(result, beside))
        if strips:
            self._check_disk(result, sum(strip.stop - strip.start for strip in strips))
            self._fill(compute, strips)
        return self.complete(result)

    def store(self, name: str, table: Table, compute: Callable[[Tensor], Tensor]) -> Table:
        """A table of the same shape that is computed in memory, unless it is stored already.

        Args:
            name: What is computed.
            table: What it is computed from.
            compute: Takes all rows and returns as many.
        """
        key = joined_hash(VERSION, name, table.content_hash)
        result = ColumnTable(self.folder / key[:24], table.shape, key)

        def write() -> None:
            if result.missing():
                self._check_disk(table, table.shape[1])
                result.write(0, compute(self.load(table, slice(0, table.shape[1]))).cpu().numpy())

        self.ranks.once(write)
        return self.complete(result)

    def _strips(self, result: ColumnTable, beside: int) -> list[slice]:
        """The columns that are missing, in strips that fit in memory; some for every worker."""
        gaps = result.missing()
        if not gaps:
            return []
        missing = sum(end - first for first, end in gaps)
        workers = self.ranks.size if self.tasks is None else self.tasks.workers
        width = min(self._width(beside), ceil(missing / workers))
        return [
            slice(start, min(start + width, end))
            for first, end in gaps
            for start in range(first, end, width)
        ]

    def _fill(self, compute: Strips, strips: Sequence[slice]) -> None:
        """Compute strips of columns, here or elsewhere."""
        if self.tasks is None:
            self.ranks.each(compute, strips)
            if not self.ranks.is_alone:  # the last strip was another's
                self.progress(compute.stage, 1.0)
            return
        quiet = replace(compute, space=replace(self, progress=no_progress, tasks=None))
        self.tasks.each(quiet, strips, lambda share: self.progress(compute.stage, share))

    def complete(self, result: ColumnTable) -> ColumnTable:
        """The table, once all columns are seen from here: other machines may have written them."""
        started = monotonic()
        while result.missing():
            if monotonic() - started > VISIBLE:
                raise OSError(
                    f"{result.folder} lacks columns that another machine has computed: it must be "
                    "on a disk that all machines share."
                )
            sleep(0.05)
        return result

    def load(self, table: Table, columns: slice) -> Tensor:
        """Some columns of all rows, on the device."""
        values = torch.empty(table.shape[0], columns.stop - columns.start, device=self.device)
        for rows in row_slices(table.shape[0]):
            values[rows] = table.read(rows, columns)
        return values

    def _width(self, beside: int = 0) -> int:
        """How many columns fit in memory at a time.

        Fewer, but not far fewer, are better if all of the matrix then stays beside them: making
        its blocks anew in every step takes longer than several products.
        """
        nodes = self.links.num_nodes
        column, others = BUFFERS * FLOAT * nodes, (FACTOR + FLOAT * beside) * nodes
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

    def _check_disk(self, table: Table, columns: int) -> None:
        """Raise OSError if the result does not fit on the disk."""
        self.folder.mkdir(parents=True, exist_ok=True)
        free, needed = shutil.disk_usage(self.folder).free, FLOAT * table.shape[0] * columns
        if needed > free:
            raise OSError(
                f"{self.folder} needs {format_size(needed)} for propagated features, and "
                f"{format_size(free)} are free."
            )


@dataclass(frozen=True, eq=False)
class Strips(ABC):
    """Computes strips of columns of a table; a worker elsewhere gets a copy.

    Args:
        space: The graph, and how to work on it.
        result: Where to write.
        table: What it is computed from.
    """

    space: Workspace
    result: ColumnTable
    table: Table
    stage: str

    @abstractmethod
    def __call__(self, columns: slice) -> None:
        """Compute some columns and write them."""


@dataclass(frozen=True, eq=False)
class _Strips(Strips):
    """Computes strips of columns of a propagated table."""

    walk: Walk

    @cached_property
    def _matrix(self) -> _Blocks:
        space = self.space
        return _Blocks(Operator(space.links, self.walk.kind), space.limit, space.device)

    def __call__(self, columns: slice) -> None:
        """Propagate some columns and write them."""
        matrix = self._matrix  # first: it plans with the memory that is free before columns load
        total = self.table.shape[1]
        start, width = columns.start / total, (columns.stop - columns.start) / total
        values = self.space.load(self.table, columns)
        for step, after in enumerate(matrix.walk(values, self.walk), start=1):
            self.space.progress(self.stage, start + width * step / self.walk.steps)
            values = after
        self.result.write(columns.start, values.cpu().numpy())


class _Blocks:
    """The blocks of a matrix; they stay in memory from step to step where all of them fit."""

    def __init__(self, operator: Operator, memory: int, device: torch.device) -> None:
        self.operator, self.device = operator, device
        self.rows = list(operator.blocks(int(SHARE * memory)))
        self.memory = memory

    def walk(self, start: Tensor, walk: Walk) -> Iterator[Tensor]:
        """The columns after each step; the last ones are the result."""
        current, other = start, torch.empty_like(start)
        keep = self._all_fit(start)
        for step in range(walk.steps):
            for rows, block in self._each(keep):
                moved = product(block, current)
                if walk.teleport:
                    moved.mul_(1 - walk.teleport).add_(start[rows] * walk.teleport)
                other[rows] = moved
            # the start is needed to the end, if there is a share of it
            spare = torch.empty_like(start) if step == 0 and walk.teleport else current
            current, other = other, spare
            yield current

    def _each(self, keep: bool) -> Iterator[tuple[slice, Tensor]]:
        if keep:
            yield from zip(self.rows, self._stored, strict=True)
            return
        for rows in self.rows:
            yield rows, self.operator.block(rows).to(self.device)

    @cached_property
    def _stored(self) -> list[Tensor]:
        return [self.operator.block(rows).to(self.device) for rows in self.rows]

    def _all_fit(self, columns: Tensor) -> bool:
        """Whether all blocks fit beside the columns."""
        entries = self.operator.num_entries
        left = self.memory - int(SHARE * self.memory) - FACTOR * self.operator.num_nodes
        return KEPT_BYTES * entries <= left - BUFFERS * FLOAT * columns.numel()
