"""Task: what it accepts, what it hides, what it leaves alone."""

from dataclasses import FrozenInstanceError, replace

import pytest
import torch
from torch_geometric.data import Data

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


def test_a_task_of_a_graph_with_masks():
    y = torch.tensor([[0], [1], [0], [1], [0], [1]], dtype=torch.int32)
    masks = torch.eye(3, dtype=torch.bool).repeat_interleave(2, dim=0)
    graph = Data(x=torch.eye(6), edge_index=torch.zeros(2, 0, dtype=torch.long), y=y)
    graph.train_mask, graph.val_mask, graph.test_mask = masks.unbind(1)
    graph.class_names = ["a", "b"]
    task = Task.from_graph(graph)
    assert task.graph.y.tolist() == [0, 1] * 3
    assert graph.y is y
    assert (task.num_classes, task.class_names) == (2, ("a", "b"))
    assert task.train_nodes.tolist() == [0, 1]
    assert task.test.nonzero().flatten().tolist() == [4, 5]


def test_gradients_do_not_reach_the_features_of_the_caller():
    x = torch.eye(2, requires_grad=True)
    graph = Data(x=x, edge_index=torch.zeros(2, 0, dtype=torch.long), y=torch.tensor([0, 1]))
    train, val = torch.eye(2, dtype=torch.bool)
    hidden = Task(graph, train, val, ~(train | val), 2).hide_test_labels()
    assert not hidden.graph.x.requires_grad
    assert graph.x is x
