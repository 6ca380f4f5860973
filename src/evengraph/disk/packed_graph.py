"""PackedGraph: a graph in a folder of memory-mapped arrays."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from tokenize import TokenError
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.lib.format import write_array_header_1_0
from numpy.typing import DTypeLike, NDArray

from evengraph.core.errors import first_line, one_line_errors, short
from evengraph.core.machine import parse_size
from evengraph.core.text import html_table
from evengraph.core.wings import PACKED
from evengraph.tables.columns import TableColumns
from evengraph.tables.feature_encoder import FeatureEncoder

BLOCK = 1 << 22  # entries that are looked at together
DTYPES = {
    "indptr": ("int64",),
    "indices": ("int32", "int64"),
    "edge_weight": ("float32",),
    "x": ("float16", "float32"),
    "y": ("int32", "int64"),
    "ids": ("int64", "uint8"),
    "ids_offsets": ("int64",),
    "train_mask": ("bool",),
    "val_mask": ("bool",),
    "test_mask": ("bool",),
    "time": ("int64", "int32", "float64", "float32"),
}


def check_header(header: Mapping[str, Any]) -> None:
    """Raise ValueError unless the counts, the class names and the shapes of arrays fit."""
    for name in ("num_nodes", "num_edges", "num_features"):
        if type(header.get(name)) is not int or not 0 <= header[name] < 2**62:
            raise ValueError(f"{name} must be a number of at least 0")
    names = header.get("class_names")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("class_names must be a list of names")
    for name, about in header["arrays"].items():
        parts = (about.get("sha256"), about.get("shape")) if isinstance(about, dict) else ()
        if [type(part) for part in parts] != [str, list]:
            raise ValueError(f"the array {name} must have a dtype, a shape and a sha256")
        if about.get("dtype") not in DTYPES.get(name, ()):
            raise ValueError(f"the array {name} must not have dtype {about.get('dtype')!r:.40}")
        wanted = _shape(name, header)
        if wanted is not None and about.get("shape") != wanted:
            raise ValueError(f"the array {name} must have shape {wanted}")


def _shape(name: str, header: Mapping[str, Any]) -> list[int] | None:
    """The shape that an array must have; None for any of one dimension."""
    nodes, edges = header["num_nodes"], header["num_edges"]
    if name == "ids" and "ids_offsets" in header["arrays"]:
        return None
    lengths = {"indptr": nodes + 1, "ids_offsets": nodes + 1, "indices": edges}
    length = lengths.get(name, edges if name == "edge_weight" else nodes)
    return [length, header["num_features"]] if name == "x" else [length]


def check_content(packed: PackedGraph) -> None:
    """Raise ValueError unless edges, classes and ids exist and features are finite.

    Reads all arrays once, in blocks.
    """
    _check_offsets(packed.indptr, packed.num_edges, "indptr")
    _check_range(packed.indices, 0, packed.num_nodes - 1, "indices")
    _check_range(packed.y, -1, packed.num_classes - 1, "y")
    for name in ("x", "edge_weight"):
        if name in packed.header["arrays"]:
            for block in _blocks(packed.array(name)):
                if not np.isfinite(block).all():
                    raise ValueError(f"{name} must be finite")
    if "ids_offsets" in packed.header["arrays"]:
        _check_offsets(packed.array("ids_offsets"), packed.array("ids").size, "ids_offsets")


def _check_offsets(offsets: NDArray[Any], end: int, name: str) -> None:
    """Where parts begin: from 0 upwards to the end."""
    if offsets[0] != 0 or offsets[-1] != end:
        raise ValueError(f"{name} must run from 0 to {end}")
    for start in range(0, len(offsets), BLOCK):
        if (np.diff(offsets[start : start + BLOCK + 1]) < 0).any():
            raise ValueError(f"{name} must run upwards")


def _check_range(values: NDArray[Any], low: int, high: int, name: str) -> None:
    for block in _blocks(values):
        if block.min() < low or block.max() > high:
            raise ValueError(f"{name} must lie between {low} and {high}")


def _blocks(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    rows = max(BLOCK // max(array[0].size, 1), 1) if len(array) else 1
    for start in range(0, len(array), rows):
        block = array[start : start + rows]
        if block.size:
            yield block


class ArrayFile:
    """Appends rows to a .npy file; the header gets their number at the end.

    Written rows are not mapped, so they do not count as memory of the process.

    Args:
        path: The file.
        dtype: Of all rows.
        width: Number of columns; None for an array of one dimension.
    """

    def __init__(self, path: Path, dtype: DTypeLike, width: int | None = None) -> None:
        self.path, self.dtype, self.width = path, np.dtype(dtype), width
        self.length = 0

    def __enter__(self) -> Self:
        self._file = self.path.open("wb")
        self._write_header()
        return self

    def append(self, rows: NDArray[Any]) -> None:
        """Append rows, (M,) or (M, width), converted to the dtype."""
        if rows.shape[1:] != (() if self.width is None else (self.width,)):
            raise ValueError(f"rows must have width {self.width}, got shape {rows.shape}.")
        self._file.write(np.ascontiguousarray(rows, dtype=self.dtype).data)
        self.length += len(rows)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._file:
            self._file.seek(0)
            self._write_header()

    def _write_header(self) -> None:
        """NumPy leaves room in a header for a longer first axis."""
        shape = (self.length,) if self.width is None else (self.length, self.width)
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": shape}
        write_array_header_1_0(self._file, header)


class TextArray:
    """Texts in UTF-8, one after the other; slices and lists of rows give arrays of str.

    Args:
        content: The bytes of all texts.
        offsets: Where each text begins, and where the last ends.

    Shapes:
        content: uint8; offsets: int64, (N + 1,)
    """

    def __init__(self, content: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self.content, self.offsets = content, offsets

    @property
    def shape(self) -> tuple[int]:
        """(N,)."""
        return (len(self),)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice) and rows.step in (None, 1):
            start, stop, _ = rows.indices(len(self))
            return self._read(start, max(stop, start))
        if isinstance(rows, slice):
            rows = np.arange(len(self))[rows]
        if np.ndim(rows) == 0:
            row = range(len(self))[int(rows)]
            return self._read(row, row + 1)[0]
        rows = np.asarray(rows)
        rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return _objects([self[int(row)] for row in rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self._read(0, len(self))

    def _read(self, start: int, stop: int) -> NDArray[Any]:
        bounds = np.asarray(self.offsets[start : stop + 1]).tolist()
        content = self.content[bounds[0] : bounds[-1]].tobytes()
        first = bounds[0]
        try:
            return _objects(
                [
                    content[low - first : high - first].decode("utf-8", "surrogatepass")
                    for low, high in pairwise(bounds)
                ]
            )
        except UnicodeDecodeError:
            raise ValueError(f"rows {start} to {stop - 1} are not UTF-8 text") from None


def encode_texts(texts: list[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes of texts, and the length of each, (N,)."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    lengths = np.fromiter((len(text) for text in encoded), dtype=np.int64, count=len(encoded))
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), lengths


def _objects(texts: list[str]) -> NDArray[Any]:
    """An array of str objects, as pandas gives them."""
    result = np.empty(len(texts), dtype=object)
    result[:] = texts
    return result


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

    def encoding(self) -> tuple[FeatureEncoder, TableColumns]:
        """The encoder that made the features, and the columns of the tables it was packed from."""
        stored, columns = self.header.get("encoder"), self.header.get("columns", {})
        try:
            if stored is None:  # those of a data set are features already
                names = [f"x{index}" for index in range(self.num_features)]
                encoder = FeatureEncoder.passthrough(names, np.zeros((1, self.num_features)))
            else:
                encoder = FeatureEncoder.from_dict(stored)
            return encoder, TableColumns(**{**columns, "features": list(encoder.input_columns)})
        except (ValueError, TypeError, AttributeError, KeyError, IndexError) as error:
            message = f"{self.path / PACKED} is damaged: {first_line(error)}. Pack the graph again."
            raise PackError(message) from None

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


def file_hash(path: Path) -> str:
    """SHA-256 of a file, read in blocks."""
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(HASH_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _read_header(path: Path) -> Mapping[str, Any]:
    file = path / PACKED
    if not file.is_file():
        raise FileNotFoundError(f"{path} is no packed graph: it has no {PACKED}.")
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
