"""Graphs out of arrays: an adjacency matrix, features, labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike, NDArray

from evengraph.tables.cells import need_pandas
from evengraph.tables.edges import tidy_edges, weighed
from evengraph.tables.feature_encoder import FeatureEncoder
from evengraph.tables.ids import node_names
from evengraph.tables.notes import Note, NoteKind
from evengraph.tables.roles import encode_labels, read_times
from evengraph.tables.table_graph import ROLES, TableGraph, assemble

SETS = ("train", "val", "test")
Coded = tuple[NDArray[np.int64] | None, tuple[str, ...], list[Note]]


def from_matrix(
    matrix: Any,
    features: Any = None,
    labels: ArrayLike | None = None,
    *,
    ids: ArrayLike | None = None,
    class_names: Sequence[str] | None = None,
    masks: dict[str, ArrayLike] | None = None,
    times: ArrayLike | None = None,
    name: str = "the graph",
) -> TableGraph:
    """Make a graph of an adjacency matrix and arrays.

    Every entry above 0 is an edge, taken as undirected; negative ones are refused. Features are
    taken as they are, not scaled; NaN is replaced by the median of its column. Without features
    they come from the edges.

    Args:
        matrix: Adjacency, a SciPy sparse matrix or an array.
        features: A row a node, sparse or not.
        labels: A class for each node; -1, NaN, None or an empty text is unlabelled.
        ids: An id for each node. Default: its row from 0.
        class_names: Names of the classes 0, 1, ... where labels are such numbers.
        masks: Bool arrays under train, val and test.
        times: A time for each node, for `ByTime`.
        name: What to call the graph in a complaint.

    Shapes:
        matrix: (N, N); features: (N, F); labels, ids, times, masks: (N,)
    """
    adjacency = sp.coo_array(matrix)
    if adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
        raise ValueError(f"{name}: the matrix must be square, got shape {adjacency.shape}.")
    pandas = need_pandas()
    kept, notes = weighed(pandas.Series(np.asarray(adjacency.data), name="matrix"), name)
    ends = np.stack([adjacency.row[kept], adjacency.col[kept]]).astype(np.int64)
    if not (adjacency.data[kept] != 1).any():
        notes = [note for note in notes if note.kind is not NoteKind.UNUSED_WEIGHTS]
    return from_edge_array(
        ends,
        adjacency.shape[0],
        features,
        name=name,
        notes=notes,
        ids=ids,
        labels=labels,
        class_names=class_names,
        masks=masks or {},
        times=times,
    )


def from_edge_array(
    ends: NDArray[np.int64],
    num_nodes: int,
    features: Any,
    *,
    name: str,
    notes: list[Note],
    ids: Any,
    labels: Any,
    class_names: Any,
    masks: dict[str, ArrayLike],
    times: Any,
) -> TableGraph:
    """Make a graph of edges as positions, (2, M), and arrays as `from_matrix` takes them."""
    if num_nodes < 1:
        raise ValueError(f"{name} holds no nodes.")
    outside = (ends < 0) | (ends >= num_nodes)
    if outside.any():
        edge = int(outside.any(axis=0).argmax())
        raise ValueError(
            f"{name}: edge {edge + 1} is {ends[:, edge].tolist()}, but nodes are numbered from 0 "
            f"to {num_nodes - 1}; {int(outside.any(axis=0).sum())} edges name no node."
        )
    pandas = need_pandas()
    edge_index, more = tidy_edges(ends[0], ends[1], num_nodes)
    notes = [*notes, *more]
    known = np.arange(num_nodes) if ids is None else _column(ids, num_nodes, "ids", name)
    node_names(pandas.Series(known, name="ids"), name)
    nodes, encoder = _features(features, num_nodes, edge_index, name)
    notes += encoder.notes
    missing = Note(NoteKind.NO_LABEL, "No labels: every node is unlabelled.")
    coded: Coded = (None, (), [missing])
    if labels is not None:
        coded = _labels(labels, num_nodes, class_names, name)
    when = None
    if times is not None:
        when = read_times(pandas.Series(_column(times, num_nodes, "time", name), name="time"), name)
    return assemble(
        features=encoder.transform(nodes, edge_index=edge_index),
        edge_index=edge_index,
        labels=coded[0],
        class_names=coded[1],
        masks={part: _mask(mask, num_nodes, part, name) for part, mask in masks.items()},
        times=when,
        ids=known,
        encoder=encoder,
        columns=dict.fromkeys(ROLES) | {"features": list(encoder.needs)},
        notes=notes + coded[2],
    )


def _features(
    features: Any, num_nodes: int, edge_index: torch.Tensor, name: str
) -> tuple[Any, FeatureEncoder]:
    """The features as a table, and what makes them out of it."""
    pandas = need_pandas()
    if features is None or not features.shape[-1]:
        nodes = pandas.DataFrame(index=range(num_nodes))
        return nodes, FeatureEncoder.fit(nodes, [], edge_index=edge_index)
    dense = np.asarray(features.todense() if sp.issparse(features) else features)
    if dense.dtype.kind not in "biuf" or dense.ndim != 2 or len(dense) != num_nodes:
        raise ValueError(
            f"{name}: the features must be numbers of shape ({num_nodes}, F), got {dense.dtype} of "
            f"shape {dense.shape}."
        )
    names = [f"x{index}" for index in range(dense.shape[1])]
    nodes = pandas.DataFrame(dense, columns=names)
    nodes.attrs["file"] = name
    return nodes, FeatureEncoder.as_they_are(names, dense)


def _labels(labels: Any, num_nodes: int, class_names: Any, name: str) -> Coded:
    """Classes as numbers, their names, notes; a label of -1 is none."""
    found = np.asarray(labels)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    found = _column(found, num_nodes, "labels", name)
    values = need_pandas().Series(found, name="labels")
    if found.dtype.kind in "if":
        values = values.where(found != -1)
    coded, names, notes = encode_labels(values, name)
    if class_names is not None and found.dtype.kind in "if":
        numbers = [int(number) for number in names]
        given = [str(word) for word in class_names]
        if min(numbers) < 0 or max(numbers) >= len(given):
            raise ValueError(
                f"{name}: class_names must hold a name for each class up to {max(numbers)}, got "
                f"{len(given)}."
            )
        names = tuple(given[number] for number in numbers)
    return coded, names, notes


def _column(values: Any, num_nodes: int, what: str, name: str) -> NDArray[Any]:
    found = np.asarray(values)
    if found.shape != (num_nodes,):
        raise ValueError(
            f"{name}: {what} must hold one value for each of the {num_nodes} nodes, got shape "
            f"{found.shape}."
        )
    return found


def _mask(mask: ArrayLike, num_nodes: int, part: str, name: str) -> NDArray[np.bool_]:
    if part not in SETS:
        raise ValueError(f"{name}: masks must be called train, val and test, got {part!r}.")
    return _column(mask, num_nodes, f"{part}_mask", name).astype(bool)
