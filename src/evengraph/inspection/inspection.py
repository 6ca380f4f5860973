"""inspect_graph: measure a graph before training."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.errors import ArgumentError
from evengraph.core.task import edge_weight
from evengraph.inspection.findings import Finding, find, recommend
from evengraph.inspection.leaks import Leak, leaks_in_features, leaks_in_table
from evengraph.inspection.measures import (
    Bools,
    Components,
    Degrees,
    Edges,
    Features,
    Homophily,
    Ints,
    Labels,
    Matrix,
    Reach,
    component_ids,
    count_components,
    count_degrees,
    count_labels,
    measure_features,
    measure_homophily,
    measure_reach,
    read_edges,
)


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """The result of `inspect_graph`.

    `findings` are the measurements in sentences, warnings first, then notes, then good news;
    `recommendation` says what to do.
    """

    name: str
    num_nodes: int
    labels: Labels
    homophily: Homophily
    edges: Edges
    degrees: Degrees
    components: Components
    reach: Reach
    features: Features
    leaks: tuple[Leak, ...]
    findings: tuple[Finding, ...] = ()
    recommendation: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        """Findings, key numbers and classes, for notebooks."""
        from evengraph.report.notebook import inspection_html

        return inspection_html(self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """The inspection as JSON-compatible values; undefined ones are None."""
        from evengraph import __version__

        content = {"schema": 1, "evengraph": __version__, **asdict(self)}
        return dict(json.loads(json.dumps(content)))  # tuples become lists


def inspect_graph(
    graph: Data,
    *,
    labelled: Tensor | None = None,
    hops: int = 4,
    table: Any = None,
    label: str | None = None,
    id: str | None = None,
    class_names: Sequence[str] | None = None,
    hashed: Any = None,
    feature_names: Sequence[str] | None = None,
) -> Inspection:
    """Measure classes, edges, reach and features of a graph, and explain the results.

    Every step is sparse and linear in nodes, edges and entries of x. Edges are read in both
    directions.

    Args:
        graph: Edges `edge_index`, labels `y` with -1 for unlabelled, and optional features `x`.
        labelled: The nodes whose label may be used; by default all labelled ones.
        hops: Largest distance from labelled nodes to count.
        table: The node table that x was encoded from, a pandas DataFrame; leaks are then named
            by its columns.
        label: Its label column; required with a table.
        id: Its id column.
        class_names: One name per class; by default those of the graph.
        hashed: Which features are buckets of hashed words (`FeatureEncoder.hashed`).
        feature_names: One name per column of x; by default those of the graph, or numbers.

    Shapes:
        graph.x: (N, F), graph.edge_index: (2, E), graph.y: (N,)
        labelled: bool, (N,); hashed: bool, (F,)
    """
    labels, known = _labels(graph, labelled)
    number = int(labels.max()) + 1
    if class_names is None and "class_names" in graph:
        class_names = graph.class_names
    names = [str(name) for name in class_names or map("class {}".format, range(number))]
    if len(names) < number:
        raise ValueError(f"class_names must hold {number} names, got {len(names)}.")
    neighbours, edges = read_edges(_numpy(graph.edge_index), len(labels))
    component = component_ids(neighbours)
    x = _features(graph)
    mask = None if hashed is None else np.asarray(hashed, dtype=bool)
    if mask is not None and mask.shape != x.shape[1:]:
        raise ValueError(f"hashed must be of shape {x.shape[1:]}, got {mask.shape}.")
    features, columns = measure_features(x, labels, known, len(names), mask)
    leaks: list[Leak] = []
    if table is not None:
        if label is None:
            raise ValueError("label must name the label column of the table, got None.")
        leaks = leaks_in_table(table, label, id)
    if not leaks:  # a leaky column of the table would be reported again under another name
        usable = np.where(known, labels, -1)
        if feature_names is None and "feature_names" in graph:
            feature_names = graph.feature_names
        named = [str(name) for name in feature_names or ()]
        named = named if len(named) == x.shape[1] else []
        leaks = leaks_in_features(x, columns, usable, names, named)
    inspection = Inspection(
        name=str(graph.name) if "name" in graph else "",
        num_nodes=len(labels),
        labels=count_labels(labels, known, names),
        homophily=measure_homophily(neighbours.pairs, labels, known, len(names)),
        edges=replace(
            edges,
            weighted=edge_weight(graph) is not None,
            relations=tuple(graph.relation_names) if "relation_names" in graph else (),
        ),
        degrees=count_degrees(neighbours),
        components=count_components(component, known),
        reach=measure_reach(neighbours, component, labels, known, len(names), hops),
        features=features,
        leaks=tuple(leaks),
    )
    return replace(inspection, findings=find(inspection), recommendation=recommend(inspection))


def _labels(graph: Data, labelled: Tensor | None) -> tuple[Ints, Bools]:
    """The label of each node, and whether it may be used."""
    if graph.edge_index is None:
        raise ValueError("graph.edge_index must hold the edges; this graph has none.")
    num_nodes = graph.num_nodes
    if not num_nodes:
        raise ValueError("The graph has no nodes.")
    if graph.y is None or graph.y.shape != (num_nodes,):
        raise ValueError(f"graph.y must hold one label for each of the {num_nodes} nodes.")
    labels = _numpy(graph.y).astype(np.int64)
    if labels.min() < -1:
        raise ValueError(f"labels must be -1 for unlabelled or a class, got {labels.min()}.")
    known = labels >= 0
    if labelled is not None:
        if labelled.dtype != torch.bool or labelled.shape != (num_nodes,):
            raise ValueError(
                f"labelled must be a bool mask of shape ({num_nodes},), "
                f"got {labelled.dtype} of shape {tuple(labelled.shape)}."
            )
        known &= _numpy(labelled)
    if not known.any():
        raise ArgumentError("No node has a label.", argument="label")
    return labels, known


def _features(graph: Data) -> Matrix:
    """The features as an array; a graph without them has a matrix without columns."""
    x = graph.x
    if x is None:
        return np.zeros((graph.num_nodes, 0), dtype=np.float32)
    if x.layout != torch.strided or x.dim() != 2 or len(x) != graph.num_nodes:
        raise ValueError(
            f"graph.x must be a dense matrix with {graph.num_nodes} rows, "
            f"got {x.layout} of shape {tuple(x.shape)}."
        )
    if x.dtype in (torch.float16, torch.bfloat16):  # NumPy has no bfloat16 and is slow with half
        x = x.float()
    return _numpy(x)


def _numpy(tensor: Tensor) -> Matrix:
    return np.asarray(tensor.detach().cpu().numpy())
