"""Signatures: what changes them, and what does not."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.ops.features import feature_signatures, matching_signatures, node_signatures
from small_graphs import edge_lists, edges, normal


def neighbours(edge_index, node):
    source, target = edge_index
    near = set(target[source == node].tolist()) | set(source[target == node].tolist())
    return near - {node}


@given(edge_lists(), st.randoms(use_true_random=False))
def test_order_direction_repeats_and_loops_do_not_count(drawn, random):
    edge_index, num_nodes = drawn
    x = normal(num_nodes, 3)
    pairs = edge_index.t().tolist()
    pairs += [*random.sample(pairs, len(pairs) // 2), [0, 0]]
    random.shuffle(pairs)
    turned = edges([pair if random.random() < 0.5 else pair[::-1] for pair in pairs])
    before = node_signatures(x, edge_index)
    assert matching_signatures(node_signatures(x, turned), before).all()


@given(edge_lists(), st.data())
def test_other_features_are_noticed_by_the_node_and_its_neighbours(drawn, data):
    edge_index, num_nodes = drawn
    node = data.draw(st.integers(0, num_nodes - 1))
    column = data.draw(st.integers(0, 2))
    x = normal(num_nodes, 3)
    other = x.clone()
    other[node, column] += 0.01
    same = matching_signatures(node_signatures(other, edge_index), node_signatures(x, edge_index))
    expected = {node} | neighbours(edge_index, node)
    assert set((~same).nonzero().squeeze(1).tolist()) == expected


@given(edge_lists(), st.data())
def test_other_edges_are_noticed_at_their_ends(drawn, data):
    edge_index, num_nodes = drawn
    node = st.integers(0, num_nodes - 1)
    one, other = data.draw(node), data.draw(node)
    x = torch.ones(num_nodes, 2)  # features that say nothing
    more = torch.cat([edge_index, torch.tensor([[one], [other]])], dim=1)
    same = matching_signatures(node_signatures(x, more), node_signatures(x, edge_index))
    new = one != other and other not in neighbours(edge_index, one)
    assert set((~same).nonzero().squeeze(1).tolist()) == ({one, other} if new else set())


def test_swapped_neighbours_with_equal_features_are_noticed():
    x = torch.ones(4, 2)
    one, other = edges([(0, 1), (2, 3)]), edges([(0, 2), (1, 3)])
    assert not matching_signatures(node_signatures(x, one), node_signatures(x, other)).any()


def test_the_last_digits_do_not_count():
    x = normal(200, 40, dtype=torch.float32) * 10
    edge_index = torch.randint(200, (2, 900), generator=torch.Generator().manual_seed(0))
    wobbled = x * (1 + 1e-7 * torch.sign(normal(200, 40, seed=1)))
    before = node_signatures(x, edge_index)
    assert matching_signatures(node_signatures(wobbled, edge_index), before).all()
    assert matching_signatures(node_signatures(x.double(), edge_index), before).all()


def test_graphs_of_other_sizes():
    before = feature_signatures(normal(5, 3))
    assert matching_signatures(before[:3], before).tolist() == [True] * 3
    assert (
        matching_signatures(torch.cat([before, before]), before).tolist()
        == [True] * 5 + [False] * 5
    )
    assert matching_signatures(before[:0], before).tolist() == []


@pytest.mark.parametrize("shape", [(0, 3), (4, 0)])
def test_nothing_to_sign(shape):
    signatures = node_signatures(torch.zeros(shape), torch.zeros(2, 0, dtype=torch.long))
    assert signatures.shape == (shape[0], 6)
