import pytest
import torch
from torch_geometric.data import Data

from evengraph.datasets import toy
from evengraph.experiment.defaults import DENSE, PATIENCE, ready, suited, ways_per_edge


def graph_of(*edges, num_nodes):
    both = [*edges, *((b, a) for a, b in edges)]
    return Data(x=torch.zeros(num_nodes, 1), edge_index=torch.tensor(both).T)


def test_ways_are_counted_by_hand():
    star = graph_of((0, 1), (0, 2), (0, 3), num_nodes=4)
    assert ways_per_edge(star) == pytest.approx((3 * 3 + 3 * 1) / 6)
    assert ways_per_edge(Data(edge_index=torch.zeros(2, 0, dtype=torch.long), num_nodes=3)) == 0


def test_a_dense_graph_gets_direct_neighbours_alone():
    size = DENSE + 3
    full = graph_of(*((a, b) for a in range(size) for b in range(a)), num_nodes=size)
    assert suited("unignn", full) == {"patience": PATIENCE, "alpha": 1}
    assert suited("gcn", full) == {"patience": PATIENCE}
    assert "alpha" not in suited("unignn", toy(200, 600, 10, 3))


def test_what_is_given_goes_before_what_suits():
    assert ready("reweight", toy(200, 600, 10, 3), patience=7).patience == 7
    assert ready("reweight", toy(200, 600, 10, 3)).balance
