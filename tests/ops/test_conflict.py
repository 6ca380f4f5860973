"""Conflicts against the inverse matrix, and weights by rank."""

import math

import pytest
import torch

from evengraph.ops.losses import conflict, conflict_weights, cosine_weights
from evengraph.ops.sparse import Sparse, undirected_adjacency
from small_graphs import dense_symmetric, edges


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
    weights = cosine_weights(found, 0.5, 1.5)
    assert weights[0] > weights[1]


def test_weights_run_down_half_a_cosine():
    weights = cosine_weights(torch.tensor([0.3, 0.1, 0.9, 0.4, 0.2]), 0.5, 1.5)
    expected = [0.5 + 0.5 * (1 + math.cos(math.pi * rank / 4)) for rank in (2, 0, 4, 3, 1)]
    assert weights.tolist() == pytest.approx(expected)
    assert cosine_weights(torch.tensor([0.3]), 0.5, 1.5).tolist() == [1.5]


def test_weights_of_a_graph():
    # 0 - 1 - ... - 6; node 4 is nearer to the other class than 0, and 6 meets both of them
    nodes, labels, counts = torch.tensor([0, 4, 6]), torch.tensor([0, 0, 1]), torch.tensor([2, 1])
    line = edges([(node, node + 1) for node in range(6)])
    found = conflict_weights(undirected_adjacency(line, 7), nodes, labels, counts, 0.2, 1.0)
    met = dense_conflict(path(7), nodes.tolist(), labels.tolist())
    by_cosine = {rank: 0.2 + 0.4 * (1 + math.cos(math.pi * rank / 2)) for rank in range(3)}
    expected = [by_cosine[sorted(met).index(value)] for value in met]
    assert found.tolist() == pytest.approx(expected)
    assert conflict_weights(undirected_adjacency(line, 7), nodes, labels, counts).max() == 1.5
