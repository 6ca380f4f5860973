"""Checks of packed graphs, which may come from anywhere: an index out of range reads elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from evengraph.disk.packed_graph import PackedGraph

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
