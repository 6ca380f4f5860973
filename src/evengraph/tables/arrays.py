"""Build a graph from arrays: an adjacency matrix or edges, features, labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from evengraph.core.errors import one_line_errors
from evengraph.tables.build import TableGraph, assemble
from evengraph.tables.cells import Floats, Ints, import_pandas
from evengraph.tables.columns import TableColumns
from evengraph.tables.edges import id_index, positive_weights, read_weights, undirected_edges
from evengraph.tables.feature_encoder import FeatureEncoder
from evengraph.tables.notes import NoteKind, Notes

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
    id_index(import_pandas().Series(ids, name="ids"), name)
    nodes, encoder = _encode_features(features, num_nodes, links.edge_index, name)
    notes += encoder.notes
    nodes.attrs["file"] = name
    if labels is None:
        notes.add(NoteKind.NO_LABEL, "No labels: every node is unlabelled.")
    else:
        nodes["labels"] = _label_values(labels, num_nodes, name)
    if times is not None:
        nodes["time"] = _per_node(times, num_nodes, "time", name)
    columns = TableColumns(
        label=None if labels is None else "labels", time=None if times is None else "time"
    )
    bools = {}
    for part, mask in (masks or {}).items():
        if part not in PARTS:
            raise ValueError(f"{name}: masks must be called train, val and test, got {part!r}.")
        bools[part] = _per_node(mask, num_nodes, f"{part}_mask", name).astype(bool)
    result = assemble(nodes, links, columns, encoder, notes, ids=ids, masks=bools)
    if labels is not None and class_names is not None and nodes["labels"].dtype.kind in "if":
        result.graph.class_names = _class_names(result.class_names, class_names, name)
    return replace(result, columns=replace(result.columns, label=None, time=None))


def _matrix_edges(matrix: Any, name: str, notes: Notes) -> tuple[Ints, Ints, Floats | None]:
    """Row, column and weight of every positive entry, (M,) each; no weights if all are equal."""
    adjacency = sp.coo_array(_as_float32(matrix))
    if adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
        raise ValueError(f"{name}: the matrix must be square, got shape {adjacency.shape}.")
    weights = import_pandas().Series(np.asarray(adjacency.data), name="matrix")
    numbers = read_weights(weights, name)
    positive = positive_weights(numbers, notes)
    source, target = (end[positive].astype(np.int64) for end in (adjacency.row, adjacency.col))
    numbers = numbers[positive]
    weighted = bool((numbers != numbers[:1]).any())
    return source, target, numbers if weighted else None


def _as_float32(matrix: Any) -> Any:
    """A matrix of half precision in single precision: SciPy has no half precision."""
    half = getattr(matrix, "dtype", None) == np.float16
    return matrix.astype(np.float32) if half else matrix


def _encode_features(
    features: Any, num_nodes: int, edge_index: Tensor, name: str
) -> tuple[Any, FeatureEncoder]:
    """The features as a table, and the encoder that turns it into features."""
    pandas = import_pandas()
    if features is None or not np.shape(features)[-1]:
        nodes = pandas.DataFrame(index=range(num_nodes))
        return nodes, FeatureEncoder.fit(nodes, [], edge_index=edge_index)
    dense = np.asarray(_as_float32(features).todense() if sp.issparse(features) else features)
    if dense.dtype.kind not in "biuf" or dense.ndim != 2 or len(dense) != num_nodes:
        raise ValueError(
            f"{name}: features must be numbers of shape ({num_nodes}, F), got {dense.dtype} of "
            f"shape {dense.shape}."
        )
    names = [f"x{index}" for index in range(dense.shape[1])]
    return pandas.DataFrame(dense, columns=names), FeatureEncoder.passthrough(names, dense)


def _label_values(labels: Any, num_nodes: int, name: str) -> Any:
    """The labels as a column; -1 is unlabelled."""
    array = np.asarray(labels)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    values = import_pandas().Series(_per_node(array, num_nodes, "labels", name))
    return values.where(array != -1) if array.dtype.kind in "if" else values


def _class_names(labels: Sequence[str], class_names: Any, name: str) -> list[str]:
    """Names of the classes that occur, from the names of the classes 0, 1, ..."""
    numbers = [int(label) for label in labels]
    if min(numbers) < 0 or max(numbers) >= len(class_names):
        raise ValueError(
            f"{name}: class_names must hold a name for each class up to {max(numbers)}, got "
            f"{len(class_names)}."
        )
    return [str(class_names[number]) for number in numbers]


def _per_node(values: Any, num_nodes: int, what: str, name: str) -> NDArray[Any]:
    array = np.asarray(values)
    if array.shape != (num_nodes,):
        raise ValueError(
            f"{name}: {what} must hold one value for each of the {num_nodes} nodes, got shape "
            f"{array.shape}."
        )
    return array
