"""Graphs that are graphs already: NetworkX, GraphML, matrices, npz files, PyG's Data."""

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
from numpy.typing import ArrayLike

from evengraph.tables.arrays import SETS, from_edge_array, from_matrix
from evengraph.tables.build import from_frames
from evengraph.tables.cells import need_pandas
from evengraph.tables.notes import Note, NoteKind
from evengraph.tables.table_graph import TableGraph

__all__ = ["from_matrix", "from_networkx", "read_graphml", "read_npz", "read_pyg"]


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
    """Make a graph of a NetworkX graph, whose node attributes are columns as in `from_frames`.

    Args:
        network: Any kind of NetworkX graph; directions and keys of edges are not used.
        label: Attribute of nodes with the classes. Default: one called label or class.
        weight: Attribute of edges with weights.
        split: Attribute of nodes that says train, val or test.
        time: Attribute of nodes with dates or numbers.
        features: Attributes of nodes to make features of. Default: all that are nothing else.
        name: What to call the graph in a complaint.
    """
    pandas = need_pandas()
    if not hasattr(network, "nodes") or not hasattr(network, "edges"):
        raise ValueError(f"network must be a NetworkX graph, got {type(network).__name__}.")
    numbered = {node: index for index, node in enumerate(network.nodes)}
    attributes = [dict(network.nodes[node]) for node in network.nodes]
    nodes = pandas.DataFrame(attributes, index=range(len(numbered)))
    ends = [(numbered[a], numbered[b], data) for a, b, data in network.edges(data=True)]
    edges = pandas.DataFrame(
        {"(source)": [a for a, _, _ in ends], "(target)": [b for _, b, _ in ends]}
    )
    if weight is not None:
        edges[weight] = [data.get(weight) for _, _, data in ends]
    # names that nobody gives an attribute, for an attribute may be called id, too
    nodes.insert(0, "(node)", range(len(numbered)))
    nodes.attrs["file"] = edges.attrs["file"] = name
    own = from_frames(
        nodes,
        edges,
        label=label,
        id="(node)",
        source="(source)",
        target="(target)",
        weight=weight,
        split=split,
        time=time,
        features=features,
    )
    ids = np.empty(len(numbered), dtype=object)
    ids[:] = list(numbered)
    columns = own.columns | {"id": None, "source": None, "target": None}
    return replace(own, ids=ids, columns=columns)


def read_graphml(path: Path, **columns: Any) -> TableGraph:
    """Read a GraphML file; its attributes are columns as in `from_networkx`."""
    import networkx

    _need_file(path)
    try:
        network = networkx.read_graphml(path)
    except (networkx.NetworkXError, SyntaxError, ValueError, KeyError, UnicodeError) as error:
        raise ValueError(f"{path} cannot be read as GraphML: {_short(error)}.") from None
    if not len(network):
        raise ValueError(f"{path} holds no nodes.")
    return from_networkx(network, name=str(path), **columns)


def read_npz(path: Path) -> TableGraph:
    """Read a NumPy file with the arrays of a graph; pickled objects are refused.

    Needed are the edges: `edge_index`, (2, E) or (E, 2), or the parts of a SciPy CSR matrix,
    `adj_data`, `adj_indices`, `adj_indptr`, `adj_shape`. May be there: the features `x`, (N, F),
    or `attr_data`, `attr_indices`, `attr_indptr`, `attr_shape`; the labels `y` or `labels`, (N,),
    -1 for unlabelled; `class_names`; `ids`; `time`; `train_mask`, `val_mask`, `test_mask`.
    """
    _need_file(path)
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} cannot be read as npz: it is no archive of numpy.savez.")
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path} cannot be read as npz: {_short(error)}.") from None
    try:
        return _from_parts(arrays, str(path))
    except (IndexError, TypeError) as error:
        raise ValueError(f"{path} does not hold a graph: {_short(error)}.") from None


def read_pyg(path: Path) -> TableGraph:
    """Read a `Data` of PyTorch Geometric, or a dict of its tensors, that torch.save has written.

    The file is opened in torch's safe mode, which runs no code out of it.
    """
    from torch_geometric.data import Data
    from torch_geometric.data import data as module
    from torch_geometric.data.storage import GlobalStorage

    _need_file(path)
    known = [Data, GlobalStorage, *_classes(module, "DataEdgeAttr", "DataTensorAttr")]
    allowed = getattr(torch.serialization, "safe_globals", lambda classes: nullcontext())
    try:
        with allowed(known), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on what is odd in a file that it then refuses
            found = torch.load(path, map_location="cpu", weights_only=True)
    except (UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, OSError) as error:
        if zipfile.is_zipfile(path) and "GLOBAL" in str(error):
            raise ValueError(
                f"{path} holds more than a graph of tensors, which torch's safe mode refuses; "
                "write it again with torch.save(data.to_dict(), path)."
            ) from None
        raise ValueError(f"{path} cannot be read as a file of torch: {_short(error)}.") from None
    parts = found.to_dict() if isinstance(found, Data) else found
    if not isinstance(parts, dict) or "edge_index" not in parts:
        raise ValueError(
            f"{path} must hold a Data or a dict with edge_index, got {type(found).__name__}."
        )
    arrays = {k: v.numpy() if torch.is_tensor(v) else v for k, v in parts.items() if v is not None}
    return _from_parts(arrays, str(path))


def _from_parts(arrays: dict[str, Any], name: str) -> TableGraph:
    """A graph out of named arrays, as npz and PyG files have them."""
    features = arrays.get("x", _csr(arrays, "attr"))
    labels = arrays.get("y", arrays.get("labels"))
    adjacency = _csr(arrays, "adj")
    if "edge_index" not in arrays and adjacency is None:
        raise ValueError(
            f"{name} has no edges: edge_index or adj_data, adj_indices, adj_indptr and adj_shape "
            f"are needed; there are {', '.join(map(str, arrays)) or 'no arrays'}."
        )
    masks: dict[str, ArrayLike] = {}
    notes = []
    for part in SETS:
        mask = arrays.get(f"{part}_mask")
        if mask is not None:
            if np.ndim(mask) == 2:
                text = f"{part}_mask holds several splits: the first is taken."
                notes.append(Note(NoteKind.SPLIT, text))
                mask = mask[:, 0]
            masks[part] = mask
    given: dict[str, Any] = {
        "ids": arrays.get("ids"),
        "labels": labels,
        "class_names": arrays.get("class_names"),
        "masks": masks,
        "times": arrays.get("time"),
    }
    if adjacency is not None:
        own = from_matrix(adjacency, features, name=name, **given)
        return replace(own, notes=(*notes, *own.notes))
    ends = np.asarray(arrays["edge_index"])
    if ends.ndim == 2 and ends.shape[0] != 2 and ends.shape[1] == 2:
        ends = ends.T
    if ends.ndim != 2 or ends.shape[0] != 2 or ends.dtype.kind not in "iu":
        raise ValueError(
            f"{name}: edge_index must be whole numbers of shape (2, E), got {ends.dtype} of shape "
            f"{ends.shape}."
        )
    sizes = [len(a) for a in (given["ids"], labels) if a is not None]
    sizes += [features.shape[0]] if features is not None else []
    sizes += [int(arrays["num_nodes"])] if "num_nodes" in arrays else []
    num_nodes = sizes[0] if sizes else int(ends.max(initial=-1)) + 1
    return from_edge_array(
        ends.astype(np.int64), num_nodes, features, name=name, notes=notes, **given
    )


def _csr(arrays: dict[str, Any], prefix: str) -> Any:
    """A sparse matrix out of its four parts, None without them."""
    keys = [f"{prefix}_{part}" for part in ("data", "indices", "indptr", "shape")]
    if not all(key in arrays for key in keys):
        return None
    data, indices, indptr, shape = (arrays[key] for key in keys)
    return sp.csr_array((data, indices, indptr), shape=tuple(int(n) for n in shape))


def _classes(module: Any, *names: str) -> list[Any]:
    return [getattr(module, name) for name in names if hasattr(module, name)]


def _need_file(path: Path) -> None:
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist.")
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty.")


def _short(error: Exception) -> str:
    """The first line of a reason, without its full stop."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:150].rstrip(".")
