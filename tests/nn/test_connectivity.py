"""Structural and semantic layers: their matrices, and in somebody else's loop."""

import pytest
import torch
from hypothesis import given
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import Compose

from evengraph.nn.transforms import (
    SemanticConnectivity,
    SemanticLayer,
    StructuralConnectivity,
    StructuralLayer,
    structural_connectivity,
)
from evengraph.ops.semantic import kmeans, prepare_clusters
from evengraph.ops.sparse import Sparse, sparsify
from small_graphs import (
    dense_semantic,
    dense_structural,
    dense_symmetric,
    edge_lists,
    graph_of,
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
    for form in (clusters, prepare_clusters(clusters, 4, torch.float32)):
        torch.testing.assert_close(layer(x, form), expected)


def test_they_learn_in_a_plain_loop():
    torch.manual_seed(0)
    task = small_task()
    graph, train = task.graph, task.train
    connectivity = structural_connectivity(graph.edge_index, graph.num_nodes, alpha=2)
    clusters = kmeans(graph.x, 30, seed=0)
    structural, semantic, out = StructuralLayer(64, 16), SemanticLayer(64, 16), nn.Linear(32, 3)
    net = nn.ModuleList([structural, semantic, out])
    optimiser = torch.optim.Adam(net.parameters(), lr=0.02)
    losses = []
    for _ in range(20):
        joint = torch.cat([structural(graph.x, connectivity), semantic(graph.x, clusters)], 1)
        loss = nn.functional.cross_entropy(out(joint.relu())[train], graph.y[train])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert all(parameter.grad.abs().sum() > 0 for parameter in net.parameters())
    assert losses[-1] < losses[0] / 2


def dense(edge_index, weight, size):
    matrix = torch.zeros(size, size, dtype=torch.float64)
    matrix[tuple(edge_index)] = weight.double()
    assert edge_index.unique(dim=1).shape == edge_index.shape  # no edge twice
    return matrix


@pytest.mark.parametrize("alpha", [1, 2, 3])
@given(drawn=edge_lists())
def test_structural_edges(alpha, drawn):
    edge_index, size = drawn
    graph = Data(edge_index=edge_index, num_nodes=size)
    found = StructuralConnectivity(alpha)(graph)
    matrix = dense(found.structural_edge_index, found.structural_edge_weight, size)
    both = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    torch.testing.assert_close(matrix, dense_structural(both, size, alpha), rtol=1e-6, atol=0)
    assert torch.equal(found.edge_index, edge_index)
    assert found.structural_edge_index.dtype == torch.long


def test_semantic_clusters_and_edges():
    graph = small_task().graph
    keys = set(graph.keys())
    clusters = SemanticConnectivity(20, seed=3)(graph)
    assert torch.equal(clusters.semantic_cluster, kmeans(sparsify(graph.x), 20, seed=3))
    assert set(clusters.keys()) == keys | {"semantic_cluster"}
    found = SemanticConnectivity(20, seed=3, edges=True)(graph)
    matrix = dense(found.semantic_edge_index, found.semantic_edge_weight, 150)
    expected = dense_semantic(clusters.semantic_cluster)
    torch.testing.assert_close(matrix, expected - torch.eye(150, dtype=torch.float64))
    assert set(graph.keys()) == keys  # the input is as it was


def test_other_rows_can_be_clustered():
    graph = small_task().graph
    graph.embedding = normal(150, 2)
    found = SemanticConnectivity(5, attribute="embedding")(graph)
    assert torch.equal(found.semantic_cluster, kmeans(graph.embedding.float(), 5, seed=0))


def test_they_compose_and_batch():
    graph = small_task().graph
    both = Compose([StructuralConnectivity(2), SemanticConnectivity(6, edges=True)])
    one = both(graph)
    batch = Batch.from_data_list([one, one])
    for kind in ("structural", "semantic"):
        edges = one[f"{kind}_edge_index"]
        expected = torch.cat([edges, edges + 150], dim=1)
        assert torch.equal(batch[f"{kind}_edge_index"], expected)
    assert repr(both.transforms[0]) == "StructuralConnectivity(alpha=2)"
    assert repr(both.transforms[1]) == "SemanticConnectivity(6, edges=True)"


def test_what_is_refused():
    graph = graph_of(normal(4, 2), [(0, 1)], [0, 0, 1, 1])
    with pytest.raises(ValueError, match="alpha must be a whole number of at least 1, got 0"):
        StructuralConnectivity(0)
    with pytest.raises(ValueError, match=r"num_clusters must be .* got 1\.5"):
        SemanticConnectivity(1.5)
    with pytest.raises(ValueError, match="needs edge_index"):
        StructuralConnectivity(1)(Data(x=graph.x))
    with pytest.raises(ValueError, match="needs colour"):
        SemanticConnectivity(2, attribute="colour")(graph)
    with pytest.raises(ValueError, match="k must lie between 1 and"):
        SemanticConnectivity(5)(graph)
    with pytest.raises(MemoryError, match=r"1 clusters would have 12 edges.*Use the clusters"):
        SemanticConnectivity(1, edges=True, memory_limit=100)(graph)
    broken = graph.clone()
    broken.x[0, 0] = float("nan")
    with pytest.raises(ValueError, match="x must be finite"):
        SemanticConnectivity(2)(broken)
