"""Some nodes of each replica: lists of them, and products between them, against brute force."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from evengraph.core.rng import generator
from evengraph.fast import subsets as subset_products
from evengraph.fast.adam import adam_step, bias_corrections, keep_where
from evengraph.fast.kmeans import batched_kmeans, flatten_clusters
from evengraph.fast.row_chunks import chunk_rows, chunk_rows_fixed
from evengraph.fast.subsets import (
    SubsetMatrix,
    make_subset,
    neighbour_mask,
    semantic_propagate_subset,
)
from evengraph.ops.semantic import (
    cluster_means,
    kmeans,
    prepare_clusters,
    propagate_clusters,
    start_seeds,
)
from evengraph.ops.sparse import Sparse, adjacency, normalise, undirected_adjacency
from kernel_inputs import DEVICE, on_device
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


RATE, WEIGHT_DECAY = 0.03, 0.2


def torch_adam(weight):
    weight = nn.Parameter(weight.clone())
    return weight, torch.optim.Adam([weight], lr=RATE, weight_decay=WEIGHT_DECAY)


@pytest.mark.parametrize("shape", [(3, 4), (3, 5, 7), (1, 1)], ids=str)
def test_equals_torch_for_each_replica(shape):
    weight = on_device(*shape)
    best, mean, square = (torch.zeros_like(weight) for _ in range(3))
    counts = torch.zeros(shape[0], dtype=torch.long, device=DEVICE)
    is_best = torch.zeros(shape[0], dtype=torch.bool, device=DEVICE)
    alone = [torch_adam(row) for row in weight]
    for step in range(6):
        if step == 2:  # a new run in the last slot
            weight[-1] = on_device(*shape[1:], seed=50)
            mean[-1] = square[-1] = counts[-1] = 0
            alone[-1] = torch_adam(weight[-1])
        gradient = on_device(*shape, seed=10 + step)
        counts += 1
        rates = bias_corrections(counts, RATE)
        adam_step(weight, gradient, mean, square, best, is_best, *rates, weight_decay=WEIGHT_DECAY)
        for (row, optimiser), row_gradient in zip(alone, gradient, strict=True):
            row.grad = row_gradient.clone()
            optimiser.step()
    expected = torch.stack([row.detach() for row, _ in alone])
    torch.testing.assert_close(weight, expected, rtol=1e-4, atol=1e-5)
    assert (best == 0).all()


def test_keep_where_copies_the_replicas_of_the_mask_alone():
    source, target = on_device(3, 2, 2), on_device(3, 2, 2, seed=1)
    before = target.clone()
    keep_where(torch.tensor([True, False, True], device=DEVICE), source, target)
    assert torch.equal(target[[0, 2]], source[[0, 2]])
    assert torch.equal(target[1], before[1])


KS = [3, 7, 5, 7]


def sets(num_rows=60, width=4):
    """Sets of blobs, well apart, so that rounding decides nothing."""
    centres = 10 * normal(len(KS), 8, width, seed=1)
    return centres[:, torch.arange(num_rows) % 8] + normal(len(KS), num_rows, width, seed=2)


def inertia(x, assignment, k):
    means = cluster_means(x, assignment, k)
    return float((x - means[assignment]).square().sum())


def test_from_given_clusters_each_set_goes_its_own_way():
    x = sets()
    start = torch.stack([torch.arange(60) % k for k in KS])
    found = batched_kmeans(x, KS, start=start)
    for one, k, rows, first in zip(found, KS, x, start, strict=True):
        assert torch.equal(one, kmeans(rows, k, seed=0, start=first))


def test_from_nothing_as_good_as_alone():
    x = sets()
    found = batched_kmeans(x, KS, seeds=[4, 5, 6, 7])
    for one, k, rows, seed in zip(found, KS, x, [4, 5, 6, 7], strict=True):
        assert one.unique().tolist() == list(range(k))
        alone = inertia(rows, kmeans(rows, k, seed), k)
        assert inertia(rows, one, k) <= 1.5 * alone


def test_a_set_does_not_depend_on_its_company():
    x = sets()
    together = batched_kmeans(x, KS, seeds=[4, 5, 6, 7])
    alone = batched_kmeans(x[1:2], KS[1:2], seeds=[5])
    assert torch.equal(together[1], alone[0])


@pytest.mark.parametrize("distinct", [1, 2, 5])
def test_no_cluster_stays_empty(distinct):
    x = normal(2, distinct, 3)[:, torch.arange(20) % distinct]
    for one, k in zip(batched_kmeans(x, [6, 3], seeds=[0, 1]), [6, 3], strict=True):
        assert one.unique().tolist() == list(range(k))


def test_clusters_of_all_sets_as_one():
    clusters = torch.tensor([[0, 1, 1], [2, 0, 0]])
    assert flatten_clusters(clusters, 3).tolist() == [0, 1, 1, 5, 3, 3]


def test_distances_in_pieces(monkeypatch):
    x = sets()
    whole = batched_kmeans(x, KS, seeds=[4, 5, 6, 7])
    monkeypatch.setattr("evengraph.fast.kmeans.CHUNK", 100)
    assert torch.equal(batched_kmeans(x, KS, seeds=[4, 5, 6, 7]), whole)


def test_each_set_keeps_its_tightest_start():
    x = normal(len(KS), 60, 4, seed=8)  # without structure, so that starts differ
    seeds, starts = [4, 15, 26, 37], 5
    each = zip(*(start_seeds(seed, starts) for seed in seeds), strict=True)
    rounds = [batched_kmeans(x, KS, seeds=one) for one in each]
    best = batched_kmeans(x, KS, seeds=seeds, starts=starts)
    chosen = set()
    for number, (rows, k) in enumerate(zip(x, KS, strict=True)):
        values = [inertia(rows, one[number], k) for one in rounds]
        assert inertia(rows, best[number], k) == pytest.approx(min(values))
        chosen.add(values.index(min(values)))
    assert len(chosen) > 1  # not one round for all


def test_seeds_of_starts_begin_with_the_seed_and_do_not_overlap():
    one, other = start_seeds(7, 5), start_seeds(8, 5)
    assert (one[0], other[0], start_seeds(7, 1)) == (7, 8, [7])
    assert len({*one, *other}) == 10


def test_given_clusters_are_one_start():
    x = sets()
    start = batched_kmeans(x, KS, seeds=[4, 5, 6, 7])
    expected = batched_kmeans(x, KS, start=start)
    assert torch.equal(batched_kmeans(x, KS, start=start, starts=3), expected)
