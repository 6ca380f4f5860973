"""Structural and semantic layers: their matrices, and in somebody else's loop."""

import pytest
import torch
from torch import nn

from evengraph.nn.connectivity import SemanticLayer, StructuralLayer, structural_connectivity
from evengraph.ops.semantic import kmeans, prepare_clusters
from evengraph.ops.sparse import Sparse
from small_graphs import (
    dense_semantic,
    dense_structural,
    dense_symmetric,
    normal,
    random_edges,
    small_task,
)


@pytest.mark.parametrize("alpha", [1, 2, 3])
def test_a_structural_layer_is_its_matrix(alpha):
    edges, x = random_edges(12, 14), normal(12, 5, dtype=torch.float32)
    layer = StructuralLayer(5, 4)
    both = torch.cat([edges, edges.flip(0)], dim=1)
    matrix = dense_symmetric(dense_structural(both, 12, alpha)).float()
    connectivity = structural_connectivity(edges, 12, alpha)
    for rows in (x, Sparse.from_dense(x)):
        torch.testing.assert_close(layer(rows, connectivity), matrix @ x @ layer.weight)


def test_a_semantic_layer_is_its_matrix():
    x, clusters = normal(12, 5, dtype=torch.float32), torch.arange(12) % 4
    layer = SemanticLayer(5, 3)
    expected = dense_symmetric(dense_semantic(clusters)).float() @ x @ layer.weight
    for given in (clusters, prepare_clusters(clusters, 4, torch.float32)):
        torch.testing.assert_close(layer(x, given), expected)


class Network(nn.Module):
    """What somebody might write."""

    def __init__(self):
        super().__init__()
        self.structural, self.semantic = StructuralLayer(64, 16), SemanticLayer(64, 16)
        self.out = nn.Sequential(nn.ReLU(), nn.Linear(32, 3))

    def forward(self, x, connectivity, clusters):
        return self.out(
            torch.cat([self.structural(x, connectivity), self.semantic(x, clusters)], 1)
        )


def test_they_learn_in_a_plain_loop():
    torch.manual_seed(0)
    task = small_task()
    graph, train = task.graph, task.train
    connectivity = structural_connectivity(graph.edge_index, graph.num_nodes, alpha=2)
    clusters = kmeans(graph.x, 30, seed=0)
    net = Network()
    optimiser = torch.optim.Adam(net.parameters(), lr=0.02)
    losses = []
    for _ in range(20):
        logits = net(graph.x, connectivity, clusters)
        loss = nn.functional.cross_entropy(logits[train], graph.y[train])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert all(parameter.grad.abs().sum() > 0 for parameter in net.parameters())
    assert losses[-1] < losses[0] / 2
    state = net.state_dict()
    fresh = Network()
    fresh.load_state_dict(state)
    assert torch.equal(fresh(graph.x, connectivity, clusters), net(graph.x, connectivity, clusters))
