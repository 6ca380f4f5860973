"""What comes from files: limits, arrays of npz files, types of stored fields, parts of JSON.

Limits keep a few bytes from filling the memory. Each grows with the file: what a user's own data
needs is far below it, and the error says how to save a file within it. docs/security.md lists them.
"""

import io
import math
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from evengraph.core.errors import first_line
from evengraph.core.machine import format_size

FREE_BYTES = 256 * 2**20  # what any file may unpack to
BYTES_PER_BYTE = 100  # what a larger file may unpack to, per byte on disk
FREE_VALUES = 2**25  # how many values a sparse array may have as a dense one, whatever it stores
VALUES_PER_VALUE = 1000  # how many it may have per value that it stores
FREE_NODES = 1_000_000  # how many nodes a file may name without features and labels
NODES_PER_EDGE = 100  # how many more it may name per edge
FREE_ROWS = 2**21  # rows that any compressed table may have
ROWS_PER_BYTE = 2  # how many a larger one may have, per byte on disk
CELLS_PER_BYTE = 100  # how many cells it may have, beyond FREE_VALUES
NUMBER_BYTES = 8  # what a cell with a number takes in memory
CELL_BYTES = 32  # what a cell of text takes in memory, besides its characters
MAX_COLUMNS = 20_000  # columns of a table
MAX_INTEGER = 2**31 - 1
"""The largest whole number that a parameter of a method or a protocol may be."""

MAX_HOPS, MAX_STEPS = 100, 1000
"""How far a method may reach along edges: hops that it treats apart, steps of a diffusion."""

MAX_TEXT_BYTES = 2**20  # the size of a file that describes an experiment


class LimitError(ValueError):
    """A file asks for more than a limit allows."""


def check_unpacked(unpacked: int, packed: int, name: str, fix: str) -> None:
    """Raise LimitError if a file unpacks to more than its size allows."""
    limit = max(FREE_BYTES, BYTES_PER_BYTE * packed)
    if unpacked > limit:
        raise LimitError(
            f"{name} unpacks to {format_size(unpacked)}; a file of {format_size(packed)} may "
            f"unpack to {format_size(limit)}: {fix}."
        )


def check_dense(shape: tuple[int, int], stored: int, name: str) -> None:
    """Raise LimitError if a sparse array would be too large as a dense one."""
    limit = max(FREE_VALUES, VALUES_PER_VALUE * stored)
    if math.prod(shape) > limit:
        raise LimitError(
            f"{name} of shape {shape} with {stored} stored values must hold at most "
            f"{limit:,} values as a dense array: leave out empty columns."
        )


def check_table(rows: int, cells: int, packed: int, name: str) -> None:
    """Raise LimitError if a compressed table has far more rows or cells than bytes."""
    limits = FREE_ROWS + ROWS_PER_BYTE * packed, max(FREE_VALUES, CELLS_PER_BYTE * packed)
    for count, limit, what in zip((rows, cells), limits, ("rows", "cells"), strict=True):
        if count > limit:
            raise LimitError(
                f"{name} has {count:,} {what}; a file of {format_size(packed)} may have {limit:,}: "
                "save it as CSV, uncompressed."
            )


def check_columns(count: int, name: str) -> None:
    """Raise LimitError if a table has too many columns."""
    if count > MAX_COLUMNS:
        raise LimitError(
            f"{name} has {count:,} columns; a table may have at most {MAX_COLUMNS:,}: put sparse "
            "features into lists, one column of lists or a JSON file."
        )


def check_nodes(num_nodes: int, num_edges: int, name: str) -> None:
    """Raise LimitError if edges alone stand for far more nodes than they connect."""
    limit = FREE_NODES + NODES_PER_EDGE * num_edges
    if num_nodes > limit:
        raise LimitError(
            f"{name}: {num_edges} edges without features may name at most {limit:,} nodes, got "
            f"{num_nodes:,}: number the nodes from 0 without gaps."
        )


def read_npz(
    file: IO[bytes], name: str, wanted: Callable[[str], bool] = lambda key: True
) -> dict[str, NDArray[Any]]:
    """Read the arrays whose key is wanted; an error is a ValueError and calls the file `name`."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = [item for item in archive.infolist() if item.filename.endswith(".npy")]
            keys = {item.filename.removesuffix(".npy"): item for item in members}
            keys = {key: item for key, item in keys.items() if wanted(key)}
            unpacked, packed = sum(item.file_size for item in keys.values()), file.seek(0, 2)
            check_unpacked(unpacked, packed, name, "write it with numpy.savez, uncompressed")
            return {key: _read_array(archive, item, key) for key, item in keys.items()}
    except LimitError:
        raise
    except Exception as error:  # zipfile, zlib and NumPy raise many kinds for damaged files
        raise ValueError(f"{name} cannot be read as npz: {first_line(error)}.") from None


def _read_array(archive: zipfile.ZipFile, item: zipfile.ZipInfo, key: str) -> NDArray[Any]:
    """Read one array; its shape must agree with its size before memory is taken for it."""
    with archive.open(item) as stream:
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0), (3, 0)):
            raise ValueError(f"{key} has the unknown format {version[0]}.{version[1]}")
        short, long = np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0
        shape, in_columns, dtype = (short if version == (1, 0) else long)(stream)
        if dtype.hasobject:
            raise ValueError(f"{key} holds Python objects, which are never opened")
        if dtype.kind == "V":
            raise ValueError(f"{key} holds records, not one array of values")
        if not dtype.itemsize:  # NumPy would take a byte for each of any number of items
            raise ValueError(f"{key} holds items of no size")
        size, left = math.prod(shape) * dtype.itemsize, item.file_size - stream.tell()
        if size != left or min(shape, default=0) < 0:
            raise ValueError(f"{key} holds {left} bytes, which do not fit its shape")
        values = np.empty(math.prod(shape), dtype)
        if size and cast(io.BufferedIOBase, stream).readinto(values.view(np.uint8).data) != size:
            raise ValueError(f"{key} is cut off")
    values = values.astype(dtype.newbyteorder("="), copy=False)  # torch and pandas read no other
    return values.reshape(shape, order="F" if in_columns else "C")


def number(value: object) -> float | None:
    """Return a finite float, `None` for anything else."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        result = float(value)
    except OverflowError:
        return None
    # larger than any real result, and small enough that sums and axes stay finite
    return result if abs(result) < 1e100 else None


def lookup(content: object, *keys: str | int) -> Any:
    """Follow keys of mappings and indices of lists; `None` where there is nothing."""
    for key in keys:
        if isinstance(content, Mapping):
            content = content.get(key)
        elif isinstance(content, (list, tuple)) and isinstance(key, int):
            content = content[key] if 0 <= key < len(content) else None
        else:
            return None
    return content


def part(content: object, *keys: str | int) -> Mapping[str, Any]:
    """Return the mapping at `keys`, empty if there is none."""
    value = lookup(content, *keys)
    return value if isinstance(value, Mapping) else {}


def items(content: object, *keys: str | int) -> Sequence[Any]:
    """Return the list at `keys`, empty if there is none."""
    value = lookup(content, *keys)
    return value if isinstance(value, (list, tuple)) else ()


def average(values: Iterable[float | None]) -> float | None:
    """Mean of the defined values, `None` if there are none."""
    defined = [value for value in values if value is not None]
    return math.fsum(defined) / len(defined) if defined else None


def sorted_unique(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The distinct values, ascending; for millions of integers several times faster than NumPy."""
    codes = np.sort(codes)
    first = np.ones(len(codes), dtype=np.bool_)
    first[1:] = codes[1:] != codes[:-1]
    return codes[first]


def csr_matrix(parts: Sequence[Any], name: str) -> Any:
    """A SciPy CSR matrix from data, indices, indptr and shape; ValueError if they do not fit.

    SciPy trusts its parts and writes beyond its memory if they are wrong.
    """
    from scipy.sparse import csr_array

    data, indices, indptr, shape = parts
    sides = _integers(shape, f"{name}_shape").tolist()
    indices, indptr = _integers(indices, f"{name}_indices"), _integers(indptr, f"{name}_indptr")
    data = np.asarray(data)
    if data.ndim != 1 or data.dtype.kind not in "biuf":
        raise ValueError(f"{name}_data must be one row of numbers, got {_describe(data)}")
    if len(sides) != 2 or min(sides) < 0:
        raise ValueError(f"{name}_shape must be two numbers from 0 on, got {sides[:9]}")
    rows, columns = sides
    ends = indptr[1:]
    if len(indptr) != rows + 1 or indptr[0] != 0 or (ends < indptr[:-1]).any():
        raise ValueError(f"{name}_indptr must be {rows + 1} numbers from 0 on that never fall")
    stored = int(indptr[-1])
    if not stored <= min(len(indices), len(data)):
        raise ValueError(
            f"{name}_indptr ends at {stored}, beyond the {len(data)} values in {name}_data and "
            f"{len(indices)} in {name}_indices"
        )
    indices, data = indices[:stored], data[:stored]
    if stored and not 0 <= int(indices.min()) <= int(indices.max()) < columns:
        raise ValueError(
            f"{name}_indices must lie between 0 and {columns - 1}, got {int(indices.min())} to "
            f"{int(indices.max())}"
        )
    return csr_array((data, indices, indptr), shape=(rows, columns))


def _integers(values: Any, name: str) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be one row of integers, got {_describe(array)}")
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} must be below 2^63, got {array.max()}")
    return array.astype(np.int64)


def _describe(array: NDArray[Any]) -> str:
    return f"{array.dtype} of shape {array.shape}"
