"""Every node as a row of numbers."""

import torch
from torch_geometric.data import Data

from evengraph.datasets import toy
from evengraph.desk.suggestions import node_rows


def test_the_row_most_like_a_node_is_usually_of_its_class():
    graph = toy(300, 3000, 40, 2, size_ratio=1.0)
    rows = node_rows(graph)
    nearest = torch.cdist(rows, rows).fill_diagonal_(torch.inf).argmin(1)
    assert (graph.y[nearest] == graph.y).float().mean() > 0.8


def test_rows_are_the_same_twice_and_finite_without_features_or_edges():
    graph = toy(60, 120, 8, 2)
    assert torch.equal(node_rows(graph), node_rows(graph))
    for x in (torch.zeros(5, 0), torch.zeros(5, 3)):
        bare = Data(x=x, edge_index=torch.empty(2, 0, dtype=torch.long))
        assert node_rows(bare).shape == (5, 1)
        assert not node_rows(bare).any()
