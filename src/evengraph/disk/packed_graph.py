"""PackedGraph: a graph in a folder of memory-mapped arrays."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evengraph.core.errors import first_line, one_line_errors, short
from evengraph.core.html_table import html_table
from evengraph.core.sizes import parse_size
from evengraph.disk.checks import check_content, check_header
from evengraph.disk.text_array import TextArray

HEADER = "graph.json"
FORMAT = 1
REQUIRED = ("indptr", "indices", "x", "y", "ids")
MASKS = ("train", "val", "test")
HASH_BLOCK = 1 << 24
DAMAGE = (
    OSError,
    ValueError,
    EOFError,
    SyntaxError,
    TokenError,
    MemoryError,
    OverflowError,
    Warning,
)
"""What NumPy raises for arrays that are damaged."""


class PackError(ValueError):
    """A packed graph is damaged, incomplete or of another version."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PackedGraph:
    """An undirected graph on disk; its arrays are memory maps, read only where they are used.

    Args:
        path: The folder.
        header: The content of its graph.json: counts, class names, dtypes, checksums, encoder.

    Shapes:
        indptr: int64, (N + 1,); indices: int32 or int64, (E,), both directions of every edge,
            ascending in each row, no self-loops, no repeats
        edge_weight: float32, (E,), or None
        x: float16 or float32, (N, F), row-major; y: int32, (N,), -1 for unlabelled
        ids: (N,); train_mask, val_mask, test_mask: bool, (N,), or None
    """

    path: Path
    header: Mapping[str, Any]

    @classmethod
    @one_line_errors()
    def open(cls, path: str | Path, *, verify: bool = False) -> PackedGraph:
        """Open a folder that `evengraph pack` wrote, and check the sizes of its files.

        Args:
            path: The folder.
            verify: Also compare the checksums, which reads every file once.
        """
        path = Path(path).expanduser()
        graph = cls(path=path, header=_read_header(path))
        for name in graph.header["arrays"]:
            graph.array(name)
        if verify:
            graph.verify()
        return graph

    def _repr_html_(self) -> str:
        """Size and arrays, for notebooks; nothing is read."""
        title = f"Packed graph {self.path.name}: {self.num_nodes:,} nodes, "
        title += f"{self.num_edges // 2:,} edges"
        arrays = self.header["arrays"]
        rows = [(name, a.get("dtype", ""), a.get("shape", "")) for name, a in arrays.items()]
        return html_table(title, ("array", "type", "shape"), rows)

    @one_line_errors()
    def array(self, name: str) -> NDArray[Any]:
        """A memory map of one array, by its name in graph.json."""
        expected = self.header["arrays"][name]
        path = self.path / f"{name}.npy"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # of a header that no NumPy of today writes
                array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        except DAMAGE as error:
            reason = first_line(error)
            raise PackError(f"{path} is missing or damaged: {reason}. Pack it again.") from None
        actual = {"dtype": str(array.dtype), "shape": list(array.shape)}
        for key, value in actual.items():
            if value != expected[key]:
                raise PackError(f"{path} must have {key} {expected[key]}, got {value}.")
        return array

    def __getstate__(self) -> dict[str, Any]:
        """Path and header: a copy in another process opens the arrays itself."""
        return {"path": self.path, "header": self.header}

    @one_line_errors()
    def check(self) -> None:
        """Check that all indices exist and all numbers are finite; reads all files once.

        Checksums say that a folder is as it was written, not who wrote it.
        """
        try:
            check_content(self)
        except ValueError as error:
            raise PackError(f"{self.path} is damaged: {error}. Pack the graph again.") from None

    @one_line_errors()
    def verify(self) -> None:
        """Compare the checksum of every array; reads all files once."""
        for name, expected in self.header["arrays"].items():
            if file_hash(self.path / f"{name}.npy") != expected["sha256"]:
                raise PackError(f"{self.path / name}.npy was changed after packing: pack it again.")

    @cached_property
    def indptr(self) -> NDArray[np.int64]:
        """Where the neighbours of each node begin in `indices`, (N + 1,)."""
        return self.array("indptr")

    @cached_property
    def indices(self) -> NDArray[np.signedinteger[Any]]:
        """Neighbours of all nodes, (E,)."""
        return self.array("indices")

    @cached_property
    def edge_weight(self) -> NDArray[np.float32] | None:
        """Weight of each entry of `indices`, (E,); None if the edges have none."""
        return self._optional("edge_weight")

    @cached_property
    def x(self) -> NDArray[np.floating[Any]]:
        """Features, (N, F)."""
        return self.array("x")

    @cached_property
    def y(self) -> NDArray[np.int32]:
        """Classes, (N,); -1 is unlabelled."""
        return self.array("y")

    @cached_property
    def ids(self) -> NDArray[Any] | TextArray:
        """Ids of the nodes as given, (N,): numbers, or text that is read by slices."""
        offsets = self._optional("ids_offsets")
        return self.array("ids") if offsets is None else TextArray(self.array("ids"), offsets)

    def mask(self, part: str) -> NDArray[np.bool_] | None:
        """The mask of train, val or test, (N,); None if the graph has none."""
        return self._optional(f"{part}_mask")

    def _optional(self, name: str) -> NDArray[Any] | None:
        return self.array(name) if name in self.header["arrays"] else None

    @property
    def num_nodes(self) -> int:
        """N."""
        return int(self.header["num_nodes"])

    @property
    def num_edges(self) -> int:
        """E, entries of `indices`: two for each undirected edge."""
        return int(self.header["num_edges"])

    @property
    def num_features(self) -> int:
        """F."""
        return int(self.header["num_features"])

    @property
    def class_names(self) -> tuple[str, ...]:
        """A name for each class; empty without labels."""
        return tuple(self.header["class_names"])

    @property
    def num_classes(self) -> int:
        """C."""
        return len(self.class_names)

    @property
    def content_hash(self) -> str:
        """A hash of all arrays, for caches of what is computed from them."""
        hashes = {name: array["sha256"] for name, array in self.header["arrays"].items()}
        return sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()

    def row_blocks(
        self, memory: str | int, *, row_bytes: int | None = None, edge_bytes: int | None = None
    ) -> Iterator[slice]:
        """Slices of rows that cover all nodes in order, each within a limit of memory.

        A node with more neighbours than fit gets a block of its own.

        Args:
            memory: Bytes per block, or such as `512MB`.
            row_bytes: Bytes per node. Default: its features in float32, and 8 for `indptr`.
            edge_bytes: Bytes per entry of `indices`. Default: its size, and that of the weight.
        """
        limit = parse_size(memory)
        if row_bytes is None:
            row_bytes = 8 + 4 * self.num_features
        if edge_bytes is None:
            edge_bytes = self.indices.itemsize + (0 if self.edge_weight is None else 4)
        start = 0
        while start < self.num_nodes:
            stop = self._block_end(start, limit, row_bytes, edge_bytes)
            yield slice(start, stop)
            start = stop

    def _block_end(self, start: int, limit: int, row_bytes: int, edge_bytes: int) -> int:
        """The last row that fits, by bisection: the cost of rows grows with their number."""
        low, high, first = start + 1, self.num_nodes, int(self.indptr[start])
        while low < high:
            middle = (low + high + 1) // 2
            edges = int(self.indptr[middle]) - first
            if (middle - start) * row_bytes + edges * edge_bytes <= limit:
                low = middle
            else:
                high = middle - 1
        return low


def is_packed(path: Any) -> bool:
    """Whether it is the path of a packed graph."""
    return isinstance(path, str | Path) and (Path(path).expanduser() / HEADER).is_file()


def file_hash(path: Path) -> str:
    """SHA-256 of a file, read in blocks."""
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(HASH_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _read_header(path: Path) -> Mapping[str, Any]:
    file = path / HEADER
    if not file.is_file():
        raise FileNotFoundError(f"{path} is no packed graph: it has no {HEADER}.")
    try:
        header: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise PackError(f"{file} is damaged: {first_line(error)}.") from None
    version = header.get("format") if isinstance(header, dict) else None
    if version != FORMAT:
        raise PackError(
            f"{file} must have format {FORMAT}, got {short(version)}: pack the graph again."
        )
    arrays = header.get("arrays")
    missing = [name for name in REQUIRED if not isinstance(arrays, dict) or name not in arrays]
    if missing:
        raise PackError(f"{file} lacks the array {missing[0]}: pack the graph again.")
    try:
        check_header(header)
    except ValueError as error:
        raise PackError(f"{file} is damaged: {error}. Pack the graph again.") from None
    return header
