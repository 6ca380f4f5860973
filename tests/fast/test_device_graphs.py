"""CSR tensors against the matrices that SciPy builds, on tensors of the CPU."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from evengraph.fast.device_graphs import (
    DevicePaths,
    adjacency_tensor,
    means,
    normalised,
    scaled_by_mean,
)
from evengraph.fast.thinning import Thinning, uniform
from evengraph.ops import structural
from evengraph.ops.sparse import (
    adjacency,
    from_scipy,
    neighbour_means,
    propagation_matrix,
    to_scipy,
    undirected_adjacency,
    weighted_adjacency,
)
from evengraph.ops.structural import HostPaths, bounded_path_weights, path_weights
from small_graphs import edge_lists, edges, random_edges

CPU = torch.device("cpu")


def same(matrix, expected):
    """Equal bit by bit, entries in the same order."""
    for part in ("crow_indices", "col_indices", "values"):
        one, other = (getattr(each, part)() for each in (matrix, expected))
        assert one.dtype == other.dtype
        assert torch.equal(one, other)
    assert matrix.shape == expected.shape


@given(edge_lists(), st.booleans())
def test_equals_scipy(graph, undirected):
    edge_index, num_nodes = graph
    build = undirected_adjacency if undirected else adjacency
    matrix = adjacency_tensor(edge_index, num_nodes, undirected=undirected)
    same(matrix, from_scipy(build(edge_index, num_nodes), CPU, torch.float32))
    weight = torch.arange(edge_index.shape[1], dtype=torch.float32)
    matrix = adjacency_tensor(edge_index, num_nodes, weight, undirected=undirected)
    assert (to_scipy(matrix) != build(edge_index, num_nodes, weight)).nnz == 0


def test_weights_in_units_of_their_mean():
    edge_index, weight = random_edges(20, 60), torch.rand(60) * 7
    weight[:20] = 0
    graph = Data(edge_index=edge_index, edge_weight=weight, num_nodes=20)
    matrix = scaled_by_mean(adjacency_tensor(edge_index, 20, weight, undirected=True))
    expected = from_scipy(weighted_adjacency(graph), CPU, torch.float32)
    assert matrix.values().dtype == torch.float32
    torch.testing.assert_close(matrix.to_dense(), expected.to_dense())
    assert matrix.values().numel() == expected.values().numel()


@given(edge_lists(), st.sampled_from(["symmetric", "row"]))
def test_normalised_and_means_equal_scipy(graph, how):
    edge_index, num_nodes = graph
    ours = normalised(adjacency_tensor(edge_index, num_nodes, undirected=True), how)
    scipy = undirected_adjacency(edge_index, num_nodes)
    pairs = [(ours, propagation_matrix(scipy, CPU, how=how))]
    pairs += [(means(adjacency_tensor(*graph, undirected=True)), neighbour_means(scipy, CPU))]
    for one, expected in pairs:
        same(one.matrix, expected.matrix)
        same(one.transpose, expected.transpose)


def test_weights_are_normalised_like_scipys():
    edge_index, weight = random_edges(30, 90), torch.rand(90)
    matrix = adjacency_tensor(edge_index, 30, weight, undirected=True)
    scipy = undirected_adjacency(edge_index, 30, weight)
    for ours, theirs in (
        (means(matrix), neighbour_means(scipy, CPU)),
        (normalised(matrix, "symmetric"), propagation_matrix(scipy, CPU)),
        (normalised(matrix, "row"), propagation_matrix(scipy, CPU, how="row")),
    ):
        torch.testing.assert_close(ours.matrix.to_dense(), theirs.matrix.to_dense())
        torch.testing.assert_close(ours.transpose.to_dense(), theirs.transpose.to_dense())


def test_no_nodes_and_32_bit_ids():
    nothing = adjacency_tensor(edges([]), 0, undirected=True)
    assert nothing.shape == path_weights(nothing, 2, 1000).shape == (0, 0)
    many = edges([(99_999, 70_000)])
    assert adjacency_tensor(many.int(), 100_000).col_indices().tolist() == [70_000]


@pytest.mark.parametrize("bad", [[(0, 5)], [(-1, 0)]])
def test_edges_outside_the_graph_are_refused(bad):
    with pytest.raises(ValueError, match="edge_index must hold node ids from 0 to 4"):
        adjacency_tensor(edges(bad), 5)


@given(edge_lists(), st.integers(1, 4), st.sampled_from([3, 10**6]))
def test_paths_and_walks_equal_scipys(graph, alpha, block):
    ours, theirs = adjacency_tensor(*graph), adjacency(*graph)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structural, "BLOCK_ENTRIES", block)
        expected = from_scipy(path_weights(theirs, alpha, 2**30), CPU, torch.float32)
        same(path_weights(ours, alpha, 2**30), expected)
    assert DevicePaths(ours, alpha).walks.tolist() == HostPaths(theirs, alpha).walks.tolist()


NODES = 150
EDGES = random_edges(NODES, 600)
LIMIT = 8 * 4000  # bytes; all pairs take twice as much


@pytest.fixture(scope="module")
def whole():
    return path_weights(undirected_adjacency(EDGES, NODES), 2, 2**30)


@pytest.fixture(scope="module")
def thinned():
    return bounded_path_weights(undirected_adjacency(EDGES, NODES), 2, LIMIT)


def test_fits_and_stays_symmetric(whole, thinned):
    matrix, thinning = thinned
    assert 0.5 * LIMIT / 8 < matrix.nnz < LIMIT / 8
    assert (matrix != matrix.T).nnz == 0
    assert (matrix > 0).astype(int).multiply(whole > 0).nnz == matrix.nnz  # no other pairs
    direct = undirected_adjacency(EDGES, NODES)
    assert (matrix.multiply(direct) != direct).nnz == 0  # direct neighbours all stay
    assert (matrix - direct).astype(bool).sum(1).mean() <= 1.05 * thinning.limit
    assert abs(matrix.sum() / whole.sum() - 1) < 0.03  # of one row, it varies more


def test_the_expectation_of_one_entry():
    walks, keys = np.full(100_000, 8.0), torch.arange(100_000)
    keep, weights = Thinning(walks, 2)(keys, keys.flip(0), torch.full((100_000,), 0.5))
    assert weights.unique().tolist() == [2.0]
    assert abs((keep * weights).mean() - 0.5) < 0.02


def test_a_gpu_thins_like_the_host(thinned):
    matrix, thinning = bounded_path_weights(
        adjacency_tensor(EDGES, NODES, undirected=True), 2, LIMIT
    )
    assert thinning.limit == thinned[1].limit
    assert (to_scipy(matrix) != thinned[0]).nnz == 0


def test_no_room_beyond_neighbours_is_an_error():
    star = edges([(0, i) for i in range(1, 200)] + [(i, 0) for i in range(1, 200)])
    with pytest.raises(MemoryError, match="alpha=2 would hold about 39,800 entries"):
        bounded_path_weights(adjacency(star, 200), 2, 8 * 398)


def test_numbers_are_uniform_and_known():
    numbers = uniform(torch.arange(10_000))
    assert 0 <= numbers.min() <= numbers.max() < 1
    counts = torch.histc(numbers.float(), 10, 0, 1)
    assert (counts - 1000).abs().max() < 120
    assert numbers[0].item() == pytest.approx(0xE220A8397B1DCDAF / 2**64, abs=1e-12)


@pytest.mark.parametrize("most", [0, 0.5, 3, 6, 7, 10, 14.5, 15, 16, 40])
@pytest.mark.parametrize("direct", [0, 3])
def test_the_limit_is_the_largest_that_fits(most, direct):
    walks = np.array([1.0, 4.0, 2.0, 8.0])
    limits = range(1, max(int(most), 1) + 1)
    fits = [limit for limit in limits if direct + np.minimum(walks, limit).sum() <= most]
    found = Thinning.to_fit(walks, direct, most)
    assert (found.limit if found else None) == max(fits, default=None)
