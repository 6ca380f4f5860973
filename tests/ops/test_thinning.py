"""Thinning: expectations, symmetry and the limit."""

import numpy as np
import pytest
import torch

from evengraph.fast.device_graphs import adjacency_tensor
from evengraph.fast.thinning import Thinning, uniform
from evengraph.ops.sparse import adjacency, to_scipy, undirected_adjacency
from evengraph.ops.structural import bounded_path_weights, path_weights
from small_graphs import edges, random_edges

NODES = 150
EDGES = random_edges(NODES, 600)
LIMIT = 8 * 4000  # bytes; all pairs take twice as much


@pytest.fixture(scope="module")
def whole():
    return path_weights(undirected_adjacency(EDGES, NODES), 2, 2**30)


@pytest.fixture(scope="module")
def thinned():
    return bounded_path_weights(undirected_adjacency(EDGES, NODES), 2, LIMIT)


def test_enough_memory_changes_nothing(whole):
    matrix, thinning = bounded_path_weights(undirected_adjacency(EDGES, NODES), 2, 2**30)
    assert thinning is None
    assert (matrix != whole).nnz == 0


def test_fits_and_stays_symmetric(whole, thinned):
    matrix, thinning = thinned
    assert 0.5 * LIMIT / 8 < matrix.nnz < LIMIT / 8
    assert (matrix != matrix.T).nnz == 0
    assert (matrix > 0).astype(int).multiply(whole > 0).nnz == matrix.nnz  # no other pairs
    distant = (matrix - undirected_adjacency(EDGES, NODES)).astype(bool).sum(1)
    assert distant.mean() <= 1.05 * thinning.limit


def test_direct_neighbours_all_stay(thinned):
    direct = undirected_adjacency(EDGES, NODES)
    assert (thinned[0].multiply(direct) != direct).nnz == 0


def test_the_expectation_is_kept(whole, thinned):
    """By the sum of all; that of one row varies more."""
    assert abs(thinned[0].sum() / whole.sum() - 1) < 0.03


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
