"""Views of a graph, against dense products."""

import pytest
import torch
from torch_geometric.data import Data

from evengraph.nn.views import LENGTH, Diffusion, Ego, Semantic, Structural, features
from small_graphs import small_task

DIFFUSION = Diffusion(steps=3, teleport=0.2)


def views(num_features, count=50):
    return {
        "structural": Structural(num_features, count, DIFFUSION),
        "semantic": Semantic(num_features, count, DIFFUSION, 5),
        "ego": Ego(num_features, count),
    }


def dense_adjacency(graph):
    matrix = torch.zeros(graph.num_nodes, graph.num_nodes)
    matrix[graph.edge_index[0], graph.edge_index[1]] = 1
    matrix = ((matrix + matrix.T) > 0).float()
    return matrix.fill_diagonal_(0)


def scaled(rows):
    centred = rows - rows.mean(0)
    return centred * LENGTH / centred.square().sum(1).mean().sqrt()


def test_the_structural_view_is_personalised_pagerank():
    graph = small_task().graph
    view = Structural(graph.num_features, 1_000, DIFFUSION)
    rows = view.fit(features(graph), graph)
    looped = dense_adjacency(graph) + torch.eye(graph.num_nodes)
    root = looped.sum(1) ** -0.5
    matrix, x = root[:, None] * looped * root, graph.x
    for _ in range(3):
        x = 0.8 * matrix @ x + 0.2 * graph.x
    torch.testing.assert_close(rows, scaled(x), rtol=1e-4, atol=1e-5)


def test_the_ego_view_keeps_hops_apart():
    graph = small_task().graph
    rows = Ego(graph.num_features, 1_000).fit(features(graph), graph)
    adjacency = dense_adjacency(graph)
    means = adjacency / adjacency.sum(1, keepdim=True).clamp(min=1)
    hops = [graph.x, means @ graph.x, means @ means @ graph.x]
    expected = torch.cat([scaled(hop) for hop in hops], dim=1) / 3**0.5
    torch.testing.assert_close(rows, expected, rtol=1e-4, atol=1e-5)


def test_the_semantic_view_moves_similar_nodes_together():
    graph = small_task().graph
    structural = Structural(graph.num_features, 1_000, DIFFUSION).fit(features(graph), graph)
    semantic = Semantic(graph.num_features, 1_000, DIFFUSION, 5).fit(features(graph), graph)

    def spread(rows):
        near = torch.cdist(rows, rows).topk(6, largest=False).values[:, 1:]
        return near.mean() / rows.square().sum(1).mean().sqrt()

    assert spread(semantic) < spread(structural)


@pytest.mark.parametrize("name", ["structural", "semantic", "ego"])
@pytest.mark.parametrize("count", [4, 1_000])
def test_a_fitted_view_gives_the_same_rows_again(name, count):
    graph = small_task().graph
    view = views(graph.num_features, count)[name]
    rows = view.fit(features(graph), graph)
    assert rows.shape == (graph.num_nodes, view.width)
    torch.testing.assert_close(view(features(graph), graph), rows, rtol=1e-3, atol=1e-4)
    length = rows.square().sum(1).mean().sqrt()
    torch.testing.assert_close(length, torch.tensor(LENGTH), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["structural", "semantic", "ego"])
def test_the_unit_of_the_features_does_not_matter(name):
    graph = small_task().graph
    larger = Data(x=1_000 * graph.x, edge_index=graph.edge_index)
    rows = [
        views(graph.num_features)[name].fit(features(each), each).abs() for each in (graph, larger)
    ]
    torch.testing.assert_close(*rows, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["structural", "semantic", "ego"])
def test_features_without_variance_give_zeros(name):
    graph = Data(x=torch.ones(6, 3), edge_index=torch.tensor([[0, 1], [1, 0]]))
    if name == "structural":  # symmetric normalisation depends on degrees
        graph.edge_index = torch.empty(2, 0, dtype=torch.int64)
    rows = views(3)[name].fit(features(graph), graph)
    assert rows.isfinite().all()
