"""Small generated tasks that methods are tested on: usual, unusual and invalid ones."""

from collections.abc import Callable
from dataclasses import replace
from math import inf, nan
from typing import Any

import torch
from torch import Tensor

from evengraph.core.rng import seeded
from evengraph.core.task import Task
from evengraph.datasets import toy
from evengraph.splits import Step

Edit = Callable[[Task], Task]


def small_task(
    num_classes: int = 3, *, num_nodes: int = 150, num_features: int = 64, seed: int = 1
) -> Task:
    """Return a task on a generated graph with one small class."""
    graph = toy(num_nodes, 4 * num_nodes, num_features, num_classes, seed, size_ratio=0.5)
    protocol = Step(minority=1, ratio=0.2, train_per_class=10, val_per_class=5, test_per_class=8)
    return protocol(graph, seed=0)


def task_with(*class_counts: int, num_nodes: int = 150, seed: int = 1) -> Task:
    """Return a task with this many training nodes per class, and five validation nodes each."""
    num_classes = len(class_counts)
    graph = toy(num_nodes, 4 * num_nodes, 64, num_classes, seed, size_ratio=0.5)
    train, val = (torch.zeros(num_nodes, dtype=torch.bool) for _ in range(2))
    for label, size in enumerate(class_counts):
        nodes = (graph.y == label).nonzero().flatten().flip(0)
        train[nodes[:size]] = True
        val[nodes[size : size + 5]] = True
    return Task(graph, train, val, torch.zeros_like(val), num_classes=num_classes)


def with_graph(task: Task, **tensors: Tensor | int | None) -> Task:
    graph = task.graph.clone()
    for key, value in tensors.items():
        graph[key] = value
    return replace(task, graph=graph)


def _isolated(task: Task, nodes: Tensor) -> Task:
    edges = task.graph.edge_index
    return with_graph(task, edge_index=edges[:, ~torch.isin(edges, nodes).any(0)])


def _train_nodes(task: Task, label: int) -> Tensor:
    nodes = task.train.nonzero().flatten()
    return nodes[task.graph.y[nodes] == label]


def _first_only(task: Task, *labels: int) -> Task:
    """Leave one training node in some classes."""
    train = task.train.clone()
    for label in labels:
        train[_train_nodes(task, label)[1:]] = False
    return replace(task, train=train)


def _without(task: Task, mask: str, label: int) -> Task:
    return replace(task, **{mask: getattr(task, mask) & (task.graph.y != label)})


def _repeated_edges(task: Task) -> Task:
    loops = torch.arange(len(task.train)).repeat(2, 1)
    return with_graph(task, edge_index=torch.cat([task.graph.edge_index] * 2 + [loops], 1))


def _normal_features(task: Task) -> Task:
    with seeded(0):
        return with_graph(task, x=torch.randn(len(task.train), 7))


def _all_labelled(task: Task) -> Task:
    val = torch.arange(len(task.val)) % 5 == 0
    return replace(task, train=~val, val=val, test=torch.zeros_like(val))


VALID_TASKS: dict[str, Edit] = {
    "rows_are_probabilities": lambda task: task,
    "one_training_node_in_a_class": lambda task: _first_only(task, 2),
    "one_training_node_in_every_class": lambda task: _first_only(task, 0, 1, 2),
    "class_counts_9_9_2": lambda task: task_with(9, 9, 2),
    "class_counts_6_6_6": lambda task: task_with(6, 6, 6),
    "class_counts_2_2_2": lambda task: task_with(2, 2, 2),
    "class_counts_9_4_1": lambda task: task_with(9, 4, 1),
    "class_counts_1_9_9": lambda task: task_with(1, 9, 9),
    "class_0_missing_from_validation": lambda task: _without(task, "val", 0),
    "class_1_missing_from_validation": lambda task: _without(task, "val", 1),
    "class_2_missing_from_validation": lambda task: _without(task, "val", 2),
    "an_isolated_training_node": lambda task: _isolated(task, task.train.nonzero()[0]),
    "isolated_training_nodes_of_class_0": lambda task: _isolated(task, _train_nodes(task, 0)),
    "isolated_training_nodes_of_class_2": lambda task: _isolated(task, _train_nodes(task, 2)),
    "no_edges": lambda task: with_graph(task, edge_index=task.graph.edge_index[:, :0]),
    "self_loops_and_repeated_edges": _repeated_edges,
    "two_classes": lambda task: small_task(num_classes=2),
    "dense_and_negative_features": _normal_features,
    "features_all_zero": lambda task: with_graph(task, x=torch.zeros_like(task.graph.x)),
    "features_that_require_gradients": lambda task: with_graph(
        task, x=task.graph.x.clone().requires_grad_()
    ),
    "all_nodes_labelled": _all_labelled,
}
"""Tasks that every method must fit, most of them unusual, each as a change of `small_task()`."""


def _changed(task: Task, name: str, place: Any, value: float) -> Task:
    values = task.graph[name] if name in task.graph else torch.ones(task.graph.num_edges)
    values = values.clone()
    values[place] = value
    return with_graph(task, **{name: values})


def _with_weight(task: Task, weight: float) -> Task:
    return _changed(task, "edge_weight", 5, weight)


INVALID_TASKS: dict[str, tuple[str, Edit]] = {
    "no_training_node_of_a_class": (
        "Class 1 has no training node",
        lambda task: _without(task, "train", 1),
    ),
    "no_training_node_of_a_named_class": (
        "Class 1 (bees)",
        lambda task: _without(replace(task, class_names=("ants", "bees", "crabs")), "train", 1),
    ),
    "no_validation_nodes": ("val set is empty", lambda task: replace(task, val=task.val & False)),
    "no_training_nodes": ("training node", lambda task: replace(task, train=task.train & False)),
    "a_feature_that_is_nan": ("node 7", lambda task: _changed(task, "x", (7, 3), nan)),
    "a_feature_that_is_infinite": ("node 7", lambda task: _changed(task, "x", (7, 3), inf)),
    "integer_features": ("graph.x", lambda task: with_graph(task, x=task.graph.x.long())),
    "features_of_one_axis": ("graph.x", lambda task: with_graph(task, x=task.graph.x[:, 0])),
    "no_features": ("graph.x", lambda task: with_graph(task, x=None, num_nodes=150)),
    "a_negative_edge_weight": ("got -1.0 for edge 5", lambda task: _with_weight(task, -1.0)),
    "an_edge_weight_that_is_nan": ("got nan for edge 5", lambda task: _with_weight(task, nan)),
    "an_infinite_edge_weight": ("got inf for edge 5", lambda task: _with_weight(task, inf)),
    "too_few_edge_weights": (
        "graph.edge_weight",
        lambda task: with_graph(task, edge_weight=torch.ones(3)),
    ),
    "unlabelled_training_nodes": (
        "Some train nodes have no label",
        lambda task: _changed(task, "y", task.train.nonzero()[0], -1),
    ),
    "unlabelled_validation_nodes": (
        "Some val nodes have no label",
        lambda task: _changed(task, "y", task.val.nonzero()[0], -1),
    ),
}
"""Tasks that `fit` must reject: words of the error, and the change of `small_task()`."""
