"""PackedGraph: a graph in a folder of memory-mapped arrays."""

from __future__ import annotations

import json
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from hashlib import file_digest, sha256
from itertools import pairwise
from pathlib import Path
from tokenize import TokenError
from typing import Any, Self

import numpy as np
from numpy.lib.format import write_array_header_1_0
from numpy.typing import DTypeLike, NDArray

from evengraph.core.errors import first_line, one_line_errors, short
from evengraph.core.lazy import PACKED
from evengraph.core.schema import SchemaError, read
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
    "new_mask": ("bool",),
    "time": ("int64", "int32", "float64", "float32"),
}
FORMAT = 1
REQUIRED = ("indptr", "indices", "x", "y", "ids")
MASKS = ("train", "val", "test")
NEW = "new_mask"  # nodes that joined a known graph: those to predict
# what NumPy raises for arrays that are damaged
UNREADABLE = (OSError, ValueError, EOFError, SyntaxError, TokenError)
DAMAGE = (*UNREADABLE, MemoryError, OverflowError, Warning)
# called with the name of a stage and its share that is done, or None if that is not known
Progress = Callable[[str, float | None], None]


def no_progress(stage: str, share: float | None) -> None:
    """Show nothing."""


@dataclass(frozen=True, kw_only=True)
class _Array:
    """What graph.json says of an array."""

    dtype: str
    shape: list[int]
    sha256: str


@dataclass(frozen=True, kw_only=True)
class _Header:
    """What graph.json holds; other entries are not looked at."""

    num_nodes: int
    num_edges: int
    num_features: int
    class_names: list[str]
    arrays: dict[str, _Array]
    class_counts: list[int] = field(default_factory=list)
    name: str = ""
    notes: list[str] = field(default_factory=list)
    encoder: FeatureEncoder | None = None
    columns: TableColumns = field(default_factory=TableColumns)


def check_header(header: Mapping[str, Any]) -> None:
    """Raise SchemaError unless types fit, and the shapes of arrays the counts."""
    names = {item.name for item in fields(_Header)}
    found = read(_Header, {k: v for k, v in header.items() if k in names})
    nodes, edges, width = found.num_nodes, found.num_edges, found.num_features
    if min(nodes, edges, width) < 0:
        raise SchemaError("must be at least 0", "num_nodes, num_edges and num_features")
    shapes = {"indptr": [nodes + 1], "ids_offsets": [nodes + 1], "indices": [edges]}
    shapes |= {"edge_weight": [edges], "x": [nodes, width]}
    for name, about in found.arrays.items():
        if about.dtype not in DTYPES.get(name, ()):
            raise SchemaError(f"must not be {short(about.dtype)}", "arrays", name, "dtype")
        wanted = shapes.get(name, [nodes])
        if about.shape != wanted and not (name == "ids" and "ids_offsets" in found.arrays):
            raise SchemaError(f"must be {wanted}", "arrays", name, "shape")


def check_content(packed: PackedGraph) -> None:
    """Raise ValueError unless edges, classes and ids exist and features are finite, in a pass."""
    ends = {"indptr": packed.num_edges}
    if "ids_offsets" in packed.header["arrays"]:
        ends["ids_offsets"] = packed.array("ids").size
    for name, end in ends.items():
        offsets = packed.array(name)
        if offsets[0] != 0 or offsets[-1] != end:
            raise ValueError(f"{name} must run from 0 to {end}")
        for start in range(0, len(offsets), BLOCK):
            if (np.diff(offsets[start : start + BLOCK + 1]) < 0).any():
                raise ValueError(f"{name} must run upwards")
    limits = {"indices": (0, packed.num_nodes - 1), "y": (-1, packed.num_classes - 1)}
    for name in ("indices", "y", "x", *(["edge_weight"] if packed.edge_weight is not None else ())):
        array = packed.array(name)
        rows = max(BLOCK // max(array[:1].size, 1), 1)
        for start in range(0, len(array) if array.size else 0, rows):
            block, (low, high) = array[start : start + rows], limits.get(name, (0, 0))
            if name not in limits and not np.isfinite(block).all():
                raise ValueError(f"{name} must be finite")
            if name in limits and (block.min() < low or block.max() > high):
                raise ValueError(f"{name} must lie between {low} and {high}")


class ArrayFile:
    """Appends rows to a .npy file, without a map; the header gets their number at the end.

    A `width` of None stands for an array of one dimension.
    """

    def __init__(self, path: Path, dtype: DTypeLike, width: int | None = None) -> None:
        self.path, self.dtype, self.width, self.length = path, np.dtype(dtype), width, 0

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

    def __exit__(self, *error: object) -> None:
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

    `offsets` says where each text begins in `content`, and where the last ends, (N + 1,).
    """

    def __init__(self, content: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self.content, self.offsets = content, offsets

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        count = len(self.offsets) - 1
        if isinstance(rows, slice) and rows.step in (None, 1):
            start, stop, _ = rows.indices(count)
            return self._read(start, max(start, stop))
        return _objects([self._read(row, row + 1)[0] for row in np.arange(count)[rows]])

    def _read(self, start: int, stop: int) -> NDArray[Any]:
        bounds = np.asarray(self.offsets[start : stop + 1])
        content = self.content[bounds[0] : bounds[-1]].tobytes()
        places = pairwise((bounds - bounds[0]).tolist())
        try:
            return _objects([content[a:b].decode("utf-8", "surrogatepass") for a, b in places])
        except UnicodeDecodeError:
            raise ValueError(f"rows {start} to {stop - 1} are not UTF-8 text") from None


def _objects(texts: list[str]) -> NDArray[Any]:
    result = np.empty(len(texts), dtype=object)
    result[:] = texts
    return result


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
        ids: (N,); train_mask, val_mask, test_mask: bool, (N,), or None; new_mask likewise: nodes
            that joined a known graph
    """

    path: Path
    header: Mapping[str, Any]

    @classmethod
    @one_line_errors()
    def open(cls, path: str | Path, *, verify: bool = False) -> PackedGraph:
        """Open a folder that `evengraph pack` wrote, and check the sizes of its files.

        With `verify` also their checksums, which reads every file once.
        """
        path = Path(path).expanduser()
        graph = cls(path=path, header=_read_header(path))
        for name in graph.header["arrays"]:
            graph.array(name)
        if verify:
            graph.verify()
        return graph

    @one_line_errors()
    def array(self, name: str) -> NDArray[Any]:
        """A memory map of one array, by its name in graph.json."""
        expected = self.header["arrays"][name]
        path = self.path / f"{name}.npy"
        try:
            if not path.is_file():  # nobody may ever write to a pipe
                raise FileNotFoundError("it is no file")
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # of a header that no NumPy of today writes
                array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        except DAMAGE as error:
            reason = first_line(error)
            raise PackError(f"{path} is missing or damaged: {reason}. Pack it again.") from None
        for key, value in (("dtype", str(array.dtype)), ("shape", list(array.shape))):
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
        """Compare the checksum of every array."""
        for name, expected in self.header["arrays"].items():
            file = self.path / f"{name}.npy"
            if file_hash(file) != expected["sha256"]:
                raise PackError(f"{file} was changed after packing: pack it again.")

    @cached_property
    def indptr(self) -> NDArray[np.int64]:
        """Where the neighbours of each node begin in `indices`, (N + 1,)."""
        return self.array("indptr")

    @cached_property
    def indices(self) -> NDArray[np.signedinteger[Any]]:
        return self.array("indices")

    @cached_property
    def edge_weight(self) -> NDArray[np.float32] | None:
        return self._optional("edge_weight")

    @cached_property
    def x(self) -> NDArray[np.floating[Any]]:
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
        return int(self.header["num_nodes"])

    @property
    def num_edges(self) -> int:
        """E, entries of `indices`: two for each undirected edge."""
        return int(self.header["num_edges"])

    @property
    def num_features(self) -> int:
        return int(self.header["num_features"])

    @property
    def class_names(self) -> tuple[str, ...]:
        return tuple(self.header["class_names"])

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    def encoding(self) -> tuple[FeatureEncoder, TableColumns]:
        """The encoder that made the features, and the columns of the tables it was packed from."""
        stored, columns = self.header.get("encoder"), self.header.get("columns", {})
        if stored is None:  # those of a data set are features already
            names = [f"x{index}" for index in range(self.num_features)]
            encoder = FeatureEncoder.passthrough(names, np.zeros((1, self.num_features)))
        else:
            encoder = FeatureEncoder.from_dict(stored)
        return encoder, TableColumns(**{**columns, "features": list(encoder.input_columns)})

    @property
    def content_hash(self) -> str:
        """A hash of all arrays, for caches of what is computed from them."""
        hashes = {name: array["sha256"] for name, array in self.header["arrays"].items()}
        return sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()

    @property
    def edges_hash(self) -> str:
        """A hash of the edges and their weights, which labels and features do not change."""
        arrays, names = self.header["arrays"], ("indptr", "indices", "edge_weight")
        hashes = [arrays[name]["sha256"] for name in names if name in arrays]
        return sha256("\n".join(hashes).encode()).hexdigest()


def fitting_rows(
    pointers: NDArray[Any], limit: int, row_bytes: int, edge_bytes: int
) -> Iterator[slice]:
    """Slices that cover all rows, each the longest within a limit, or one row; by bisection."""
    start, end = 0, len(pointers) - 1

    def size(stop: int) -> int:
        return (stop - start) * row_bytes + int(pointers[stop] - pointers[start]) * edge_bytes

    while start < end:
        stop = start + max(bisect_right(range(start + 1, end + 1), limit, key=size), 1)
        yield slice(start, stop)
        start = stop


def file_hash(path: Path) -> str:
    """SHA-256 of a file, read in blocks."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


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
