"""Graphs in other formats: NetworkX, GraphML, NumPy archives, PyTorch Geometric."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from evengraph.core.errors import first_line, one_line_errors
from evengraph.core.untrusted import (
    LimitError,
    check_dense,
    check_nodes,
    check_unpacked,
    csr_matrix,
)
from evengraph.core.untrusted import read_npz as read_arrays
from evengraph.tables.build import TableGraph, assemble, build_graph
from evengraph.tables.cells import Floats, Ints
from evengraph.tables.columns import TableColumns, takes_columns
from evengraph.tables.edges import id_index, read_weights, undirected_edges
from evengraph.tables.feature_encoder import FeatureEncoder
from evengraph.tables.notes import NoteKind, Notes

SCALARS = (bool, int, float, str, type(None))


def read_torch(path: Path, keys: Collection[str]) -> dict[str, Any]:
    """The parts of a `Data` or a dict with these keys: arrays, SciPy matrices, numbers, lists."""
    parts = {key: value for key, value in _load(path).items() if key in keys and value is not None}
    # a tensor may repeat its values, in no space at all
    size = sum(p.numel() * p.element_size() for p in parts.values() if torch.is_tensor(p))
    check_unpacked(size, path.stat().st_size, str(path), "write it with torch.save after clone()")
    for key, value in parts.items():
        if torch.is_tensor(value):
            parts[key] = _from_tensor(value, f"{path}: {key}")
            continue
        items = list(value) if isinstance(value, list | tuple) else [value]
        if not all(isinstance(item, SCALARS) for item in items):
            got = type(value).__name__
            raise ValueError(f"{path}: {key} must be a tensor or a list of values, got {got}.")
    return parts


def _load(path: Path) -> dict[str, Any]:
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    classes = [Data, GlobalStorage, DataEdgeAttr, DataTensorAttr]
    safe_globals = getattr(torch.serialization, "safe_globals", lambda classes: nullcontext())
    with path.open("rb") as file:
        is_zip = file.read(4) == b"PK\x03\x04"  # as torch writes since 2020
    try:
        _check_torch_file(path, is_zip)
        with safe_globals(classes), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about files that torch then rejects
            content = torch.load(path, map_location="cpu", weights_only=True)
            parts = content.to_dict() if isinstance(content, Data) else content
    except LimitError:
        raise
    except Exception as error:  # of a damaged file, of any kind
        if is_zip and "GLOBAL" in str(error):
            raise ValueError(
                f"{path} holds objects that torch's safe mode rejects; "
                "write it again with torch.save(data.to_dict(), path)."
            ) from None
        safe_mode = "weights_only" in str(error) or isinstance(error, KeyError)
        reason = "it was not written by torch.save, or holds more than tensors"
        reason = reason if safe_mode else first_line(error)
        raise ValueError(f"{path} cannot be read as a torch file: {reason}.") from None
    if not isinstance(parts, dict) or "edge_index" not in parts:
        got = type(content).__name__
        raise ValueError(f"{path} must hold a Data or a dict with edge_index, got {got}.")
    return parts


def _check_torch_file(path: Path, is_zip: bool) -> None:
    """Check the unpacked size; reject quantized tensors, which state any shape they like."""
    with zipfile.ZipFile(path) if is_zip else path.open("rb") as file:
        if isinstance(file, zipfile.ZipFile):
            unpacked = sum(item.file_size for item in file.infolist())
            check_unpacked(unpacked, path.stat().st_size, str(path), "write it with torch.save")
            names = [name for name in file.namelist() if name.endswith("data.pkl")]
            pickled = b"".join(file.read(name) for name in names)
        else:
            pickled = file.read(2**26)  # old files begin with their pickle
    if b"_rebuild_qtensor" in pickled:
        raise LimitError(f"{path} holds a quantized tensor; write it after dequantize().")


def _from_tensor(tensor: Tensor, name: str) -> Any:
    unusual = {"a nested one": tensor.is_nested, "a quantized one": tensor.is_quantized}
    unusual |= {"one without data": tensor.is_meta, "complex numbers": tensor.is_complex()}
    for kind, applies in unusual.items():
        if applies:
            raise ValueError(f"{name} must be a dense or sparse tensor of numbers, got {kind}.")
    try:
        tensor = tensor.detach()
        return _numbers(tensor) if tensor.layout == torch.strided else _from_sparse(tensor)
    except (TypeError, RuntimeError, ValueError) as error:
        raise ValueError(f"{name} cannot be read: {first_line(error)}.") from None


def _numbers(tensor: Tensor) -> Any:
    """The values of a dense tensor; NumPy has no bfloat16 and no float8."""
    floats = (torch.float16, torch.float32, torch.float64)
    if tensor.is_floating_point() and tensor.dtype not in floats:
        tensor = tensor.float()
    return tensor.resolve_neg().numpy()


def _from_sparse(tensor: Tensor) -> Any:
    """A sparse tensor as a SciPy CSR matrix, its indices checked: torch loads them unchecked."""
    if tensor.dim() != 2 or tensor.dense_dim():
        raise ValueError(f"a sparse tensor must have two dimensions, got {tensor.dim()}")
    shape = np.array(tensor.shape)
    if tensor.layout == torch.sparse_csr:
        arrays = tensor.values(), tensor.col_indices(), tensor.crow_indices()
        matrix = csr_matrix((*map(_numbers, arrays), shape), "sparse")
    elif tensor.layout == torch.sparse_coo:
        tensor._coalesced_(True)  # adding up repeats would trust the indices
        parts = _numbers(tensor.values()), _numbers(tensor.indices())
        matrix = sp.coo_matrix(parts, shape).tocsr()
    else:
        raise ValueError(f"the layout {tensor.layout} is not supported; to_sparse_csr() is")
    matrix.sum_duplicates()
    return matrix


PARTS = ("train", "val", "test")


@one_line_errors()
def from_matrix(
    matrix: Any,
    features: Any = None,
    labels: ArrayLike | None = None,
    *,
    ids: ArrayLike | None = None,
    class_names: Sequence[str] | None = None,
    masks: Mapping[str, ArrayLike] | None = None,
    times: ArrayLike | None = None,
    name: str = "the graph",
) -> TableGraph:
    """Build a graph from an adjacency matrix and arrays.

    Every entry above 0 is the weight of an undirected edge; negative entries raise an error.
    Features are used as they are, without scaling; NaN is replaced by the median of its column.
    Without features, they are computed from the edges.

    Args:
        matrix: Adjacency, a SciPy sparse matrix or an array.
        features: One row per node, sparse or dense.
        labels: A class for each node; -1, NaN, None or an empty text is unlabelled.
        ids: An id for each node. Default: its row number from 0.
        class_names: Names of the classes 0, 1, ... if labels are such numbers.
        masks: Bool arrays under train, val and test.
        times: A time for each node, for `ByTime`.
        name: Name of the graph in error messages.

    Shapes:
        matrix: (N, N); features: (N, F); labels, ids, times, masks: (N,)
    """
    notes = Notes()
    source, target, weights = _matrix_edges(matrix, name, notes)
    num_nodes = np.shape(matrix)[0]
    if num_nodes < 1:
        raise ValueError(f"{name} holds no nodes.")
    links = undirected_edges(source, target, num_nodes, notes, weights)
    ids = np.arange(num_nodes) if ids is None else _per_node(ids, num_nodes, "ids", name)
    id_index(pd.Series(ids, name="ids"), name)
    nodes, encoder = _encode_features(features, num_nodes, links.edge_index, name)
    notes += encoder.notes
    nodes.attrs["file"] = name
    if labels is None:
        notes.add(NoteKind.NO_LABEL, "No labels: every node is unlabelled.")
    else:
        array = np.asarray(labels)
        array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
        values = pd.Series(_per_node(array, num_nodes, "labels", name))
        nodes["labels"] = values.where(array != -1) if array.dtype.kind in "if" else values
    if times is not None:
        nodes["time"] = _per_node(times, num_nodes, "time", name)
    label, time = None if labels is None else "labels", None if times is None else "time"
    columns = TableColumns(label=label, time=time)
    bools = {}
    for part, mask in (masks or {}).items():
        if part not in PARTS:
            raise ValueError(f"{name}: masks must be called train, val and test, got {part!r}.")
        bools[part] = _per_node(mask, num_nodes, f"{part}_mask", name).astype(bool)
    result = assemble(nodes, links, columns, encoder, notes, ids=ids, masks=bools)
    if labels is not None and class_names is not None and nodes["labels"].dtype.kind in "if":
        numbers = [int(label) for label in result.class_names]
        if min(numbers) < 0 or max(numbers) >= len(class_names):
            raise ValueError(
                f"{name}: class_names must hold a name for each class up to {max(numbers)}, got "
                f"{len(class_names)}."
            )
        result.graph.class_names = [str(class_names[number]) for number in numbers]
    return replace(result, columns=replace(result.columns, label=None, time=None))


def _matrix_edges(matrix: Any, name: str, notes: Notes) -> tuple[Ints, Ints, Floats | None]:
    """Row, column and weight of every positive entry, (M,) each; no weights if all are equal."""
    adjacency = sp.coo_array(_as_float32(matrix))
    if adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
        raise ValueError(f"{name}: the matrix must be square, got shape {adjacency.shape}.")
    weights = pd.Series(adjacency.data, name="matrix")
    numbers, positive = read_weights(weights, name, notes)
    source, target = (end[positive].astype(np.int64) for end in (adjacency.row, adjacency.col))
    return source, target, numbers if (numbers != numbers[:1]).any() else None


def _as_float32(matrix: Any) -> Any:
    """A matrix of half precision in single precision: SciPy has no half precision."""
    half = getattr(matrix, "dtype", None) == np.float16
    return matrix.astype(np.float32) if half else matrix


def _encode_features(
    features: Any, num_nodes: int, edge_index: Tensor, name: str
) -> tuple[Any, FeatureEncoder]:
    if features is None or not np.shape(features)[-1]:
        nodes = pd.DataFrame(index=range(num_nodes))
        return nodes, FeatureEncoder.fit(nodes, [], edge_index=edge_index)
    dense = np.asarray(_as_float32(features).todense() if sp.issparse(features) else features)
    if dense.dtype.kind not in "biuf" or dense.ndim != 2 or len(dense) != num_nodes:
        raise ValueError(
            f"{name}: features must be numbers of shape ({num_nodes}, F), got {dense.dtype} of "
            f"shape {dense.shape}."
        )
    names = [f"x{index}" for index in range(dense.shape[1])]
    return pd.DataFrame(dense, columns=names), FeatureEncoder.passthrough(names, dense)


def _per_node(values: Any, num_nodes: int, what: str, name: str) -> NDArray[Any]:
    array = np.asarray(values)
    if array.shape != (num_nodes,):
        raise ValueError(
            f"{name}: {what} must hold one value for each of the {num_nodes} nodes, got shape "
            f"{array.shape}."
        )
    return array


CSR_PARTS = ("data", "indices", "indptr", "shape")
# Names of arrays that npz and PyG files may hold; others are not read.
KEYS = frozenset(
    ["edge_index", "edge_weight", "edge_attr", "x", "y", "labels", "class_names", "ids", "time"]
    + ["num_nodes", *(f"{part}_mask" for part in PARTS)]
    + [f"{matrix}_{part}" for matrix in ("adj", "attr") for part in CSR_PARTS]
)


@takes_columns
def from_networkx(network: Any, *, name: str = "the graph", **columns: Any) -> TableGraph:
    """Build a graph from a NetworkX graph; its attributes are columns as in `from_frames`.

    Args:
        network: Any kind of NetworkX graph; directions and keys of edges are not used. Attributes
            of edges are columns, too.
        name: Name of the graph in error messages.
        columns: The fields of `TableColumns` by the names of attributes; ids and ends are known.
    """
    if not hasattr(network, "nodes") or not hasattr(network, "edges"):
        raise ValueError(f"network must be a NetworkX graph, got {type(network).__name__}.")
    return _build_network(network, TableColumns(**columns), name)


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
    rows = {node: row for row, node in enumerate(network.nodes)}
    nodes = pd.DataFrame([dict(network.nodes[node]) for node in rows], index=range(len(rows)))
    ends = [(rows[a], rows[b], data) for a, b, data in network.edges(data=True)]
    sources, targets = [a for a, _, _ in ends], [b for _, b, _ in ends]
    edges = pd.DataFrame({"(source)": sources, "(target)": targets})
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
    """Read a `Data`, or a dict of its tensors, in torch's safe mode, which runs no code."""
    _check_file(path)
    return _build(read_torch(path, KEYS), path)


def _build(arrays: dict[str, Any], path: Path) -> TableGraph:
    try:
        return _from_named_arrays(arrays, str(path))
    except (IndexError, TypeError, OverflowError) as error:
        raise ValueError(f"{path} does not hold a graph: {first_line(error)}.") from None


def _from_named_arrays(named: dict[str, Any], name: str) -> TableGraph:
    notes = Notes()
    masks = {part: named[key] for part in PARTS if named.get(key := f"{part}_mask") is not None}
    for part, mask in masks.items():
        if np.ndim(mask) == 2:
            notes.add(NoteKind.SPLIT, f"{part}_mask holds several splits: using the first.")
            masks[part] = mask[:, 0]
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
    arrays |= {"class_names": named.get("class_names"), "times": named.get("time")}
    result = from_matrix(adjacency, **arrays, masks=masks, name=name)
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
    size = num_nodes
    if size is None:  # a file without features and labels
        number = np.asarray(named.get("num_nodes", ends.max(initial=-1) + 1))
        if number.size != 1 or number.dtype.kind not in "iu" or number.item() < 0:
            raise ValueError(f"{name}: num_nodes must be a whole number, got {str(number)[:40]}.")
        size = int(number.item())
        check_nodes(size, ends.shape[1], name)
    outside = ((ends < 0) | (ends >= size)).any(axis=0)
    if outside.any():
        edge = int(outside.argmax())
        raise ValueError(
            f"{name}: edge {edge + 1} is {ends[:, edge].tolist()}, but nodes are numbered from 0 "
            f"to {size - 1}; edges with an unknown node: {int(outside.sum())}."
        )
    weights, attributes, count = named.get("edge_weight"), named.get("edge_attr"), ends.shape[1]
    if weights is None and attributes is not None and np.asarray(attributes).dtype.kind == "f":
        weights = attributes if np.size(attributes) == count else None
    weights = np.ones(count) if weights is None else np.asarray(weights)
    if weights.size != count or weights.dtype.kind not in "biuf":
        raise ValueError(
            f"{name}: edge_weight must hold a number for each of the {count} edges, got shape "
            f"{weights.shape}."
        )
    weights = weights.astype(np.float64).reshape(count)
    return sp.coo_array((weights, ends.astype(np.int64)), shape=(size, size))


def _csr_matrix(named: dict[str, Any], matrix: str, name: str) -> Any:
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


def is_hetero(data: Any) -> bool:
    """Whether it is PyG's `HeteroData`, which is slow to import."""
    return type(data).__name__ == "HeteroData"


def hetero_tables(data: Any, id: str | None = None) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """The nodes table, edges tables and other tables of PyG's `HeteroData`.

    The type with labels `y` is that of the nodes; `id`, such as account_id, names it without any.
    Reversed edges, whose names begin with rev_, say nothing new.
    """
    frame, tables, edges = pd.DataFrame, dict[str, Any](), dict[str, Any]()
    kinds = [k for k in data.node_types if f"{k}_id" == id or (id is None and "y" in data[k])]
    if len(kinds) != 1:
        known = ", ".join(data.node_types)
        raise ValueError(f"One node type must have labels y, got {len(kinds)} of: {known}.")
    for kind in data.node_types:
        store = data[kind].to("cpu")
        tables[kind] = frame({f"{kind}_id": [f"{kind}:{row}" for row in range(store.num_nodes)]})
        if (x := store.get("x")) is not None:
            x = frame((x.to_dense() if x.is_sparse else x).reshape(len(x), -1).numpy())
            tables[kind] = tables[kind].join(x.add_prefix("x"))
    nodes = tables.pop(kinds[0])
    if (labels := data[kinds[0]].get("y")) is not None:
        nodes["label"] = labels.reshape(-1).cpu().numpy()
        nodes["label"] = nodes["label"].where(nodes["label"] >= 0).astype("Int64")
    for part in [part for part in PARTS if f"{part}_mask" in data[kinds[0]]]:
        nodes.loc[data[kinds[0]][f"{part}_mask"].cpu().numpy(), "split"] = part
    for source, name, target in data.edge_types:
        if not (name.startswith("rev_") and (target, name[4:], source) in data.edge_types):
            ends = data[source, name, target].edge_index.tolist()
            heads = [("source", source), ("target", target)]
            heads = heads if source == target else [(f"{k}_id", k) for _, k in heads]
            rows = {h: [f"{k}:{i}" for i in end] for (h, k), end in zip(heads, ends, strict=True)}
            unique = f"{source} {name} {target}" if name in edges else name
            edges[unique] = frame(rows)
    return nodes, edges, tables
