"""K-means: its promises, and how close it comes to scikit-learn's."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from evengraph.datasets import toy
from evengraph.ops.semantic import (
    cluster_means,
    fill_empty,
    kmeans,
    nearest_mean,
    start_seeds,
    unit_rows,
)
from evengraph.ops.sparse import Sparse, sparsify
from small_graphs import normal


def inertia(x, assignment):
    """Eq. 4: squared distances to the means of the clusters."""
    total = 0.0
    for cluster in assignment.unique():
        rows = x[assignment == cluster].double()
        total += float((rows - rows.mean(0)).square().sum())
    return total


def blobs():
    x, _ = make_blobs(400, 8, centers=12, cluster_std=1.5, random_state=3)
    return torch.from_numpy(x).float()


def words():
    return toy(500, 1000, 300, 4, seed=2).x


@given(st.integers(1, 14), st.integers(1, 3), st.integers(0, 500), st.data())
def test_every_cluster_is_used(num_rows, width, seed, data):
    k = data.draw(st.integers(1, num_rows))
    distinct = data.draw(st.integers(1, num_rows))  # often far fewer than clusters
    x = normal(distinct, width, seed=seed, dtype=torch.float32)
    x = x[torch.arange(num_rows) % distinct]
    for rows in (x, Sparse.from_dense(x)):
        assignment = kmeans(rows, k, seed)
        assert assignment.dtype == torch.int64
        assert assignment.shape == (num_rows,)
        assert assignment.unique().tolist() == list(range(k))


def test_every_cluster_is_used_however_few_rows_differ():
    for num_rows in range(1, 8):
        for distinct in range(1, num_rows + 1):
            x = (torch.arange(num_rows) % distinct).double().unsqueeze(1)  # distances are exact
            for k in range(1, num_rows + 1):
                assert kmeans(x, k, 0).unique().tolist() == list(range(k)), (num_rows, distinct, k)


def test_filling_an_empty_cluster_empties_no_other():
    assignment = torch.tensor([0, 0, 1, 1, 1])
    fill_empty(assignment, torch.zeros(5), 5)
    assert assignment.sort().values.tolist() == [0, 1, 2, 3, 4]
    assignment = torch.tensor([0, 0, 1, 1, 1])
    fill_empty(assignment, torch.tensor([1.0, 2.0, 3.0, 9.0, 4.0]), 3)
    assert assignment.tolist() == [0, 0, 1, 2, 1]  # the farthest row


def test_every_row_ends_up_with_the_nearest_mean():
    x = blobs()
    assignment = kmeans(x, 30, 0, tolerance=0)
    assert torch.equal(nearest_mean(x, cluster_means(x, assignment, 30)), assignment)


def test_as_many_clusters_as_rows():
    assert kmeans(normal(9, 2), 9, 0).sort().values.tolist() == list(range(9))


def test_one_cluster():
    assert kmeans(normal(9, 2), 1, 0).tolist() == [0] * 9


def test_equal_rows_share_a_cluster_while_there_are_enough_others():
    x = normal(6, 3)[torch.arange(60) % 6]
    assignment = kmeans(x, 6, 1)
    assert torch.equal(assignment, assignment[:6].repeat(10))


@pytest.mark.parametrize("make", [blobs, words])
def test_same_seed_same_clusters(make):
    x = make()
    assert torch.equal(kmeans(x, 20, 5), kmeans(x, 20, 5))
    assert not torch.equal(kmeans(x, 20, 5), kmeans(x, 20, 6))


def test_global_random_state_is_neither_read_nor_changed(random_state):
    x = blobs()
    torch.manual_seed(0)
    first = kmeans(x, 20, 5)
    torch.manual_seed(1)
    before = random_state()
    assert torch.equal(kmeans(x, 20, 5), first)
    assert random_state() == before


@pytest.mark.parametrize(("make", "k"), [(blobs, 12), (blobs, 30), (words, 20), (words, 40)])
def test_as_tight_as_scikit_learn(make, k):
    x = make()
    seeds = range(5)
    ours = sum(inertia(x, kmeans(sparsify(x), k, seed)) for seed in seeds)
    theirs = sum(
        KMeans(k, n_init=1, max_iter=100, random_state=seed).fit(x.numpy()).inertia_
        for seed in seeds
    )
    assert ours < 1.02 * theirs


def test_sparse_and_dense_rows_give_clusters_of_the_same_quality():
    x = words()
    dense, sparse = kmeans(x, 20, 0), kmeans(Sparse.from_dense(x), 20, 0)
    assert inertia(x, sparse) == pytest.approx(inertia(x, dense), rel=0.01)


def test_rows_far_from_the_origin():
    x, _ = make_blobs(300, 3, centers=6, cluster_std=0.05, random_state=0)
    x = torch.tensor(x, dtype=torch.float32)
    near, far = kmeans(x, 6, 0), kmeans(x + 1000, 6, 0)
    assert inertia(x, far) == pytest.approx(inertia(x, near), rel=0.02)
    means = cluster_means(x + 1000, far, 6)
    assert (nearest_mean(x + 1000, means) == far).float().mean() > 0.99


def test_rows_in_several_chunks_give_the_same_clusters(monkeypatch):
    from evengraph.ops.semantic import kmeans as function

    x = words()
    whole = function(x, 20, 0)
    monkeypatch.setitem(function.__globals__, "CHUNK", 1000)
    assert torch.equal(function(x, 20, 0), whole)


@given(st.integers(2, 30), st.integers(0, 1000), st.data())
def test_a_start_never_gets_worse(num_rows, seed, data):
    k = data.draw(st.integers(1, num_rows))
    x = normal(num_rows, 3, seed=seed)
    start = torch.arange(num_rows)[torch.randperm(num_rows, generator=_stream(seed))] % k
    after = kmeans(x, k, 0, start=start)
    assert inertia(x, after) <= inertia(x, start) * (1 + 1e-9)


def _stream(seed):
    return torch.Generator().manual_seed(seed)


def test_a_good_start_is_kept_and_left_alone():
    x = blobs()
    start = kmeans(x, 12, 0)
    copy = start.clone()
    assert torch.equal(kmeans(x, 12, 99, start=start), kmeans(x, 12, 98, start=start))
    assert torch.equal(start, copy)


def test_no_iterations_left_still_fills_every_cluster():
    x = torch.zeros(5, 2)
    assert kmeans(x, 5, 0, max_iterations=0).unique().numel() == 5


@pytest.mark.parametrize("k", [0, -1, 6])
def test_bad_number_of_clusters(k):
    with pytest.raises(
        ValueError, match=f"k must lie between 1 and the number of rows, 5, got {k}"
    ):
        kmeans(normal(5, 2), k, 0)


@given(st.integers(1, 12), st.integers(1, 6), st.integers(0, 1000))
def test_means_and_the_nearest_of_them(num_rows, k, seed):
    x = normal(num_rows, 3, seed=seed)
    assignment = torch.randint(k, (num_rows,), generator=_stream(seed))
    means = torch.zeros(k, 3, dtype=torch.float64)
    for cluster in assignment.unique():
        means[cluster] = x[assignment == cluster].mean(0)
    nearest = torch.cdist(x, means).argmin(1)
    for rows in (x, Sparse.from_dense(x)):
        torch.testing.assert_close(cluster_means(rows, assignment, k), means)
        assert torch.equal(nearest_mean(rows, means), nearest)


# Several starts.


def partitions(num_rows, k):
    """All ways to divide rows into k clusters that are not empty."""
    for ids in itertools.product(range(k), repeat=num_rows - 1):  # the first row has the name 0
        if len({0, *ids}) == k:
            yield torch.tensor([0, *ids])


@pytest.mark.parametrize("seed", range(3))
def test_enough_starts_find_the_best_of_all_partitions(seed):
    x = normal(8, 2, seed=seed)
    best = min(inertia(x, one) for one in partitions(8, 3))
    assert inertia(x, kmeans(x, 3, seed, starts=40)) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("make", [blobs, words])
def test_the_tightest_start_is_returned(make):
    x = make()
    rows, starts = sparsify(x), 6
    alone = [kmeans(rows, 20, seed) for seed in start_seeds(3, starts)]
    best = min(alone, key=lambda assignment: inertia(x, assignment))
    assert torch.equal(kmeans(rows, 20, 3, starts=starts), best)
    assert torch.equal(kmeans(rows, 20, 3, starts=1), kmeans(rows, 20, 3))


@pytest.mark.parametrize(("make", "k"), [(blobs, 30), (words, 20)])
def test_several_starts_are_as_tight_as_those_of_scikit_learn(make, k):
    x = make()
    ours = inertia(x, kmeans(sparsify(x), k, 0, starts=8))
    theirs = KMeans(k, n_init=8, max_iter=100, random_state=0).fit(x.numpy()).inertia_
    assert ours < 1.01 * theirs
    assert ours < inertia(x, kmeans(sparsify(x), k, 0))


def test_given_clusters_are_one_start():
    x = blobs()
    start = kmeans(x, 12, 0)
    assert torch.equal(kmeans(x, 12, 0, start=start, starts=5), kmeans(x, 12, 0, start=start))


# Rows of length one.


@given(st.integers(1, 9), st.integers(1, 5), st.integers(0, 200))
def test_unit_rows_are_directions(num_rows, width, seed):
    x = normal(num_rows, width, seed=seed)
    x[torch.rand(num_rows, generator=_stream(seed)) < 0.3] = 0
    expected = torch.stack([row / row.norm() if row.any() else row for row in x])
    torch.testing.assert_close(unit_rows(x), expected)
    sparse = unit_rows(Sparse.from_dense(x))
    torch.testing.assert_close(sparse.matrix.to_dense(), expected)
    torch.testing.assert_close(sparse.transpose.to_dense(), expected.T)


def test_unit_rows_of_a_symmetric_matrix_have_their_own_transpose():
    x = torch.tensor([[0.0, 3.0], [3.0, 4.0]])
    sparse = unit_rows(Sparse.symmetric(x.to_sparse_csr()))
    expected = torch.tensor([[0.0, 1.0], [0.6, 0.8]])
    torch.testing.assert_close(sparse.matrix.to_dense(), expected)
    torch.testing.assert_close(sparse.transpose.to_dense(), expected.T)


def test_clusters_of_unit_rows_do_not_depend_on_their_lengths():
    x, scale = blobs(), 1 + torch.rand(400, 1, generator=_stream(0))
    one, other = (kmeans(unit_rows(rows), 12, 0) for rows in (x, x * scale))
    assert torch.equal(one, other)


def test_an_empty_cluster_is_filled_before_means_move():
    x = torch.tensor([0.0, 0.1, 0.2, 9.0, 9.1, 9.2]).unsqueeze(1)
    found = kmeans(x, 2, 0, start=torch.zeros(6, dtype=torch.long))
    assert found[:3].unique().numel() == found[3:].unique().numel() == 1
    assert found[0] != found[3]


def test_means_that_hardly_move_end_it():
    x = blobs()
    once, coarse = kmeans(x, 30, 0, max_iterations=1), kmeans(x, 30, 0, tolerance=1e9)
    assert torch.equal(coarse, once)
    assert not torch.equal(kmeans(x, 30, 0), once)


def test_clusters_do_not_depend_on_the_unit_of_the_rows():
    x = blobs()
    for unit in (2.0**-12, 2.0**12):
        assert torch.equal(kmeans(unit * x, 30, 0), kmeans(x, 30, 0))


def test_distances_in_memory_are_few():
    assert 4 * kmeans.__globals__["CHUNK"] <= 2**26  # bytes
