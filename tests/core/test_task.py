"""Task: what it accepts, what it hides, what it leaves alone."""

from dataclasses import FrozenInstanceError, replace

import pytest
import torch

from evengraph.core.task import Task
from small_graphs import graph_of, task_of


def make(y=(0, 1, 0, 1, -1), **changes):
    graph = graph_of(torch.ones(5, 2), [(0, 1), (1, 0)], list(y))
    return replace(task_of(graph, [0, 1], [2], [3], num_classes=2), **changes)


def mask(*nodes):
    return torch.tensor([node in nodes for node in range(5)])


def test_counts_are_of_training_nodes():
    assert make().class_counts.tolist() == [1, 1]
    assert make(train=mask(0), num_classes=4).class_counts.tolist() == [1, 0, 0, 0]
    assert make(train=mask(0, 4)).class_counts.tolist() == [1, 0]  # node 4 has no label


def test_labels_outside_train_and_validation_are_hidden():
    task = make()
    hidden = task.hide_test_labels()
    assert hidden.graph.y.tolist() == [0, 1, 0, -1, -1]
    assert task.graph.y.tolist() == [0, 1, 0, 1, -1]
    assert hidden.graph.x is task.graph.x  # labels alone are copied
    assert hidden.num_classes == 2


def test_to_gives_a_copy():
    task = make(class_names=("a", "b"))
    moved = task.to("cpu")
    moved.graph.y[0] = 1
    assert task.graph.y.tolist() == [0, 1, 0, 1, -1]
    assert moved.class_names == ("a", "b")
    for name in ("train", "val", "test"):
        assert torch.equal(getattr(moved, name), getattr(task, name))


def test_a_task_is_frozen():
    with pytest.raises(FrozenInstanceError):
        make().num_classes = 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train": mask(0, 2)}, "train, val and test must not share nodes"),
        ({"val": mask(2, 3)}, "train, val and test must not share nodes"),
        ({"test": mask(0)}, "train, val and test must not share nodes"),
        ({"val": torch.tensor([2])}, r"val must be a bool mask of shape \(5,\), got torch.int64"),
        ({"test": mask(3)[:4]}, r"test must be a bool mask .* of shape \(4,\)"),
        ({"num_classes": 1}, "labels must be below num_classes=1, got 1"),
        ({"class_names": ("a",)}, "class_names must hold 2 names, got 1"),
    ],
)
def test_bad_arguments_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        make(**changes)


def test_a_graph_needs_one_label_per_node():
    graph = make().graph.clone()
    graph.y = graph.y[:4]
    with pytest.raises(ValueError, match=r"graph\.y must hold one label for each of the 5 nodes"):
        Task(graph, mask(0), mask(1), mask(2), num_classes=2)
    graph.y = None
    with pytest.raises(ValueError, match=r"graph\.y must hold one label for each of the 5 nodes"):
        Task(graph, mask(0), mask(1), mask(2), num_classes=2)


def test_labels_below_minus_one_are_refused():
    with pytest.raises(ValueError, match="labels must be -1 for unlabelled or a class, got -5"):
        make(y=(0, 1, 0, 1, -5))


def test_validation_nodes_per_class():
    assert make().val_counts == (1, 0)
    assert make(train=mask(0), val=mask(1, 2, 4), num_classes=3).val_counts == (1, 1, 0)
