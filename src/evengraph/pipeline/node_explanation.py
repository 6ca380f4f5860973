"""Explain a node of tables by its id, as a model predicts it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from evengraph.methods import Method
from evengraph.pipeline.explanation import Explanation, explain
from evengraph.pipeline.model_info import ModelInfo
from evengraph.pipeline.model_input import ModelInput
from evengraph.pipeline.model_tables import training_paths
from evengraph.pipeline.new_nodes import NewNodes
from evengraph.tables import UnknownNodeError


def open_explained(
    open_nodes: Callable[..., NewNodes],
    info: ModelInfo,
    nodes: Any,
    edges: Any,
    known: Any,
    columns: Mapping[str, Any],
) -> NewNodes:
    """Open new nodes, attached to the known graph if it is given or if their edges name it.

    Args:
        open_nodes: `TableModel.open`; the other arguments are those of `TableModel.explain`.
        info: Where the training tables are.
    """
    if isinstance(nodes, NewNodes):
        return nodes
    if known is None:
        try:
            return open_nodes(nodes, edges, **columns)
        except UnknownNodeError:
            known = training_paths(info)
    return open_nodes(nodes, edges, known=known, **columns)


def explain_node(
    method: Method, info: ModelInfo, new: NewNodes, node: Any, *, top: int, align: bool
) -> Explanation:
    """Explain the node with an id, in the graph that a model predicts."""
    ids = tuple(str(id) for id in new.tables.ids.tolist())
    if str(node) not in ids:
        raise UnknownNodeError(
            f"There is no node {str(node)!r}; ids are like {', '.join(ids[:3])}.",
            node=str(node),
            num_edges=0,
        )
    graph = ModelInput.of(new, method, info, align).graph
    names = new.tables.encoder.names
    return explain(method, graph, ids.index(str(node)), ids=ids, feature_names=names, top=top)
