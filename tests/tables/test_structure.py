"""Features out of edges, against NetworkX."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.tables import feature_encoder as structure
from evengraph.tables.feature_encoder import pagerank, structural_features, triangles


def edges_of(network):
    pairs = [pair for a, b in network.edges for pair in ((a, b), (b, a))]
    return torch.tensor(sorted(pairs), dtype=torch.long).reshape(-1, 2).T


def adjacency_of(network):
    return sp.csr_array(nx.to_scipy_sparse_array(network, weight=None, dtype=float))


@given(st.integers(1, 25), st.floats(0, 0.6), st.integers(0, 1000))
def test_against_networkx(size, density, seed):
    network = nx.gnp_random_graph(size, density, seed=seed)
    found = structural_features(edges_of(network), size)
    degree = [network.degree(node) for node in range(size)]
    assert found[:, 0] == pytest.approx(np.log1p(degree))
    ranks = nx.pagerank(network, tol=1e-12, max_iter=1000)
    assert np.exp(found[:, 1]) / size == pytest.approx([ranks[n] for n in range(size)], abs=1e-8)
    assert found[:, 2] == pytest.approx(list(nx.clustering(network).values()))


def test_triangles_in_small_pieces(monkeypatch):
    network = nx.gnp_random_graph(60, 0.3, seed=1)
    monkeypatch.setattr(structure, "BLOCK_SIZE", 10)
    assert triangles(adjacency_of(network)).tolist() == list(nx.triangles(network).values())


def test_a_large_hub_is_no_trouble():
    # the square of this matrix has 10^10 entries
    hub = nx.star_graph(100_000)
    found = structural_features(edges_of(hub), 100_001)
    assert found[:, 2].max() == 0
    assert found[0, 1] > found[1, 1]


def test_pagerank_sums_to_one():
    assert pagerank(adjacency_of(nx.empty_graph(4))).tolist() == [0.25] * 4
    assert pagerank(adjacency_of(nx.karate_club_graph())).sum() == pytest.approx(1)
