"""Tables with one row per node that need not fit in memory."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evengraph.core.machine import format_size, is_abandoned, process_mark
from evengraph.disk.packed_graph import PackedGraph

ROWS = 2**16  # rows that are read at a time
ALL = slice(None)
UNFINISHED = ".columns-"  # then the mark of the process that writes the file

Rows = slice | Tensor
"""Rows to read: a slice, or their indices."""


class Table(Protocol):
    """A table of numbers, read in parts.

    Shapes:
        read: float32, (rows, columns)
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        ...

    @property
    def content_hash(self) -> str:
        """A hash of the content, or of what it is computed from."""
        ...

    def read(self, rows: Rows, columns: slice = ALL) -> Tensor:
        """Some rows of some columns, in memory."""
        ...


class ArrayTable:
    """A table in one array, of half or single precision.

    Args:
        load: Returns the array. It is called by every read, so that pages of a memory map do not
            stay in memory.
        content_hash: A hash of the content.
    """

    def __init__(self, load: Callable[[], NDArray[Any]], content_hash: str) -> None:
        self._load, self.content_hash = load, content_hash
        rows, columns = load().shape
        self.shape: tuple[int, int] = rows, columns

    @classmethod
    def of(cls, x: Tensor | NDArray[Any]) -> ArrayTable:
        """A table in memory."""
        array = np.ascontiguousarray(x)
        return cls(lambda: array, hashlib.sha256(array.tobytes()).hexdigest())

    def read(self, rows: Rows, columns: slice = ALL) -> Tensor:
        """See `Table`."""
        return torch.from_numpy(_part(self._load(), rows, columns).astype(np.float32))


class ColumnTable:
    """A table in files of some columns each, named by their first column and their end.

    A file is written completely or not at all, so that finished ones are the journal: after a kill
    only the missing columns are computed.

    Args:
        folder: Where the files are.
        shape: Rows and columns of the complete table.
        content_hash: A hash of what it is computed from.
    """

    def __init__(self, folder: Path, shape: tuple[int, int], content_hash: str) -> None:
        self.folder, self.shape, self.content_hash = folder, shape, content_hash

    def parts(self) -> list[tuple[int, int, Path]]:
        """First column, end and path of the files that are there, ascending."""
        found = []
        for path in sorted(self.folder.glob("columns-*.npy")):
            start, stop = map(int, path.stem.split("-")[1:])
            found.append((start, stop, path))
        return sorted(found)

    def missing(self) -> list[tuple[int, int]]:
        """First column and end of each gap."""
        gaps, position = [], 0
        for start, stop, _ in [*self.parts(), (self.shape[1], self.shape[1], None)]:
            if start > position:
                gaps.append((position, start))
            position = max(position, stop)
        return gaps

    def write(self, start: int, values: NDArray[np.float32]) -> None:
        """Store some columns."""
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"columns-{start:06d}-{start + values.shape[1]:06d}.npy"
        self._remove_unfinished()
        prefix = f"{UNFINISHED}{process_mark()}"
        handle, temporary = tempfile.mkstemp(dir=self.folder, prefix=prefix)
        try:
            with os.fdopen(handle, "wb") as file:
                np.save(file, values)
            os.chmod(temporary, 0o644)
            os.replace(temporary, self.folder / name)
        except BaseException:
            os.unlink(temporary)
            raise

    def _remove_unfinished(self) -> None:
        """Remove what processes of this machine were writing when they were killed."""
        for path in self.folder.glob(f"{UNFINISHED}*"):
            if is_abandoned(path.name.removeprefix(UNFINISHED)):
                path.unlink(missing_ok=True)

    def read(self, rows: Rows, columns: slice = ALL) -> Tensor:
        """See `Table`."""
        first, end, _ = columns.indices(self.shape[1])
        read, position = [], first
        for start, stop, path in self.parts():
            low, high = max(start, position), min(stop, end)
            if low < high:
                array = np.load(path, mmap_mode="r")
                read.append(_part(array, rows, slice(low - start, high - start)))
                position = high
        return torch.from_numpy(np.concatenate(read, axis=1))


class DerivedTable:
    """A table whose rows are a function of the same rows of another one.

    Args:
        table: The other table.
        function: Takes rows, (n, F), and which columns to return, (n, columns).
        width: Number of columns.
        content: What the function does, by name, and the tensors that it uses.
    """

    def __init__(
        self,
        table: Table,
        function: Callable[[Tensor, slice], Tensor],
        width: int,
        content: tuple[str, Sequence[Tensor]],
    ) -> None:
        self.table, self.function = table, function
        self.shape = table.shape[0], width
        name, tensors = content
        self.content_hash = joined_hash(table.content_hash, name, *map(tensor_hash, tensors))

    def read(self, rows: Rows, columns: slice = ALL) -> Tensor:
        """See `Table`."""
        return self.function(self.table.read(rows), columns)


def product_table(table: Table, matrix: Tensor) -> DerivedTable:
    """A table times a matrix, (F, d)."""
    return DerivedTable(
        table, lambda rows, some: rows @ matrix[:, some], matrix.shape[1], ("product", [matrix])
    )


def scaled_table(table: Table, centre: Tensor, scale: Tensor) -> DerivedTable:
    """A table minus its centre, (F,), times a factor."""
    return DerivedTable(
        table,
        lambda rows, some: (rows[:, some] - centre[some]) * scale,
        table.shape[1],
        ("scaled", [centre, scale]),
    )


class JoinedTable:
    """Tables side by side."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self.tables = tables
        self.shape = tables[0].shape[0], sum(table.shape[1] for table in tables)
        self.content_hash = joined_hash("joined", *(table.content_hash for table in tables))

    def read(self, rows: Rows, columns: slice = ALL) -> Tensor:
        """See `Table`."""
        return torch.cat([table.read(rows) for table in self.tables], dim=1)[:, columns]


def row_slices(num_rows: int, size: int = ROWS) -> Iterator[slice]:
    """Slices that cover all rows in order."""
    for start in range(0, num_rows, size):
        yield slice(start, min(start + size, num_rows))


def joined_hash(*parts: str) -> str:
    """One hash of several names or hashes."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def tensor_hash(values: Tensor) -> str:
    """A hash of the numbers and the shape of a tensor."""
    array = values.detach().cpu().contiguous().numpy()
    return hashlib.sha256(f"{array.dtype}{array.shape}".encode() + array.tobytes()).hexdigest()


def _part(array: NDArray[Any], rows: Rows, columns: slice) -> NDArray[np.float32]:
    """A copy of some rows and columns, in single precision."""
    index = rows if isinstance(rows, slice) else rows.cpu().numpy()
    return np.array(array[index, columns], np.float32)


LINKS = ("indptr", "indices", "edge_weight")


@dataclass(frozen=True, eq=False)
class PackedLinks:
    """The edges of a packed graph; labels and features do not change their hash."""

    graph: PackedGraph

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.graph.num_nodes

    @property
    def content_hash(self) -> str:
        """A hash of the edges and their weights."""
        arrays = self.graph.header["arrays"]
        return joined_hash(*(arrays[name]["sha256"] for name in LINKS if name in arrays))

    @property
    def edge_weight(self) -> NDArray[Any] | None:
        """Weights of the edges; None if there are none."""
        return self.graph.edge_weight

    def array(self, name: str) -> NDArray[Any]:
        """A memory map of its own, whose pages leave memory with it."""
        return self.graph.array(name)


def features(graph: PackedGraph) -> ArrayTable:
    """The features of a packed graph."""
    return ArrayTable(lambda: graph.array("x"), graph.header["arrays"]["x"]["sha256"])


PREFIX = ".scratch-"  # then the mark of the process that works there


@contextmanager
def scratch_folder(parent: Path, needed: int) -> Iterator[Path]:
    """A new folder that is removed at the end; after a kill, the next one removes it.

    Args:
        parent: The folder to create it in.
        needed: Bytes that will be written to it.
    """
    parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(parent)
    free = shutil.disk_usage(parent).free
    if needed > free:
        raise OSError(
            f"{parent} needs {format_size(needed)} for rows to learn from, and "
            f"{format_size(free)} are free."
        )
    folder = Path(tempfile.mkdtemp(dir=parent, prefix=f"{PREFIX}{process_mark()}"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned(parent: Path) -> None:
    """Remove what processes of this machine were using when they were killed."""
    for path in parent.glob(f"{PREFIX}*"):
        if is_abandoned(path.name.removeprefix(PREFIX)):
            shutil.rmtree(path, ignore_errors=True)
