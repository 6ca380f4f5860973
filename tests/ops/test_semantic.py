"""semantic_propagate against the product with the dense matrix (Eq. 5, 6)."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from evengraph.datasets import toy
from evengraph.ops import semantic, sparse
from evengraph.ops.semantic import (
    cluster_means,
    fill_empty,
    kmeans,
    nearest_mean,
    prepare_clusters,
    propagate_clusters,
    propagate_halves,
    semantic_propagate,
    start_seeds,
    unit_rows,
)
from evengraph.ops.sparse import Sparse, adjacency, sparsify
from small_graphs import dense_semantic, dense_symmetric, normal, random_edges


@st.composite
def clusterings(draw):
    """A cluster for each node; some clusters may be empty."""
    num_nodes, num_clusters = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    cluster = st.integers(0, num_clusters - 1)
    return torch.tensor(draw(st.lists(cluster, min_size=num_nodes, max_size=num_nodes)))


def reference(x, assignment):
    return dense_symmetric(dense_semantic(assignment)) @ x


def with_gradient(function, x, seed):
    x = x.clone().requires_grad_()
    value = function(x)
    (gradient,) = torch.autograd.grad(value, x, normal(*value.shape, seed=seed))
    return value.detach(), gradient


@given(clusterings(), st.integers(1, 4), st.integers(0, 1000))
def test_equals_the_dense_product(assignment, width, seed):
    x = normal(assignment.numel(), width, seed=seed)
    value, gradient = with_gradient(lambda x: semantic_propagate(x, assignment), x, seed)
    dense_value, dense_gradient = with_gradient(lambda x: reference(x, assignment), x, seed)
    torch.testing.assert_close(value, dense_value)
    torch.testing.assert_close(gradient, dense_gradient)


@given(clusterings(), st.data())
def test_some_nodes_equal_their_rows(assignment, data):
    num_nodes = assignment.numel()
    nodes = torch.tensor(
        data.draw(st.lists(st.integers(0, num_nodes - 1), unique=True)), dtype=torch.long
    )
    x = normal(num_nodes, 3)
    value, gradient = with_gradient(lambda x: semantic_propagate(x, assignment, nodes), x, 1)
    dense_value, dense_gradient = with_gradient(lambda x: reference(x, assignment)[nodes], x, 1)
    torch.testing.assert_close(value, dense_value)
    torch.testing.assert_close(gradient, dense_gradient)


@pytest.mark.parametrize("shape", [(0, 3), (4, 0)])
def test_nothing_to_propagate(shape):
    propagated = semantic_propagate(torch.zeros(shape), torch.zeros(shape[0], dtype=torch.long))
    assert propagated.shape == shape


def test_one_cluster_id_per_row():
    with pytest.raises(ValueError, match=r"one id for each of the 4 rows of x, got shape \(3,\)"):
        semantic_propagate(normal(4, 2), torch.zeros(3, dtype=torch.long))


@pytest.mark.parametrize("form", ["contiguous", "columns", "transposed"])
def test_the_result_goes_to_the_output_whatever_the_strides_of_the_input(form):
    whole, turned = normal(6, 128).float(), normal(64, 6).float().t()
    x = {"contiguous": whole, "columns": whole[:, ::2], "transposed": turned}[form]
    clusters = prepare_clusters(torch.tensor([0, 1, 0, 2, 1, 0]), 3, x.dtype)
    wanted = propagate_clusters(x.clone(memory_format=torch.contiguous_format), clusters)
    output = torch.full((6, 2 * x.shape[1]), torch.nan, dtype=x.dtype)[:, ::2]
    result = propagate_clusters(x, clusters, output)
    assert result.data_ptr() == output.data_ptr()
    assert torch.equal(output, wanted)
    assert torch.equal(propagate_clusters(x, clusters), wanted)


@pytest.mark.parametrize("replicas", [(), (2,)])
def test_halves_are_propagated_each_in_its_own_way(replicas):
    matrix = adjacency(random_edges(5, 9), 5)
    structural = Sparse.from_scipy(matrix, torch.device("cpu"), torch.float64)
    assignment = torch.tensor([0, 1, 0, 2, 1] * (2 if replicas else 1))
    clusters = prepare_clusters(assignment, 3, torch.float64)

    def wanted(x):
        left, right = x[..., :3], x[..., 3:]
        return torch.cat([semantic_propagate(left, clusters), structural @ right], -1)

    x = normal(*replicas, 5, 6)
    found = with_gradient(lambda x: propagate_halves(x, clusters, structural), x, 1)
    for one, other in zip(found, with_gradient(wanted, x, 1), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("form", ["contiguous", "columns", "every second", "transposed"])
def test_kernels_get_rows_without_gaps(form, monkeypatch):
    pytest.importorskip("triton")
    assignment = torch.tensor([0, 1, 0, 2, 1, 0])
    x = {
        "contiguous": normal(6, 8).float(),
        "columns": normal(6, 16).float()[:, 8:],
        "every second": normal(6, 16).float()[:, ::2],
        "transposed": normal(8, 6).float().t(),
    }[form]
    plain = propagate_clusters(x, prepare_clusters(assignment, 3, x.dtype))
    for module in (semantic, sparse):
        monkeypatch.setattr(module, "has_kernels", lambda device: True)
    clusters = prepare_clusters(assignment, 3, x.dtype)
    assert clusters.chunks is not None
    torch.testing.assert_close(propagate_clusters(x, clusters), plain)


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


def test_global_random_state_is_neither_read_nor_changed(random_state):
    x = blobs()
    torch.manual_seed(0)
    first = kmeans(x, 20, 5)
    torch.manual_seed(1)
    before = random_state()
    assert torch.equal(kmeans(x, 20, 5), first)
    assert random_state() == before
    assert not torch.equal(kmeans(x, 20, 6), first)


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


def test_rows_far_from_the_origin():
    x, _ = make_blobs(300, 3, centers=6, cluster_std=0.05, random_state=0)
    x = torch.tensor(x, dtype=torch.float32)
    near, far = kmeans(x, 6, 0), kmeans(x + 1000, 6, 0)
    assert inertia(x, far) == pytest.approx(inertia(x, near), rel=0.02)
    means = cluster_means(x + 1000, far, 6)
    assert (nearest_mean(x + 1000, means) == far).float().mean() > 0.99


def test_rows_in_several_chunks_give_the_same_clusters(monkeypatch):
    x = words()
    whole = kmeans(x, 20, 0)
    monkeypatch.setattr(semantic, "CHUNK", 1000)
    assert torch.equal(kmeans(x, 20, 0), whole)


@given(st.integers(2, 30), st.integers(0, 1000), st.data())
def test_a_start_never_gets_worse(num_rows, seed, data):
    k = data.draw(st.integers(1, num_rows))
    x = normal(num_rows, 3, seed=seed)
    start = torch.arange(num_rows)[torch.randperm(num_rows, generator=_stream(seed))] % k
    after = kmeans(x, k, 0, start=start)
    assert inertia(x, after) <= inertia(x, start) * (1 + 1e-9)


def _stream(seed):
    return torch.Generator().manual_seed(seed)


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


@pytest.mark.parametrize("make", [blobs, words])
def test_the_tightest_start_is_returned(make):
    x = make()
    rows, starts = sparsify(x), 6
    alone = [kmeans(rows, 20, seed) for seed in start_seeds(3, starts)]
    best = min(alone, key=lambda assignment: inertia(x, assignment))
    assert torch.equal(kmeans(rows, 20, 3, starts=starts), best)
    assert torch.equal(kmeans(rows, 20, 3, starts=1), kmeans(rows, 20, 3))


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
