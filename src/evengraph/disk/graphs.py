"""Between a graph in memory and a packed graph."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.graphs import edge_weight
from evengraph.disk.packed_graph import MASKS, PackedGraph
from evengraph.disk.text_array import encode_texts
from evengraph.disk.writer import PackWriter
from evengraph.ops import undirected_adjacency


def pack_graph(
    graph: Data,
    path: str | Path,
    *,
    ids: NDArray[Any] | None = None,
    dtype: DTypeLike = np.float32,
    source: Mapping[str, Any] | None = None,
    **header: Any,
) -> PackedGraph:
    """Write a graph that is in memory as a packed graph.

    Edges become undirected; self-loops are dropped and repeated edges merged.

    Args:
        graph: Features `x`, edges `edge_index`, and if it has them weights, labels `y`, masks and
            `class_names`.
        path: The folder to write; it must not exist.
        ids: One per node, numbers or text. Default: row numbers from 0.
        dtype: float32 or float16, of the features.
        source: What the graph is made of, for graph.json.
        header: Further entries of graph.json.

    Shapes:
        graph.x: (N, F), graph.edge_index: (2, E), graph.y: (N,); ids: (N,)
    """
    num_nodes = int(graph.num_nodes or 0)
    labels = torch.full((num_nodes,), -1) if graph.y is None else graph.y.cpu()
    number = int(labels.max()) + 1 if len(labels) else 0
    names = graph.get("class_names") or [str(label) for label in range(number)]
    with PackWriter(path, source or {}) as writer:
        _write_edges(writer, graph, num_nodes)
        writer.write("x", np.ascontiguousarray(graph.x.detach().cpu().numpy(), dtype=dtype))
        writer.write("y", labels.numpy().astype(np.int32))
        write_ids(writer, np.arange(num_nodes) if ids is None else ids)
        for part in MASKS:
            mask = graph.get(f"{part}_mask")
            if isinstance(mask, Tensor) and mask.shape == (num_nodes,):
                writer.write(f"{part}_mask", mask.cpu().numpy().astype(bool))
        if isinstance(graph.get("time"), Tensor):
            writer.write("time", graph.time.cpu().numpy())
        counts = torch.bincount(labels[labels >= 0], minlength=len(names)).tolist()
        return writer.publish(class_names=list(names), class_counts=counts, **header)


def _write_edges(writer: PackWriter, graph: Data, num_nodes: int) -> None:
    """Write indptr, indices and the weights, if there are any."""
    weight = edge_weight(graph)
    matrix = undirected_adjacency(graph.edge_index.cpu(), num_nodes, weight)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    writer.write("indptr", matrix.indptr.astype(np.int64))
    writer.write("indices", matrix.indices.astype(index_dtype(num_nodes)))
    if weight is not None:
        writer.write("edge_weight", matrix.data.astype(np.float32))


def write_ids(writer: PackWriter, ids: NDArray[Any]) -> None:
    """Write ids: integers as they are, all others as text."""
    if ids.dtype.kind in "iu":
        writer.write("ids", ids.astype(np.int64))
        return
    content, lengths = encode_texts([str(value) for value in ids.tolist()])
    writer.write("ids", content)
    writer.write("ids_offsets", np.concatenate([[0], np.cumsum(lengths)]))


def index_dtype(num_nodes: int) -> type[np.signedinteger[Any]]:
    """The smallest of int32 and int64 that numbers all nodes."""
    return np.int32 if num_nodes <= np.iinfo(np.int32).max else np.int64


def unpack_graph(packed: PackedGraph) -> Data:
    """Read a packed graph into memory, as the readers of tables and files give it.

    Shapes:
        x: float32, (N, F); edge_index: int64, (2, E), sorted; y: int64, (N,)
    """
    degrees = np.diff(packed.indptr)
    rows = np.repeat(np.arange(packed.num_nodes), degrees)
    graph = Data(
        x=torch.from_numpy(packed.x.astype(np.float32)),
        edge_index=torch.from_numpy(np.stack([rows, packed.indices])),
        y=torch.from_numpy(packed.y.astype(np.int64)),
    )
    if packed.edge_weight is not None:
        graph.edge_weight = torch.from_numpy(np.array(packed.edge_weight))
    if packed.class_names:
        graph.class_names = list(packed.class_names)
    for part in MASKS:
        mask = packed.mask(part)
        if mask is not None:
            graph[f"{part}_mask"] = torch.from_numpy(np.array(mask))
    if "time" in packed.header["arrays"]:
        graph.time = torch.from_numpy(np.array(packed.array("time")))
    return graph
