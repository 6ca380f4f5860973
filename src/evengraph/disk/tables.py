"""Tables with one row per node that need not fit in memory."""

from __future__ import annotations

import hashlib
import logging
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.lib.format import header_data_from_array_1_0, write_array_header_1_0
from numpy.typing import NDArray
from torch import Tensor

from evengraph.core.files import atomic_file
from evengraph.core.machine import format_size, is_abandoned, process_mark
from evengraph.disk.packed_graph import PackedGraph
from evengraph.training.ranks import ALONE, Ranks

ROWS = 2**16  # rows that are read at a time
ALL = slice(None)
UNFINISHED = ".columns-"  # then the mark of the process that writes the file
Rows = slice | Tensor  # a slice, or indices
PREFIX = ".scratch-"  # then the mark of the process that works there
VISIBLE = 90.0  # seconds until a file is seen by other machines; NFS looks again after 60


class Table(Protocol):
    """A table of numbers, read in parts."""

    shape: tuple[int, int]
    content_hash: str  # of the content, or of what it is computed from

    def read(self, rows: Rows, columns: slice = ALL) -> Tensor:
        """Some rows of some columns, in memory, float32."""
        ...


class ArrayTable:
    """A table in one array, of half or single precision.

    `load` returns it, in every read, so that pages of a memory map do not stay in memory.
    """

    def __init__(self, load: Callable[[], NDArray[Any]], content_hash: str) -> None:
        self._load, self.content_hash = load, content_hash
        rows, columns = load().shape
        self.shape: tuple[int, int] = rows, columns

    def read(self, rows: Rows, columns: slice = ALL) -> Tensor:
        return torch.from_numpy(_part(self._load(), rows, columns))


class Strip(NamedTuple):
    """A file of some columns: the first, their end, its path, and the checksum in its name."""

    start: int
    stop: int
    path: Path
    checksum: str


CHECKSUM = 32  # hexadecimal digits of a SHA-256
STRIP = re.compile(
    rf"columns-(\d{{6,}})-(\d{{6,}})-([0-9a-f]{{{CHECKSUM}}})\.npy"
)  # other names are ignored
logger = logging.getLogger(__name__)


class ColumnTable:
    """A table in files of some columns each, named by first column, end and checksum.

    A file is written completely or not at all, so that finished ones are the journal: after a kill
    only the missing columns are computed. `shape` is that of the complete table.
    """

    def __init__(self, folder: Path, shape: tuple[int, int], content_hash: str) -> None:
        self.folder, self.shape, self.content_hash = folder, shape, content_hash

    def parts(self) -> list[Strip]:
        """The files that are there, ascending."""
        paths = (path for path in self.folder.glob("columns-*.npy") if path.is_file())
        names = [(match, path) for path in paths if (match := STRIP.fullmatch(path.name))]
        return sorted(Strip(int(name[1]), int(name[2]), path, name[3]) for name, path in names)

    def missing(self) -> list[tuple[int, int]]:
        """First column and end of each gap."""
        gaps, position = [], 0
        for start, stop in [*(part[:2] for part in self.parts()), (self.shape[1], self.shape[1])]:
            if start > position:
                gaps.append((position, start))
            position = max(position, stop)
        return gaps

    def check(self) -> None:
        """Remove files that are not as they were written; their columns are then missing."""
        damaged = []
        for start, stop, path, checksum in self.parts():
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, partial(self._digest, start, stop))
            if digest.hexdigest()[:CHECKSUM] != checksum:
                path.unlink()
                damaged.append(path)
        if damaged:
            text = "%s is not as it was written: its columns are computed again."
            logger.warning(text, damaged[0])

    def write(self, start: int, values: NDArray[np.float32]) -> None:
        for path in _abandoned(self.folder, UNFINISHED):
            path.unlink(missing_ok=True)
        values, stop, head = np.ascontiguousarray(values), start + values.shape[1], BytesIO()
        write_array_header_1_0(head, header_data_from_array_1_0(values))
        digest = self._digest(start, stop)
        for part in (head.getbuffer(), values.data):
            digest.update(part)
        name = f"columns-{start:06d}-{stop:06d}-{digest.hexdigest()[:CHECKSUM]}.npy"
        with atomic_file(self.folder / name, f"{UNFINISHED}{process_mark()}") as file:
            file.write(head.getbuffer())
            file.write(values.data)

    def _digest(self, start: int, stop: int) -> Any:
        """What a checksum begins with: the same columns elsewhere have another one."""
        return hashlib.sha256(f"{self.content_hash} {start} {stop} ".encode())

    def read(self, rows: Rows, columns: slice = ALL) -> Tensor:
        first, end, _ = columns.indices(self.shape[1])
        read, position = [], first
        for start, stop, path, _ in self.parts():
            low, high = max(start, position), min(stop, end)
            if low < high:
                array = np.load(path, mmap_mode="r")
                read.append(_part(array, rows, slice(low - start, high - start)))
                position = high
        return torch.from_numpy(np.concatenate(read, axis=1))


class DerivedTable:
    """A table whose rows are a function of the same rows of another one.

    The function takes rows, (n, F), and which columns to return, (n, columns). Its hash is that of
    a `name` for what it does, and of the tensors that it uses.
    """

    def __init__(
        self,
        table: Table,
        function: Callable[[Tensor, slice], Tensor],
        width: int,
        name: str,
        *tensors: Tensor,
    ) -> None:
        self.table, self.function = table, function
        self.shape = table.shape[0], width
        self.content_hash = joined_hash(table.content_hash, name, *map(tensor_hash, tensors))

    def read(self, rows: Rows, columns: slice = ALL) -> Tensor:
        return self.function(self.table.read(rows), columns)


def product_table(table: Table, matrix: Tensor) -> DerivedTable:
    """A table times a matrix, (F, d)."""
    return DerivedTable(
        table, lambda rows, some: rows @ matrix[:, some], matrix.shape[1], "product", matrix
    )


def scaled_table(table: Table, centre: Tensor, scale: Tensor) -> DerivedTable:
    """A table minus its centre, (F,), times a factor."""

    def scaled(rows: Tensor, some: slice) -> Tensor:
        return (rows[:, some] - centre[some]) * scale

    return DerivedTable(table, scaled, table.shape[1], "scaled", centre, scale)


class JoinedTable:
    """Tables side by side."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self.tables = tables
        self.shape = tables[0].shape[0], sum(table.shape[1] for table in tables)
        self.content_hash = joined_hash("joined", *(table.content_hash for table in tables))

    def read(self, rows: Rows, columns: slice = ALL) -> Tensor:
        return torch.cat([table.read(rows) for table in self.tables], dim=1)[:, columns]


def row_slices(num_rows: int, size: int = ROWS) -> Iterator[slice]:
    """Slices that cover all rows in order."""
    for start in range(0, num_rows, size):
        yield slice(start, min(start + size, num_rows))


def joined_hash(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def tensor_hash(values: Tensor) -> str:
    """A hash of the numbers and the shape of a tensor."""
    array = values.detach().cpu().contiguous().numpy()
    return hashlib.sha256(f"{array.dtype}{array.shape}".encode() + array.tobytes()).hexdigest()


def _part(array: NDArray[Any], rows: Rows, columns: slice) -> NDArray[np.float32]:
    index = rows if isinstance(rows, slice) else rows.cpu().numpy()
    return np.array(array[index, columns], np.float32)


def features(graph: PackedGraph) -> ArrayTable:
    return ArrayTable(lambda: graph.array("x"), graph.header["arrays"]["x"]["sha256"])


def wait_until(done: Callable[[], bool], what: str) -> None:
    """Wait until what another machine has written is seen from here."""
    started = monotonic()
    while not done():
        if monotonic() - started > VISIBLE:
            raise OSError(f"{what} must be on a disk that all machines share.")
        sleep(0.05)


def check_disk(folder: Path, needed: int, what: str) -> None:
    """Raise OSError if so many bytes do not fit into a folder, which is created."""
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if needed > free:
        needs = f"{folder} needs {format_size(needed)} for {what}"
        raise OSError(f"{needs}, and {format_size(free)} are free.")


@contextmanager
def scratch_folder(parent: Path, needed: int, ranks: Ranks = ALONE) -> Iterator[Path]:
    """A new folder for so many bytes that all processes see, removed at the end.

    The first process creates it; after a kill, the next one on that machine removes it.
    """
    for path in _abandoned(parent, PREFIX):
        shutil.rmtree(path, ignore_errors=True)

    def create() -> Path:
        check_disk(parent, needed, "rows to learn from")
        return Path(tempfile.mkdtemp(dir=parent, prefix=f"{PREFIX}{process_mark()}"))

    folder = ranks.once(create)
    try:
        wait_until(folder.exists, str(folder))
        yield folder
        ranks.wait()  # another process may still read
    finally:
        if not ranks.rank:
            shutil.rmtree(folder, ignore_errors=True)


def _abandoned(folder: Path, prefix: str) -> list[Path]:
    """What processes of this machine were using when they were killed."""
    paths = folder.glob(f"{prefix}*")
    return [path for path in paths if is_abandoned(path.name.removeprefix(prefix))]
