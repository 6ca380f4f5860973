"""Graphs in other formats: NetworkX, GraphML, NumPy archives, PyTorch Geometric."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from evengraph.core.arrays import csr_matrix
from evengraph.core.errors import first_line
from evengraph.core.limits import check_dense, check_nodes
from evengraph.core.npz import read_npz as read_arrays
from evengraph.tables.arrays import PARTS, from_matrix
from evengraph.tables.build import TableGraph, build_graph
from evengraph.tables.cells import import_pandas
from evengraph.tables.columns import TableColumns
from evengraph.tables.feature_encoder import FeatureEncoder
from evengraph.tables.notes import NoteKind, Notes
from evengraph.tables.torch_file import read_torch

CSR_PARTS = ("data", "indices", "indptr", "shape")
KEYS = frozenset(
    ["edge_index", "edge_weight", "edge_attr", "x", "y", "labels", "class_names", "ids", "time"]
    + ["num_nodes", *(f"{part}_mask" for part in PARTS)]
    + [f"{matrix}_{part}" for matrix in ("adj", "attr") for part in CSR_PARTS]
)
"""Names of arrays that npz and PyG files may hold; others are not read."""


def from_networkx(
    network: Any,
    *,
    label: str | None = None,
    weight: str | None = None,
    split: str | None = None,
    time: str | None = None,
    features: Sequence[str] | None = None,
    name: str = "the graph",
) -> TableGraph:
    """Build a graph from a NetworkX graph; its attributes are columns as in `from_frames`.

    Args:
        network: Any kind of NetworkX graph; directions and keys of edges are not used. Attributes
            of edges are columns, too.
        label: Attribute of nodes, as are `split`, `time` and `features`.
        weight: Attribute of edges.
        name: Name of the graph in error messages.
    """
    if not hasattr(network, "nodes") or not hasattr(network, "edges"):
        raise ValueError(f"network must be a NetworkX graph, got {type(network).__name__}.")
    columns = TableColumns(label=label, weight=weight, split=split, time=time, features=features)
    return _build_network(network, columns, name)


def read_graphml(
    path: Path, columns: TableColumns | None = None, encoder: FeatureEncoder | None = None
) -> TableGraph:
    """Read a GraphML file; its attributes are columns as in `from_networkx`."""
    import networkx

    _check_file(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a type that is missing: text is what is left
            network = networkx.read_graphml(path)
    except (networkx.NetworkXError, SyntaxError, ValueError, LookupError, TypeError) as error:
        raise ValueError(f"{path} cannot be read as GraphML: {first_line(error)}.") from None
    if not len(network):
        raise ValueError(f"{path} holds no nodes.")
    return _build_network(network, columns or TableColumns(), str(path), encoder)


def _build_network(
    network: Any, columns: TableColumns, name: str, encoder: FeatureEncoder | None = None
) -> TableGraph:
    pandas = import_pandas()
    rows = {node: row for row, node in enumerate(network.nodes)}
    nodes = pandas.DataFrame([dict(network.nodes[node]) for node in rows], index=range(len(rows)))
    ends = [(rows[a], rows[b], data) for a, b, data in network.edges(data=True)]
    edges = pandas.DataFrame(
        {"(source)": [a for a, _, _ in ends], "(target)": [b for _, b, _ in ends]}
    )
    attributes = dict.fromkeys(attribute for _, _, data in ends for attribute in data)
    if columns.weight is not None:
        attributes.setdefault(columns.weight)
    for attribute in attributes:
        edges[str(attribute)] = [data.get(attribute) for _, _, data in ends]
    # in parentheses, because an attribute may be called id
    nodes.insert(0, "(node)", range(len(rows)))
    nodes.attrs["file"] = edges.attrs["file"] = name
    columns = replace(columns, id="(node)", source="(source)", target="(target)")
    table_graph = build_graph(nodes, edges, columns, encoder)
    ids = np.empty(len(rows), dtype=object)
    ids[:] = list(rows)
    columns = replace(table_graph.columns, id=None, source=None, target=None)
    return replace(table_graph, ids=ids, columns=columns)


def read_npz(path: Path) -> TableGraph:
    """Read a NumPy file with the arrays of a graph; pickled objects are rejected.

    Required are the edges: `edge_index`, (2, E) or (E, 2), or the parts of a SciPy CSR matrix,
    `adj_data`, `adj_indices`, `adj_indptr`, `adj_shape`. Optional are `edge_weight`, (E,), or
    `edge_attr` with one number per edge; the features `x`, (N, F), or `attr_data`, `attr_indices`,
    `attr_indptr`, `attr_shape`; the labels `y` or `labels`, (N,), -1 for unlabelled; `class_names`;
    `ids`; `time`; `train_mask`, `val_mask`, `test_mask`.
    """
    _check_file(path)
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} cannot be read as npz: it was not written by numpy.savez.")
    with path.open("rb") as file:
        return _build(read_arrays(file, str(path), KEYS.__contains__), path)


def read_pyg(path: Path) -> TableGraph:
    """Read a `Data` of PyTorch Geometric, or a dict of its tensors, written by torch.save.

    The file is opened in torch's safe mode, which runs no code from it.
    """
    _check_file(path)
    return _build(read_torch(path, KEYS), path)


def _build(arrays: dict[str, Any], path: Path) -> TableGraph:
    try:
        return _from_named_arrays(arrays, str(path))
    except (IndexError, TypeError, OverflowError) as error:
        raise ValueError(f"{path} does not hold a graph: {first_line(error)}.") from None


def _from_named_arrays(named: dict[str, Any], name: str) -> TableGraph:
    """Build a graph from arrays with the names that npz and PyG files use."""
    notes = Notes()
    masks = {}
    for part in PARTS:
        mask: Any = named.get(f"{part}_mask")
        if mask is not None:
            if np.ndim(mask) == 2:
                notes.add(NoteKind.SPLIT, f"{part}_mask holds several splits: using the first.")
                mask = mask[:, 0]
            masks[part] = mask
    arrays: dict[str, Any] = {
        "ids": named.get("ids"),
        "labels": named.get("y", named.get("labels")),
        "features": named.get("x", _csr_matrix(named, "attr", name)),
    }
    for part, values in (*arrays.items(), ("class_names", named.get("class_names"))):
        if values is not None and not np.shape(values):
            raise ValueError(f"{name}: {part} must be an array, got {str(values)[:40]!r}.")
    features = arrays["features"]
    if sp.issparse(features):
        check_dense(features.shape, features.nnz, f"{name}: features")
    adjacency = _csr_matrix(named, "adj", name)
    if adjacency is None:
        sizes = [np.shape(values)[0] for values in arrays.values() if values is not None]
        adjacency = _edge_matrix(named, sizes[0] if sizes else None, name)
    class_names, times = named.get("class_names"), named.get("time")
    result = from_matrix(
        adjacency, **arrays, class_names=class_names, masks=masks, times=times, name=name
    )
    return replace(result, notes=(*notes, *result.notes))


def _edge_matrix(named: dict[str, Any], num_nodes: int | None, name: str) -> Any:
    """The edges of the array edge_index as a sparse matrix of ones or weights, (N, N)."""
    if "edge_index" not in named:
        raise ValueError(
            f"{name} has no edges: it needs edge_index, or adj_data, adj_indices, adj_indptr and "
            f"adj_shape; its arrays are: {', '.join(map(str, named)) or 'none'}."
        )
    ends = np.asarray(named["edge_index"])
    if ends.ndim == 2 and ends.shape[0] != 2 and ends.shape[1] == 2:
        ends = ends.T
    if ends.ndim != 2 or ends.shape[0] != 2 or ends.dtype.kind not in "iu":
        raise ValueError(
            f"{name}: edge_index must be integers of shape (2, E), got {ends.dtype} of shape "
            f"{ends.shape}."
        )
    size = _count_nodes(named, ends, name) if num_nodes is None else num_nodes
    outside = ((ends < 0) | (ends >= size)).any(axis=0)
    if outside.any():
        edge = int(outside.argmax())
        raise ValueError(
            f"{name}: edge {edge + 1} is {ends[:, edge].tolist()}, but nodes are numbered from 0 "
            f"to {size - 1}; edges with an unknown node: {int(outside.sum())}."
        )
    weights = _edge_weights(named, ends.shape[1], name)
    return sp.coo_array((weights, ends.astype(np.int64)), shape=(size, size))


def _edge_weights(named: dict[str, Any], size: int, name: str) -> Any:
    """The weights of an array edge_weight, or of edge_attr with a number per edge; else ones."""
    weights: Any = named.get("edge_weight")
    attributes = named.get("edge_attr")
    if weights is None and attributes is not None and np.asarray(attributes).dtype.kind == "f":
        weights = attributes if np.size(attributes) == size else None
    if weights is None:
        return np.ones(size)
    if np.size(weights) != size or np.asarray(weights).dtype.kind not in "biuf":
        raise ValueError(
            f"{name}: edge_weight must hold a number for each of the {size} edges, got shape "
            f"{np.shape(weights)}."
        )
    return np.asarray(weights, dtype=np.float64).reshape(size)


def _count_nodes(named: dict[str, Any], ends: Any, name: str) -> int:
    """The number of nodes of a file without features and labels."""
    number = np.asarray(named.get("num_nodes", ends.max(initial=-1) + 1))
    if number.size != 1 or number.dtype.kind not in "iu" or number.item() < 0:
        raise ValueError(f"{name}: num_nodes must be a whole number, got {str(number)[:40]}.")
    check_nodes(int(number.item()), ends.shape[1], name)
    return int(number.item())


def _csr_matrix(named: dict[str, Any], matrix: str, name: str) -> Any:
    """A sparse matrix from its four arrays; None without them."""
    keys = [f"{matrix}_{part}" for part in CSR_PARTS]
    missing = [key for key in keys if key not in named]
    if len(missing) == len(keys):
        return None
    if missing:
        raise ValueError(f"{name} is not complete: it lacks {', '.join(missing)}.")
    try:
        return csr_matrix([named[key] for key in keys], matrix)
    except ValueError as error:
        raise ValueError(f"{name}: {error}.") from None


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist.")
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty.")
