"""Over-sampling: copies by hand, its loss, and the plain GCN as a special case."""

import pytest
import torch
from oracles import as_dense, dense_logits, dense_propagation, first_loss, labelled, task_with

from evengraph.methods import Oversampling
from small_graphs import graph_of, task_of


def test_copies_by_hand():
    x = torch.tensor([[1.0, 2], [3, 4], [5, 6], [7, 8], [9, 10]])
    graph = graph_of(x, [(1, 2), (2, 3)], [0, 0, 1, 0, 1])
    method = Oversampling(max_epochs=0).fit(task_of(graph, [0, 1, 2], [3, 4]), seed=0)
    repeated = method.enlarged_.repeated(method._propagation(graph))
    inputs = method.enlarged_.with_copies(graph, repeated)
    assert torch.equal(inputs.x, torch.cat([x, x[2:3]]))
    a, b = 1 / 2, 1 / 3
    expected = [
        [1, 0, 0, 0, 0, 0],
        [0, a, a, 0, 0, a],
        [0, b, b, b, 0, b],
        [0, 0, a, a, 0, a],
        [0, 0, 0, 0, 1, 0],
        [0, b, b, b, 0, b],
    ]
    torch.testing.assert_close(as_dense(inputs.propagation), torch.tensor(expected))


def surprises(method, task, matrix):
    """Cross-entropy of each labelled node."""
    nodes, labels = labelled(task)
    logits = dense_logits(method.net_, task.graph.x, matrix)
    return -logits.log_softmax(1)[nodes, labels]


def test_a_copy_is_as_wrong_as_its_original():
    task = task_with(6, 5, 1)
    method, loss = first_loss(Oversampling(), task)
    nodes, labels = labelled(task)
    # a column that is there twice counts as if it weighed twice as much
    matrix = dense_propagation(task.graph)
    matrix[:, nodes[labels == 2]] *= 2
    each = surprises(method, task, matrix)
    assert loss == pytest.approx((each.sum() + each[labels == 2].sum()).item() / 13, rel=1e-5)


def test_filled_up_every_class_has_equal_say():
    task = task_with(8, 4, 2)
    method, loss = first_loss(Oversampling(copies=0), task)
    nodes, labels = labelled(task)
    matrix = dense_propagation(task.graph)
    for label, times in enumerate((1, 2, 4)):
        matrix[:, nodes[labels == label]] *= times
    each = surprises(method, task, matrix)
    means = [each[labels == label].mean() for label in range(3)]
    assert loss == pytest.approx(sum(means).item() / 3, rel=1e-5)


def test_without_links_a_sound_copy_only_doubles_a_node():
    task = task_with(6, 6, 2)
    task.graph.edge_index = task.graph.edge_index[:, :0]
    method, loss = first_loss(Oversampling(sound=True, minority=1), task)
    labels = labelled(task)[1]
    each = surprises(method, task, dense_propagation(task.graph))
    assert loss == pytest.approx((each.sum() + each[labels == 2].sum()).item() / 16, rel=1e-5)
