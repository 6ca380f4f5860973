"""Graphs and tasks small enough for brute force, and the dense matrices of the equations."""

import math

import networkx as nx
import torch
from hypothesis import strategies as st
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.datasets import toy
from evengraph.splits import Natural
from evengraph.testing import small_task as small_task

QUICK = {
    "unreal": {"rounds": 2},
    "unison": {"hidden": 16, "members": 2},
    "auto": {"candidates": "iceberg,mlp"},
}
"""Settings of methods that would take their time otherwise, where a test does not mind."""


@st.composite
def edge_lists(draw, max_nodes=12):
    """Edges as they come: directed, with self-loops, repeats and isolated nodes, or none."""
    num_nodes = draw(st.integers(1, max_nodes))
    node = st.integers(0, num_nodes - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=3 * num_nodes))
    return edges(pairs), num_nodes


def edges(pairs):
    return torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).t().contiguous()


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def random_edges(num_nodes, num_edges, seed=0):
    stream = torch.Generator().manual_seed(seed)
    return torch.randint(num_nodes, (2, num_edges), generator=stream)


def dense_adjacency(edge_index, num_nodes, *, undirected=False):
    matrix = torch.zeros(num_nodes, num_nodes, dtype=torch.float64)
    for source, target in edge_index.t().tolist():
        if source != target:
            matrix[source, target] = 1
            if undirected:
                matrix[target, source] = 1
    return matrix


def dense_structural(edge_index, num_nodes, alpha):
    """Eq. 1: one over the length of the shortest path, if it is at most alpha."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(num_nodes))
    graph.add_edges_from(edge_index.t().tolist())
    matrix = torch.zeros(num_nodes, num_nodes, dtype=torch.float64)
    for node, lengths in nx.all_pairs_shortest_path_length(graph, cutoff=alpha):
        for other, length in lengths.items():
            if length:
                matrix[node, other] = 1 / length
    return matrix


def dense_semantic(assignment):
    """Eq. 5: one for every two nodes of a cluster, a node and itself included."""
    return (assignment.unsqueeze(0) == assignment.unsqueeze(1)).double()


def dense_symmetric(matrix):
    """D^-1/2 (A + I) D^-1/2, with the row sums of A + I in D."""
    looped = matrix + torch.eye(matrix.shape[0], dtype=matrix.dtype)
    root = torch.diag(looped.sum(1) ** -0.5)
    return root @ looped @ root


def dense_row(matrix):
    """D^-1 (A + I)."""
    looped = matrix + torch.eye(matrix.shape[0], dtype=matrix.dtype)
    return looped / looped.sum(1, keepdim=True)


def task_of(graph, train, val, test=(), num_classes=None):
    """A task from lists of nodes."""
    masks = []
    for nodes in (train, val, test):
        mask = torch.zeros(graph.num_nodes, dtype=torch.bool)
        mask[list(nodes)] = True
        masks.append(mask)
    return Task(graph, *masks, num_classes=num_classes or int(graph.y.max()) + 1)


def rare_task(seed=0):
    """Two classes; a tenth of the nodes are in class 1."""
    graph = toy(300, 1200, 64, 2, 1, size_ratio=1 / 9)
    return Natural(train=0.3, val=0.3)(graph, seed=seed)


def graph_of(x, pairs, y):
    return Data(x=torch.as_tensor(x), edge_index=edges(pairs), y=torch.tensor(y))


def check_law(found, chances):
    """Counts lie within four standard deviations of what they should be."""
    total = sum(found)
    for count, chance in zip(found, chances, strict=True):
        assert abs(count - total * chance) <= 4 * math.sqrt(total * chance * (1 - chance)) + 1e-9


def value_and_gradient(matrix, x, seed=1):
    x = x.clone().requires_grad_()
    value = matrix @ x
    (gradient,) = torch.autograd.grad(value, x, normal(*value.shape, seed=seed))
    return value.detach(), gradient


def assert_same_product(matrix, dense, x):
    value, gradient = value_and_gradient(matrix, x)
    dense_value, dense_gradient = value_and_gradient(dense, x)
    torch.testing.assert_close(value, dense_value)
    torch.testing.assert_close(gradient, dense_gradient)
