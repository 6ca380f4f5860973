"""A split by time: train on the past, test on the newest nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch_geometric.data import Data

from evengraph.core.errors import ArgumentError
from evengraph.core.task import Task, keep_edges
from evengraph.splits.base import (
    check_class_size,
    check_shares,
    class_nodes,
    count_classes,
    make_task,
)


@dataclass(frozen=True, kw_only=True)
class ByTime:
    """Train on the oldest labelled nodes, validate on the next, test on the newest.

    Nodes of the same time are never separated: they join the older set. The seed makes no
    difference. Nodes without a label or a time are in no set.

    If edges have times (`graph.edge_time`, or a column of a table), training sees only edges up to
    the time of the last validation node, the time at which a model would be trained. Edges without
    a time count as later. Test nodes and nodes in no set are predicted with all edges. Without
    times of edges all of them stay, also those of newer nodes. Relations of a graph of your own may
    have times as well (`graph.relation_time`, (R,)); otherwise training sees none between nodes
    that a later edge joins.

    Args:
        train: Share of the labelled nodes to train on.
        val: Share of the labelled nodes to validate on.
    """

    train: float = 0.6
    val: float = 0.2

    def __post_init__(self) -> None:
        check_shares(train=self.train, val=self.val)

    def __call__(self, graph: Data, *, seed: int) -> Task:
        """Split the graph."""
        if "time" not in graph:
            raise ArgumentError(
                "The split protocol bytime needs the time of every node (graph.time); name a time "
                "column.",
                argument="time",
            )
        num_classes = count_classes(graph)
        usable = (graph.y >= 0) & ~torch.isnan(graph.time)
        times = graph.time[usable].sort().values
        if len(times) < 3:
            raise ValueError(f"{len(times)} labelled nodes have a time, at least 3 are needed.")
        first = max(1, round(self.train * len(times)))
        second = max(first + 1, round((self.train + self.val) * len(times)))
        last_train = times[first - 1]
        later = times[times > last_train]
        if not len(later):
            raise ValueError("No labelled node is newer than the training nodes; lower train.")
        last_val = torch.maximum(times[min(second, len(times)) - 1], later[0])
        train = usable & (graph.time <= last_train)
        val = usable & (graph.time > last_train) & (graph.time <= last_val)
        test = usable & (graph.time > last_val)
        if not test.any():
            raise ValueError(
                "No labelled node is newer than the validation nodes: too many share a time; lower "
                "train or val."
            )
        for label in range(num_classes):
            oldest = class_nodes(graph, label, among=train)
            check_class_size(graph, label, oldest, 1, "training, among the oldest")
        task = make_task(graph, train, val, test)
        past, graph = _graphs_at(graph, float(last_val))
        return task if past is None else replace(task, graph=graph, past=past)


def _graphs_at(graph: Data, time: float) -> tuple[Data | None, Data]:
    """The graph without edges after a time, None if edges have no times; and that of all edges."""
    tables = graph.get("timed_tables")
    times = graph.get("edge_time") if tables is None else tables.edge_times
    if times is None:
        return None, graph
    if times.numel() and not (times <= time).any():
        raise ValueError(
            f"No edge has a time up to that of the last validation node, {time:g}; are the times "
            "of nodes and edges in the same unit?"
        )
    if tables is not None:
        from evengraph.tables.build import graphs_at

        return graphs_at(tables, time)
    relations = graph.relation_time <= time if "relation_time" in graph else None
    return keep_edges(graph, times <= time, relations), graph
