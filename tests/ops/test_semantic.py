"""semantic_propagate against the product with the dense matrix (Eq. 5, 6)."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.core.rng import generator
from evengraph.fast.kmeans import flatten_clusters
from evengraph.ops import semantic, sparse
from evengraph.ops.semantic import (
    prepare_clusters,
    propagate_clusters,
    propagate_halves,
    semantic_propagate,
)
from evengraph.ops.sparse import Sparse, adjacency
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


@given(clusterings())
def test_prepared_clusters_give_the_same(assignment):
    x = normal(assignment.numel(), 2)
    prepared = prepare_clusters(assignment, 15, torch.float64)  # the last ones empty
    assert torch.equal(semantic_propagate(x, prepared), semantic_propagate(x, assignment))


def test_by_hand():
    x = torch.tensor([[3.0], [6.0], [9.0]])
    propagated = semantic_propagate(x, torch.tensor([0, 0, 1]))
    # (3 + 6 + 3) / 3, (3 + 6 + 6) / 3, (9 + 9) / 2
    assert propagated.flatten().tolist() == [4, 5, 9]


def test_one_cluster_and_a_cluster_each():
    x = normal(5, 2)
    one = semantic_propagate(x, torch.zeros(5, dtype=torch.long))
    torch.testing.assert_close(one, (x.sum(0) + x) / 6)
    torch.testing.assert_close(semantic_propagate(x, torch.arange(5)), x)


def test_input_is_left_alone():
    x = normal(4, 2)
    before = x.clone()
    semantic_propagate(x, torch.tensor([0, 1, 1, 0]))
    semantic_propagate(x, torch.tensor([0, 1, 1, 0]), torch.tensor([1]))
    assert torch.equal(x, before)


@pytest.mark.parametrize("shape", [(0, 3), (4, 0)])
def test_nothing_to_propagate(shape):
    propagated = semantic_propagate(torch.zeros(shape), torch.zeros(shape[0], dtype=torch.long))
    assert propagated.shape == shape


def test_one_cluster_id_per_row():
    with pytest.raises(ValueError, match=r"one id for each of the 4 rows of x, got shape \(3,\)"):
        semantic_propagate(normal(4, 2), torch.zeros(3, dtype=torch.long))


def test_several_replicas_at_once():
    x, first = normal(3, 8, 2), torch.randint(4, (3, 8), generator=generator(0))
    together = prepare_clusters(flatten_clusters(first, 4), 12, x.dtype)
    found = semantic_propagate(x, together)
    for one, rows, clusters in zip(found, x, first, strict=True):
        torch.testing.assert_close(one, semantic_propagate(rows, clusters))


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
