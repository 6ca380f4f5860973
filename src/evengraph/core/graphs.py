"""What a graph holds for methods: features, edges, their weights and relations."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from torch_geometric.data import Data

EDGE_PARTS = ("relation_index", "relation_weight", "num_relations", "relation_names")
"""What a graph may hold about its edges, beside `edge_index` and their weights."""


def bare_graph(graph: Data, **values: Any) -> Data:
    """Features and edges with weights and relations, without all else; and given values.

    Shapes:
        edge_index: (2, E), edge_weight: (E,)
        relation_index: (3, R), relation, node and neighbour; relation_weight: (R,)
    """
    parts = {"x": _without_grad(graph.x), "edge_index": graph.edge_index}
    weight = edge_weight(graph)
    if weight is not None:
        parts["edge_weight"] = _without_grad(weight)
    parts |= {name: graph[name] for name in EDGE_PARTS if name in graph}
    from torch_geometric.data import Data  # slow to import; not every command needs it

    return Data(**parts | values)


def _without_grad(values: Tensor) -> Tensor:
    """Values that no gradient flows to; the same tensor unless it requires one."""
    return values.detach() if values.requires_grad else values


def edge_weight(graph: Data) -> Tensor | None:
    """Weights of the edges, (E,): `edge_weight`, or `edge_attr` if it is one number per edge."""
    weight = graph.edge_weight if "edge_weight" in graph else None
    if weight is None and "edge_attr" in graph and _is_column(graph.edge_attr):
        weight = graph.edge_attr
    if isinstance(weight, Tensor) and weight.dim() == 2 and weight.shape[1] == 1:
        weight = weight.squeeze(1)
    return weight


def check_edges(edge_index: Tensor, num_nodes: int) -> None:
    """Raise ValueError for an edge of a node that the graph does not have."""
    if edge_index.numel() and (edge_index.min() < 0 or edge_index.max() >= num_nodes):
        raise ValueError(f"edge_index must hold node ids from 0 to {num_nodes - 1}.")


def check_edge_weight(graph: Data) -> None:
    """Raise ValueError for weights that are no finite numbers from 0 on, one per edge."""
    weight, size = edge_weight(graph), graph.edge_index.shape[1]
    if weight is None:
        return
    name = "edge_weight" if graph.get("edge_weight") is not None else "edge_attr"
    rule = f"graph.{name} must hold a number from 0 on for each of the {size} edges"
    if not isinstance(weight, Tensor) or weight.shape != (size,):
        raise ValueError(f"{rule}, got shape {tuple(getattr(weight, 'shape', ()))}.")
    wrong = ~(torch.isfinite(weight) & (weight >= 0))
    if wrong.any():
        edge = int(wrong.nonzero()[0])
        hint = "" if name == "edge_weight" else " Delete it if it is no weight."
        raise ValueError(f"{rule}, got {float(weight[edge])} for edge {edge}.{hint}")


def keep_edges(graph: Data, keep: Tensor, relations: Tensor | None = None) -> Data:
    """A copy of the graph with some of its edges.

    Args:
        keep: Which edges.
        relations: Which relations; by default those between nodes that lose no edge: nothing says
            which of several edges a relation belongs to.

    Shapes:
        keep: bool, (E,); relations: bool, (R,)
    """
    result = copy(graph)
    result.edge_index = graph.edge_index[:, keep]
    for name in ("edge_weight", "edge_attr", "edge_time"):
        if isinstance(graph.get(name), Tensor):
            result[name] = graph[name][keep]
    if "relation_index" in graph:
        if relations is None:
            relations = _whole_relations(graph, keep)
        for name in ("relation_index", "relation_weight", "relation_time"):
            if isinstance(graph.get(name), Tensor):
                result[name] = graph[name][..., relations]
    return result


def _whole_relations(graph: Data, keep: Tensor) -> Tensor:
    """Which relations are between nodes all of whose edges are kept, at least one, (R,)."""
    size, (_, node, other) = graph.num_nodes, graph.relation_index
    kept, dropped = (
        torch.cat([start * size + end, end * size + start])
        for start, end in (graph.edge_index[:, keep], graph.edge_index[:, ~keep])
    )
    keys = node * size + other
    return torch.isin(keys, kept) & ~torch.isin(keys, dropped)


def count_relations(graph: Data) -> int:
    """Number of relations whose neighbours are averaged apart."""
    return int(graph.num_relations) if "relation_index" in graph else 0


def check_relations(graph: Data) -> None:
    """Raise ValueError for relations that are not given as `relation_index` and their number."""
    if "relation_index" not in graph:
        return
    index = graph.relation_index
    if index.dim() != 2 or index.shape[0] != 3 or index.is_floating_point():
        raise ValueError(
            "graph.relation_index must hold relation, node and neighbour as integers, shape (3, R)."
        )
    largest = int(index[0].max()) if index.numel() else -1
    if "num_relations" not in graph or graph.num_relations <= largest:
        raise ValueError(f"graph.num_relations must be above {largest}, the last relation.")


def _is_column(values: Any) -> bool:
    """Whether a tensor is one floating-point number per edge."""
    if not isinstance(values, Tensor) or not values.is_floating_point():
        return False
    return values.dim() == 1 or (values.dim() == 2 and values.shape[1] == 1)


def same_graph(one: Data, other: Data) -> bool:
    """Whether two graphs have the same features, edges and weights; labels do not matter."""
    weights = edge_weight(one), edge_weight(other)
    if (weights[0] is None) != (weights[1] is None):
        return False
    return (
        one.x.shape == other.x.shape
        and one.edge_index.shape == other.edge_index.shape
        and one.x.device == other.x.device
        and (one.x is other.x or torch.equal(one.x, other.x))
        and (one.edge_index is other.edge_index or torch.equal(one.edge_index, other.edge_index))
        and (weights[0] is None or weights[1] is None or torch.equal(weights[0], weights[1]))
    )
