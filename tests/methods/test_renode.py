"""ReNode: conflicts against the inverse matrix, weights by rank, and GCN as a special case."""

import math

import pytest
import torch
from oracles import dense_logits, dense_propagation, first_loss, labelled, task_with

from evengraph.methods import GCN, BalancedSoftmax, ReNode, Reweight
from evengraph.methods.renode import by_rank, conflict
from evengraph.ops import Sparse
from small_graphs import dense_symmetric, edges, small_task


def path(num_nodes):
    """Nodes in a row, each joined to the next."""
    matrix = torch.zeros(num_nodes, num_nodes, dtype=torch.float64)
    for node in range(num_nodes - 1):
        matrix[node, node + 1] = matrix[node + 1, node] = 1
    return dense_symmetric(matrix)


def dense_conflict(matrix, nodes, labels):
    """Totoro by its formula, row by row of the whole inverse."""
    size, num_classes = matrix.shape[0], max(labels) + 1
    walks = 0.15 * torch.linalg.inv(torch.eye(size, dtype=torch.float64) - 0.85 * matrix)
    means = [
        walks[[n for n, y in zip(nodes, labels, strict=True) if y == c]].mean(0)
        for c in range(num_classes)
    ]
    return [
        sum(float(walks[n] @ means[c]) for c in range(num_classes) if c != y)
        for n, y in zip(nodes, labels, strict=True)
    ]


@pytest.mark.parametrize(
    ("nodes", "labels"), [([0, 4, 6], [0, 0, 1]), ([6, 1, 3, 0, 2], [0, 1, 2, 1, 0])]
)
def test_conflicts_are_those_of_the_inverse(nodes, labels):
    matrix, classes = path(7), torch.tensor(labels)
    propagation = Sparse.from_dense(matrix.float())
    counts = torch.bincount(classes)
    found = conflict(propagation, torch.tensor(nodes), classes, counts)
    assert found.tolist() == pytest.approx(dense_conflict(matrix, nodes, labels), rel=1e-3)


def test_a_node_beside_another_class_meets_more_of_it():
    found = conflict(
        Sparse.from_dense(path(7).float()),
        torch.tensor([0, 4, 6]),
        torch.tensor([0, 0, 1]),
        torch.tensor([2, 1]),
    )
    assert found[1] > found[0]
    weights = by_rank(found, 0.5, 1.5)
    assert weights[0] > weights[1]


def test_weights_run_down_half_a_cosine():
    weights = by_rank(torch.tensor([0.3, 0.1, 0.9, 0.4, 0.2]), 0.5, 1.5)
    expected = [0.5 + 0.5 * (1 + math.cos(math.pi * rank / 4)) for rank in (2, 0, 4, 3, 1)]
    assert weights.tolist() == pytest.approx(expected)
    assert by_rank(torch.tensor([0.3]), 0.5, 1.5).tolist() == [1.5]


@pytest.mark.parametrize("loss", ["cross_entropy", "reweight", "balanced_softmax"])
def test_the_loss_by_hand(loss):
    task = task_with(9, 4, 1)
    method, found = first_loss(ReNode(loss=loss), task)
    nodes, labels = labelled(task)
    logits = dense_logits(method.net_, task.graph.x, dense_propagation(task.graph))[nodes]
    counts = torch.tensor([9.0, 4.0, 1.0], dtype=torch.float64)
    if loss == "balanced_softmax":
        logits = logits + counts.log()
    propagation = Sparse.from_dense(dense_propagation(task.graph, "symmetric").float())
    weights = by_rank(conflict(propagation, nodes, labels, counts.long()), 0.5, 1.5)
    if loss == "reweight":
        weights = weights * (14 / 3 / counts)[labels]
    each = -logits.log_softmax(1)[range(14), labels]
    assert found == pytest.approx((weights * each).mean().item(), rel=1e-4)


@pytest.mark.parametrize(
    ("loss", "same"),
    [
        ("cross_entropy", GCN(max_epochs=10)),
        ("balanced_softmax", BalancedSoftmax(max_epochs=10)),
        ("reweight", Reweight(balance=True, max_epochs=10)),
    ],
)
def test_equal_weights_leave_the_loss_alone(loss, same):
    task = small_task()
    method = ReNode(least=1, most=1, loss=loss, max_epochs=10)
    found, expected = (m.fit(task, seed=3).predict_proba(task.graph) for m in (method, same))
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"least": -1}, "least must be at least 0, got -1"),
        ({"least": 2.0}, "most must be at least 2.0, got 1.5"),
        ({"loss": "hinge"}, "loss must be one of .*, got 'hinge'"),
    ],
)
def test_bad_fields_are_refused(fields, words):
    with pytest.raises(ValueError, match=words):
        ReNode(**fields)


def test_edges_are_read_in_both_directions():
    task = small_task()
    graph = task.graph.clone()
    graph.edge_index = edges([(a, b) for a, b in graph.edge_index.t().tolist() if a < b])
    first = ReNode(max_epochs=2).fit(task, seed=0).predict_proba(task.graph)
    task.graph.edge_index = graph.edge_index
    assert torch.equal(ReNode(max_epochs=2).fit(task, seed=0).predict_proba(graph), first)
