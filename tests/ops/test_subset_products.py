"""Some nodes of each replica: lists of them, and products between them, against brute force."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.core.rng import generator
from evengraph.fast import subsets as subset_products
from evengraph.fast.kmeans import flatten_clusters
from evengraph.fast.row_chunks import chunk_rows, chunk_rows_fixed
from evengraph.fast.subsets import (
    SubsetMatrix,
    make_subset,
    neighbour_mask,
    semantic_propagate_subset,
)
from evengraph.ops.semantic import prepare_clusters, propagate_clusters
from evengraph.ops.sparse import Sparse, adjacency, normalise, undirected_adjacency
from kernel_inputs import DEVICE
from small_graphs import (
    dense_adjacency,
    dense_semantic,
    dense_symmetric,
    edge_lists,
    normal,
    random_edges,
)

NODES = 8


@st.composite
def choices(draw, num_nodes):
    """Some nodes for each of a few replicas, and a limit that suffices."""
    chosen = draw(
        st.lists(
            st.lists(st.booleans(), min_size=num_nodes, max_size=num_nodes)
            | st.sampled_from([[False] * num_nodes, [True] * num_nodes]),
            min_size=1,
            max_size=3,
        )
    )
    most = max(1, *map(sum, chosen))
    return torch.tensor(chosen), draw(st.sampled_from([most, most + 1, num_nodes + 2]))


@st.composite
def graphs_and_choices(draw):
    edge_index, num_nodes = draw(edge_lists(max_nodes=NODES))
    return edge_index, num_nodes, *draw(choices(num_nodes))


def listed(chosen):
    return [one.nonzero().flatten().tolist() for one in chosen]


@given(st.integers(1, NODES).flatmap(choices))
def test_subset_lists_what_is_chosen(parts):
    chosen, limit = parts
    found = make_subset(chosen.to(DEVICE), limit)
    assert found.nodes.shape == (len(chosen), limit)
    assert found.nodes.dtype == torch.long
    assert found.nodes.is_contiguous()
    assert found.positions.dtype == torch.int32
    for nodes, positions, wanted in zip(
        found.nodes.tolist(), found.positions.tolist(), listed(chosen), strict=True
    ):
        assert nodes == wanted + [-1] * (limit - len(wanted))
        expected = [wanted.index(n) if n in wanted else -1 for n in range(chosen.shape[1])]
        assert positions == expected
    assert torch.equal(found.padded, torch.where(found.nodes < 0, 0, found.nodes))


def test_a_list_of_none():
    found = make_subset(torch.zeros(2, 3, dtype=torch.bool, device=DEVICE), 0)
    assert found.nodes.shape == (2, 0)
    assert found.positions.tolist() == [[-1] * 3] * 2


@given(graphs_and_choices(), st.booleans())
def test_neighbours_are_met_by_a_chosen_node(parts, directed):
    edge_index, num_nodes, chosen, _ = parts
    matrix = (adjacency if directed else undirected_adjacency)(edge_index, num_nodes)
    dense = dense_adjacency(edge_index, num_nodes, undirected=not directed)
    found = neighbour_mask(chosen.to(DEVICE), Sparse.from_scipy(0.1 * matrix, DEVICE))
    assert found.is_contiguous()
    assert found.cpu().tolist() == [
        [any(one[j] and dense[j, i] for j in range(num_nodes)) for i in range(num_nodes)]
        for one in chosen
    ]


@pytest.fixture(params=["plain", "kernels"])
def form(request, monkeypatch):
    """Both forms, whatever the device."""
    if request.param == "kernels":
        pytest.importorskip("triton")
    monkeypatch.setattr(subset_products, "has_kernels", lambda device: request.param == "kernels")
    return request.param


def symmetric(edge_index, num_nodes):
    """The normalised graph, chunked as on a GPU; and dense."""
    dense = dense_symmetric(dense_adjacency(edge_index, num_nodes, undirected=True))
    scipy = normalise(undirected_adjacency(edge_index, num_nodes), "symmetric")
    one = Sparse.from_scipy(scipy, DEVICE, torch.float64)
    sparse = Sparse.symmetric(one.matrix)
    vars(sparse)["chunks"] = chunk_rows(one.matrix.crow_indices())
    return sparse, dense.to(DEVICE)


def rows_at(chosen, limit):
    """The 0/1 matrix that takes the rows of the chosen nodes, (R, limit, N)."""
    matrix = torch.zeros(*chosen.shape[:1], limit, chosen.shape[1], dtype=torch.float64)
    for replica, nodes in enumerate(listed(chosen)):
        matrix[replica, range(len(nodes)), nodes] = 1
    return matrix.to(DEVICE)


def check_with_gradient(function, expected, x):
    """Values and gradients of a function against those of another."""
    x = x.to(DEVICE).requires_grad_()
    found, wanted = function(x), expected(x)
    torch.testing.assert_close(found, wanted)
    weight = normal(*found.shape, seed=5).to(DEVICE)
    for one, other in zip(
        torch.autograd.grad(found, x, weight), torch.autograd.grad(wanted, x, weight), strict=True
    ):
        torch.testing.assert_close(one, other)


def check_subset_matrix(edge_index, num_nodes, to, of, width):
    """`to` and `of` are pairs of a choice and a limit; without `of`, x holds all nodes."""
    sparse, dense = symmetric(edge_index, num_nodes)
    ours = SubsetMatrix(sparse, make_subset(to[0].to(DEVICE), to[1]))
    wanted = rows_at(*to) @ dense
    count = num_nodes
    if of is not None:
        ours = SubsetMatrix(sparse, ours.rows, make_subset(of[0].to(DEVICE), of[1]))
        wanted, count = wanted @ rows_at(*of).transpose(1, 2), of[1]
    x = normal(len(to[0]), count, width)
    check_with_gradient(lambda x: ours @ x, lambda x: wanted @ x, x)
    return ours, x


@given(graphs_and_choices(), st.data())
def test_subset_matrix_equals_dense_matrices(parts, data):
    edge_index, num_nodes, chosen, limit = parts
    other, other_limit = data.draw(choices(num_nodes))
    other = other[torch.arange(len(chosen)) % len(other)]
    check_subset_matrix(edge_index, num_nodes, (chosen, limit), None, 2)
    check_subset_matrix(edge_index, num_nodes, (chosen, limit), (other, other_limit), 2)


FEW = torch.zeros(3, 6, dtype=torch.bool)
FEW[0, [1, 4]] = True  # the second has nothing chosen, the last everything
FEW[2] = True
OTHERS = torch.zeros(3, 6, dtype=torch.bool)
OTHERS[0], OTHERS[1, [0, 2, 5]] = True, True


@pytest.mark.parametrize("limits", [(6, 6), (7, 8)])
@pytest.mark.parametrize("some", [False, True])
def test_subset_matrix_in_both_forms(form, some, limits):
    of = (OTHERS, limits[1]) if some else None
    ours, x = check_subset_matrix(random_edges(6, 9), 6, (FEW, limits[0]), of, 3)
    if form == "plain":
        torch.autograd.gradcheck(lambda x: ours @ x, x.to(DEVICE).requires_grad_())


def test_rows_without_a_node_are_zero_and_their_gradient_is_not_read(form):
    sparse, _ = symmetric(random_edges(6, 9), 6)
    ours = SubsetMatrix(sparse, make_subset(FEW.to(DEVICE), 6), make_subset(OTHERS.to(DEVICE), 6))
    x = normal(3, 6, 2).to(DEVICE).requires_grad_()
    found = ours @ x
    assert not found[ours.rows.nodes < 0].any()
    weight = normal(3, 6, 2, seed=5).to(DEVICE)
    (first,) = torch.autograd.grad(found, x, weight, retain_graph=True)
    weight[ours.rows.nodes < 0] = 99.0
    (second,) = torch.autograd.grad(found, x, weight)
    assert torch.equal(first, second)
    assert not first[ours.columns.nodes < 0].any()


def clustering(replicas, num_nodes, num_clusters):
    """Clusters of all replicas, chunked as on a GPU; and the dense matrix over them."""
    first = torch.randint(num_clusters, (replicas, num_nodes), generator=generator(0))
    flat = flatten_clusters(first, num_clusters)
    clusters = prepare_clusters(flat.to(DEVICE), replicas * num_clusters, torch.float64)
    chunks = chunk_rows_fixed(clusters.members.crow_indices(), flat.numel())
    return clusters._replace(chunks=chunks), dense_symmetric(dense_semantic(flat)).to(DEVICE)


def check_semantic(chosen, limit):
    replicas, num_nodes = chosen.shape
    clusters, dense = clustering(replicas, num_nodes, 3)
    to = make_subset(chosen.to(DEVICE), limit)
    there = (to.nodes >= 0).unsqueeze(2)  # rows without a node hold anything

    def ours(x):
        return torch.where(there, semantic_propagate_subset(x, clusters, to), 0)

    def wanted(x):
        return rows_at(chosen, limit) @ (dense @ x.flatten(0, 1)).view_as(x)

    x = normal(replicas, num_nodes, 2)
    check_with_gradient(ours, wanted, x)
    return ours, x


@given(st.integers(1, NODES).flatmap(choices))
def test_semantic_subset_equal_the_dense_product(parts):
    check_semantic(*parts)


@pytest.mark.parametrize("limit", [6, 8])
def test_semantic_subset_in_both_forms(form, limit):
    ours, x = check_semantic(FEW, limit)
    if form == "plain":
        torch.autograd.gradcheck(ours, x.to(DEVICE).requires_grad_())


@pytest.mark.parametrize("limit", [6, 8])
@pytest.mark.parametrize("width", [1, 5])
@pytest.mark.usefixtures("poisoned_memory")
def test_semantic_backward_equals_the_plain_form(width, limit):
    pytest.importorskip("triton")
    clusters, _ = clustering(3, 6, 3)
    to = make_subset(FEW.to(DEVICE), limit)
    gradient = normal(3, limit, width).to(DEVICE)
    gradient[to.nodes < 0] = torch.nan  # belongs to no node
    found = subset_products._semantic_backward(gradient, clusters, to)
    whole = subset_products._scatter(gradient.nan_to_num(), to)
    plain = propagate_clusters(whole.flatten(0, 1), clusters).view_as(whole)
    torch.testing.assert_close(found, plain)


@pytest.mark.usefixtures("form")
def test_the_gradient_of_a_sum():
    """It comes as one number with strides of zero."""
    clusters, _ = clustering(3, 6, 3)
    sparse, _ = symmetric(random_edges(6, 9), 6)
    to = make_subset(FEW.to(DEVICE), 6)
    x = normal(3, 6, 2).to(DEVICE).requires_grad_()
    for function in (
        lambda x: semantic_propagate_subset(x, clusters, to),
        lambda x: SubsetMatrix(sparse, to) @ x,
    ):
        (found,) = torch.autograd.grad(function(x).sum(), x)
        (wanted,) = torch.autograd.grad(function(x), x, torch.ones_like(x))
        torch.testing.assert_close(found, wanted)


def test_a_matrix_that_is_not_symmetric():
    matrix = adjacency(random_edges(12, 40, seed=1), 12)
    row = Sparse.from_scipy(matrix, torch.device("cpu"), torch.float64)
    to = make_subset(torch.rand(2, 12, generator=generator(0)) < 0.4, 12)
    of = make_subset(torch.rand(2, 12, generator=generator(1)) < 0.5, 12)
    x = normal(2, 12, 3, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: SubsetMatrix(row, to) @ x, x)
    assert torch.autograd.gradcheck(lambda x: SubsetMatrix(row, to, of) @ x, x)
