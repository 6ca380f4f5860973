"""Graphs in other formats: NetworkX, GraphML, NumPy archives, PyTorch Geometric."""

from __future__ import annotations

import warnings
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from evengraph.tables.arrays import PARTS, from_matrix
from evengraph.tables.build import TableGraph, build_graph
from evengraph.tables.cells import import_pandas
from evengraph.tables.columns import TableColumns
from evengraph.tables.feature_encoder import FeatureEncoder
from evengraph.tables.notes import NoteKind, Notes


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
        network = networkx.read_graphml(path)
    except (networkx.NetworkXError, SyntaxError, ValueError, KeyError, UnicodeError) as error:
        raise ValueError(f"{path} cannot be read as GraphML: {_first_line(error)}.") from None
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
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path} cannot be read as npz: {_first_line(error)}.") from None
    try:
        return _from_named_arrays(arrays, str(path))
    except (IndexError, TypeError) as error:
        raise ValueError(f"{path} does not hold a graph: {_first_line(error)}.") from None


def read_pyg(path: Path) -> TableGraph:
    """Read a `Data` of PyTorch Geometric, or a dict of its tensors, written by torch.save.

    The file is opened in torch's safe mode, which runs no code from it.
    """
    from torch_geometric.data import Data
    from torch_geometric.data import data as module
    from torch_geometric.data.storage import GlobalStorage

    _check_file(path)
    names = ("DataEdgeAttr", "DataTensorAttr")  # not in every version
    classes = [getattr(module, name) for name in names if hasattr(module, name)]
    safe_globals = getattr(torch.serialization, "safe_globals", lambda classes: nullcontext())
    try:
        with safe_globals([Data, GlobalStorage, *classes]), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about files that torch then rejects
            content = torch.load(path, map_location="cpu", weights_only=True)
    except (UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, OSError) as error:
        if zipfile.is_zipfile(path) and "GLOBAL" in str(error):
            raise ValueError(
                f"{path} holds objects that torch's safe mode rejects; "
                "write it again with torch.save(data.to_dict(), path)."
            ) from None
        reason = _first_line(error)
        raise ValueError(f"{path} cannot be read as a torch file: {reason}.") from None
    parts = content.to_dict() if isinstance(content, Data) else content
    if not isinstance(parts, dict) or "edge_index" not in parts:
        raise ValueError(
            f"{path} must hold a Data or a dict with edge_index, got {type(content).__name__}."
        )
    arrays = {k: v.numpy() if torch.is_tensor(v) else v for k, v in parts.items() if v is not None}
    return _from_named_arrays(arrays, str(path))


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
    arrays = {
        "ids": named.get("ids"),
        "labels": named.get("y", named.get("labels")),
        "features": named.get("x", _csr_matrix(named, "attr")),
    }
    adjacency = _csr_matrix(named, "adj")
    if adjacency is None:
        sizes = [np.shape(values)[0] for values in arrays.values() if values is not None]
        adjacency = _edge_matrix(named, sizes[0] if sizes else named.get("num_nodes"), name)
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
    size = int(ends.max(initial=-1) + 1 if num_nodes is None else num_nodes)
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


def _csr_matrix(named: dict[str, Any], prefix: str) -> Any:
    """A sparse matrix from its four arrays; None without them."""
    keys = [f"{prefix}_{part}" for part in ("data", "indices", "indptr", "shape")]
    if not all(key in named for key in keys):
        return None
    data, indices, indptr, shape = (named[key] for key in keys)
    return sp.csr_array((data, indices, indptr), shape=tuple(int(n) for n in shape))


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist.")
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty.")


def _first_line(error: Exception) -> str:
    """The first line of an error message, without its full stop."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:150].rstrip(".")
