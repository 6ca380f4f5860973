"""Alignment: number columns of another graph, brought to the level that they had in training.

Views or prices differ between countries and years by a factor that says nothing about classes, and
what was learnt on one graph is then off on another. A change of class shares moves columns, too,
but not as a whole: it moves one tail more than the other. Only columns whose quartiles have all
moved by about the same step are aligned.
"""

from __future__ import annotations

from copy import copy

import numpy as np
import torch
from torch_geometric.data import Data

from evengraph.methods import Method
from evengraph.ops.signature import feature_signatures, matching_signatures
from evengraph.pipeline.model_info import ModelInfo

ENOUGH = 200  # nodes from which quartiles are worth trusting
MOVED = 0.4  # standard deviations from which on a median has moved
EVENLY = 0.55  # of the largest step of a quartile; if the smallest is less, a tail has moved
DISTINCT = 10  # values from which on a column is a measurement, not a code
QUARTILES = (0.25, 0.5, 0.75)


def align(graph: Data, method: Method, info: ModelInfo) -> tuple[Data, str]:
    """Move the number columns of a graph that have moved as a whole back to where they were.

    Dates, flags and categories stay, and so does a graph that holds the nodes of training.

    Returns:
        The graph, and a sentence about the columns; empty if nothing was done.
    """
    if info.encoder is None or info.statistics is None or not info.statistics.quartiles:
        return graph, ""
    if graph.num_nodes < ENOUGH or _holds_training_nodes(graph, method):
        return graph, ""
    columns = np.flatnonzero(info.encoder.numbers)
    values = graph.x[:, columns].double().cpu().numpy()
    deviations = np.asarray(info.statistics.deviations)[columns]
    before = np.asarray(info.statistics.quartiles).reshape(-1, len(QUARTILES)).T
    steps = np.quantile(values, QUARTILES, axis=0) - before
    largest, smallest = np.abs(steps).max(0), np.abs(steps).min(0)
    moved = (smallest >= EVENLY * largest) & (np.abs(np.sign(steps).sum(0)) == len(QUARTILES))
    moved &= np.abs(steps[1]) >= MOVED * deviations
    moved &= np.array([len(np.unique(column)) >= DISTINCT for column in values.T], dtype=bool)
    if not moved.any():
        return graph, ""
    shift = torch.zeros(graph.num_features, dtype=graph.x.dtype)
    shift[columns[moved]] = torch.from_numpy(steps[1][moved]).to(shift)
    aligned = copy(graph)
    aligned.x = graph.x - shift.to(graph.x.device)
    sizes = zip(columns[moved], (steps[1] / deviations)[moved], strict=True)
    return aligned, _describe([(info.encoder.names[index], float(step)) for index, step in sizes])


def _holds_training_nodes(graph: Data, method: Method) -> bool:
    """Whether most of the nodes that were learnt from are in the same rows, with their features."""
    nodes, _, signatures = method.labelled_
    index = (nodes < graph.num_nodes).nonzero().squeeze(1)
    found = feature_signatures(graph.x[nodes[index].to(graph.x.device)])
    same = matching_signatures(found.to(signatures.device), signatures[index])
    return 2 * int(same.sum()) > len(nodes)


def _describe(moved: list[tuple[str, float]]) -> str:
    parts = [f"{name} by {step:+.1f} standard deviations" for name, step in moved]
    return (
        f"Moved as a whole since training, and moved back: {', '.join(parts)}. "
        "This assumes similar nodes, measured at another place or time."
    )
