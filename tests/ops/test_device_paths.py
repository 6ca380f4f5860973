"""Shortest paths of CSR tensors against SciPy's, on tensors of the CPU."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.fast.device_graphs import DevicePaths, adjacency_tensor
from evengraph.ops import structural
from evengraph.ops.sparse import adjacency, from_scipy
from evengraph.ops.structural import HostPaths, path_weights
from small_graphs import edge_lists, edges, random_edges


@given(edge_lists(), st.integers(1, 4), st.sampled_from([3, 10**6]))
def test_equals_scipy(graph, alpha, block):
    edge_index, num_nodes = graph
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structural, "BLOCK_ENTRIES", block)
        ours = path_weights(adjacency_tensor(edge_index, num_nodes), alpha, 2**30)
        expected = path_weights(adjacency(edge_index, num_nodes), alpha, 2**30)
    expected = from_scipy(expected, torch.device("cpu"), torch.float32)
    for part in ("crow_indices", "col_indices", "values"):
        assert torch.equal(getattr(ours, part)(), getattr(expected, part)())


@given(edge_lists(), st.integers(1, 4))
def test_walks_equal_scipys(graph, alpha):
    ours = DevicePaths(adjacency_tensor(*graph), alpha).walks
    assert ours.tolist() == HostPaths(adjacency(*graph), alpha).walks.tolist()


def test_too_large_is_refused():
    edge_index = random_edges(50, 200)
    with pytest.raises(MemoryError, match="alpha=2 would hold about"):
        path_weights(adjacency_tensor(edge_index, 50), 2, 1000)


def test_no_nodes():
    assert path_weights(adjacency_tensor(edges([]), 0), 2, 1000).shape == (0, 0)
