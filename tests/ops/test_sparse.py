"""Matrices of graphs against dense ones: products, paths, clusters, edges for attention."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from torch_geometric.data import Data

from evengraph.datasets import toy
from evengraph.nn.networks import EdgeList, attend, list_edges
from evengraph.ops import semantic, sparse, structural
from evengraph.ops.semantic import (
    cluster_means,
    fill_empty,
    kmeans,
    nearest_mean,
    prepare_clusters,
    propagate_clusters,
    semantic_propagate,
    start_seeds,
    unit_rows,
)
from evengraph.ops.sparse import (
    Sparse,
    adjacency,
    diffuse,
    neighbour_averages,
    neighbour_means,
    normalise,
    pagerank_rows,
    propagation_matrix,
    scatter_sum,
    sparsify,
    take,
    undirected_adjacency,
    weighted_adjacency,
)
from evengraph.ops.structural import structural_adjacency
from evengraph.ops.synthesis import AttachedGraph, GraphWithCopies
from small_graphs import (
    assert_same_product,
    dense_adjacency,
    dense_row,
    dense_semantic,
    dense_structural,
    dense_symmetric,
    edge_lists,
    edges,
    normal,
    random_edges,
    value_and_gradient,
)

CPU = torch.device("cpu")


@st.composite
def matrices(draw):
    """Mostly zeros, empty rows and columns included."""
    rows, columns = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    kept = draw(st.lists(st.booleans(), min_size=rows * columns, max_size=rows * columns))
    values = normal(rows, columns, seed=draw(st.integers(0, 1000)))
    return values * torch.tensor(kept).reshape(rows, columns)


@given(matrices(), st.integers(0, 3))
def test_product_and_gradient(dense, width):
    assert_same_product(Sparse.from_dense(dense), dense, normal(dense.shape[1], width))


@given(matrices(), st.integers(1, 4))
def test_gradient_in_blocks_of_columns(dense, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse, "BLOCK", block)
        patch.setattr(sparse, "LONG", 0)
        matrix = Sparse.from_dense(dense)
        assert (matrix._blocks is None) == (dense.shape[0] <= block)
        assert_same_product(matrix, dense, normal(dense.shape[1], 2))
        several = normal(3, dense.shape[0], 2)
        torch.testing.assert_close(matrix.transposed_product(several), dense.t() @ several)


def test_only_long_rows_are_cut_into_blocks():
    long, short = normal(2 * sparse.BLOCK, 3), torch.eye(2 * sparse.BLOCK)
    blocks = Sparse.from_dense(long)._blocks
    assert blocks is not None
    assert blocks.shape == (2 * 3, 2 * sparse.BLOCK)
    assert Sparse.from_dense(short)._blocks is None
    assert Sparse.from_dense(long.t())._blocks is None


@given(matrices(), st.data())
def test_rows_in_the_order_asked_for(dense, data):
    index = torch.tensor(data.draw(st.lists(st.integers(0, dense.shape[0] - 1))), dtype=torch.long)
    matrix = Sparse.from_dense(dense)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.Tensor, "is_cpu", False)
        on_gpu = matrix.rows(index)
    for some in (matrix.rows(index), on_gpu):
        assert some.shape == (index.numel(), dense.shape[1])
        assert torch.equal(some.matrix.to_dense(), dense[index])
        assert torch.equal(some.transpose.to_dense(), dense[index].t())
        assert_same_product(some, dense[index], normal(dense.shape[1], 2))


@given(matrices())
def test_columns_without_entries_are_left_out(dense):
    occupied, narrow = Sparse.from_dense(dense).without_empty_columns()
    assert occupied.tolist() == (dense != 0).any(0).nonzero().flatten().tolist()
    assert occupied.dtype == torch.int64
    assert torch.equal(narrow.matrix.to_dense(), dense[:, occupied])
    assert torch.equal(narrow.transpose.to_dense(), dense[:, occupied].t())
    assert_same_product(narrow, dense[:, occupied], normal(occupied.numel(), 2))


@given(st.integers(1, 6), st.integers(0, 3), st.data())
def test_take_and_its_gradient(size, width, data):
    rows = data.draw(st.lists(st.integers(0, size - 1)))
    x = normal(size, width).requires_grad_()
    value = take(x, torch.tensor(rows, dtype=torch.long))
    upstream = normal(len(rows), width, seed=1)
    expected = torch.zeros(size, width, dtype=torch.float64)
    for place, row in enumerate(rows):
        assert torch.equal(value[place], x[row])
        expected[row] += upstream[place]
    assert value.shape == (len(rows), width)
    torch.testing.assert_close(*torch.autograd.grad(value, x, upstream), expected)


@given(st.integers(1, 6), st.sampled_from([(), (1,), (3,), (2, 2)]), st.data())
def test_scatter_sum_and_its_gradient(size, shape, data):
    index = data.draw(st.lists(st.integers(0, size - 1)))
    values = normal(len(index), *shape).requires_grad_()
    total = scatter_sum(values, torch.tensor(index, dtype=torch.long), size)
    expected = torch.zeros(size, *shape, dtype=torch.float64)
    for place, row in enumerate(index):
        expected[row] += values[place].detach()
    torch.testing.assert_close(total.detach(), expected)
    upstream = normal(size, *shape, seed=1)
    (gradient,) = torch.autograd.grad(total, values, upstream)
    assert gradient.shape == values.shape
    for place, row in enumerate(index):
        assert torch.equal(gradient[place], upstream[row])


def test_features_are_sparse_when_few_are_set():
    words = torch.zeros(10, 10)
    words[:, :2] = 1
    assert isinstance(sparsify(words), Sparse)
    assert torch.equal(sparsify(words).matrix.to_dense(), words)
    words[:, :3] = 1
    assert sparsify(words) is words
    nothing, learnt = torch.zeros(3, 0), torch.zeros(2, 9, requires_grad=True)
    assert sparsify(nothing) is nothing
    assert sparsify(learnt) is learnt


@given(matrices(), st.integers(1, 3))
def test_a_leading_axis_stands_for_several_products(dense, replicas):
    x = normal(replicas, dense.shape[1], 2)
    matrix = Sparse.from_dense(dense)
    value, gradient = value_and_gradient(matrix, x)
    torch.testing.assert_close(value, dense @ x)
    torch.testing.assert_close(gradient, dense.t() @ normal(*value.shape, seed=1))


@pytest.mark.parametrize(("columns", "kind"), [(2**31 - 1, torch.int32), (2**31, torch.int64)])
def test_indices_have_as_many_bits_as_they_need(columns, kind):
    parts = torch.tensor([0, 1]), torch.tensor([columns - 1]), torch.ones(1)
    matrix = sparse.csr(*parts, (1, columns))
    assert matrix.crow_indices().dtype == matrix.col_indices().dtype == kind
    assert matrix.col_indices().tolist() == [columns - 1]


def test_rows_are_cut_into_chunks_on_a_gpu_only(monkeypatch):
    dense = normal(5, 3)
    matrix, symmetric = Sparse.from_dense(dense), Sparse.symmetric(dense.to_sparse_csr())
    assert matrix.chunks is matrix.transposed_chunks is None
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    matrix = Sparse.from_dense(dense)
    assert int(matrix.chunks.stops.max()) == int(matrix.transposed_chunks.stops.max()) == 15
    assert matrix.chunks is not matrix.transposed_chunks
    assert symmetric.chunks is symmetric.transposed_chunks


@pytest.mark.skipif(torch.cuda.is_available(), reason="runs kernels in Triton's interpreter")
def test_kernels_get_the_chunks_of_rows_that_a_matrix_lacks(monkeypatch):
    pytest.importorskip("triton")
    dense = torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
    x = normal(3, 8).float()
    matrix = Sparse.from_dense(dense).matrix
    monkeypatch.setattr(sparse, "has_kernels", lambda device: True)
    chunks = sparse.chunk_rows_fixed(matrix.crow_indices(), matrix.col_indices().numel())
    for given_chunks in (None, chunks):
        torch.testing.assert_close(sparse.product(matrix, x, given_chunks), dense @ x)


@given(edge_lists())
def test_adjacency_is_binary_without_loops(graph):
    for build, undirected in ((adjacency, False), (undirected_adjacency, True)):
        matrix = build(*graph)
        expected = dense_adjacency(*graph, undirected=undirected)
        assert matrix.format == "csr"
        assert np.array_equal(matrix.toarray(), expected.numpy())
        assert matrix.nnz == int(expected.sum())


def test_normalising_refuses_one_way_edges():
    matrix = adjacency(edges([(0, 1), (1, 2)]), 3)
    for how in ("row", "symmetric"):
        with pytest.raises(ValueError, match="symmetric"):
            normalise(matrix, how)
    with pytest.raises(ValueError, match="symmetric"):
        propagation_matrix(matrix, torch.device("cpu"))


@pytest.mark.parametrize("bad", [[(0, 3)], [(-1, 0)]])
def test_adjacency_refuses_ids_outside_the_graph(bad):
    with pytest.raises(ValueError, match="edge_index must hold node ids from 0 to 2"):
        adjacency(edges(bad), 3)


@given(edge_lists(), st.sampled_from(["symmetric", "row"]), st.integers(0, 99))
def test_normalised_products_equal_the_formula_with_weights_too(graph, how, seed):
    edge_index, num_nodes = graph
    weights = normal(num_nodes, num_nodes, seed=seed).abs()
    weighted = dense_adjacency(edge_index, num_nodes, undirected=True) * (weights + weights.t())
    binary = sp.csr_matrix(weighted.numpy())
    before = binary.copy()
    matrix = propagation_matrix(binary, CPU, how=how, dtype=torch.float64)
    formula = {"symmetric": dense_symmetric, "row": dense_row}[how]
    assert_same_product(matrix, formula(weighted), normal(num_nodes, 3))
    assert (binary != before).nnz == 0


def test_diffusion_adds_the_start_again():
    matrix = propagation_matrix(undirected_adjacency(edges([(0, 1)]), 2), torch.device("cpu"))
    x = torch.tensor([[1.0], [0.0]])
    torch.testing.assert_close(diffuse(matrix, x, 1, 0.2), torch.tensor([[0.6], [0.4]]))
    torch.testing.assert_close(diffuse(matrix, x, 2, 0.2), torch.tensor([[0.6], [0.4]]))
    assert torch.equal(diffuse(matrix, x, 0, 0.2), x)


def weighted(edge_index, weight, num_nodes=5):
    return Data(x=torch.eye(num_nodes), edge_index=edge_index, edge_weight=weight)


def test_weights_of_repeated_edges_are_summed_and_the_larger_direction_counts():
    edge_index = torch.tensor([[0, 0, 1, 2, 3], [1, 1, 0, 3, 3]])
    matrix = undirected_adjacency(edge_index, 5, torch.tensor([1.0, 2.0, 2.5, 4.0, 9.0]))
    expected = np.zeros((5, 5))
    expected[0, 1] = expected[1, 0] = 3.0
    expected[2, 3] = expected[3, 2] = 4.0
    assert np.array_equal(matrix.toarray(), expected)


def test_the_unit_of_weights_does_not_matter():
    edge_index = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
    weight = torch.tensor([1.0, 1.0, 3.0, 3.0, 0.0, 0.0])
    euros, cents = (weighted_adjacency(weighted(edge_index, w)) for w in (weight, 100 * weight))
    np.testing.assert_allclose(euros.toarray(), cents.toarray(), rtol=1e-6)
    assert euros.data.mean() == 1
    assert euros.nnz == 4
    plain = Data(x=torch.eye(5), edge_index=edge_index)
    equal = weighted_adjacency(weighted(edge_index, torch.full((6,), 0.1)))
    assert (equal != weighted_adjacency(plain)).nnz == 0
    assert equal.dtype == np.float32


@pytest.mark.parametrize("weight", [None, torch.tensor([1.0, 1.0, 3.0, 3.0])])
def test_a_graph_is_normalised_once_per_kind_until_it_changes(weight):
    graph = weighted(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), weight)

    def normalised(how="row"):
        return propagation_matrix(weighted_adjacency(graph), CPU, how=how)

    with torch.inference_mode():
        alone = normalised()
    first = normalised()
    assert first is not alone
    assert normalised() is first
    assert normalised("symmetric") is not first
    graph.edge_index[:, :2] = torch.tensor([[3, 4], [4, 3]])
    assert not torch.equal(normalised().matrix.to_dense(), first.matrix.to_dense())


def test_means_over_neighbours_count_weights():
    edge_index = torch.tensor([[0, 0, 1, 2], [1, 2, 0, 0]])
    matrix = undirected_adjacency(edge_index, 4, torch.tensor([1.0, 3.0, 1.0, 3.0]))
    rows = neighbour_means(matrix, CPU, torch.float64) @ torch.eye(4, dtype=torch.float64)
    assert rows.tolist() == [[0, 0.25, 0.75, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]


def related_graph(weighted):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        arcs = torch.stack([torch.randint(high, (40,)) for high in (3, 9, 9)])
        arcs = torch.unique(arcs[:, arcs[1] != arcs[2]], dim=1)
        weight = torch.rand(arcs.shape[1]) + 0.1
    both = torch.cat([arcs[1:], arcs[1:].flip(0)], 1)
    parts = {"relation_weight": weight, "edge_weight": weight.repeat(2)} if weighted else {}
    return Data(
        x=torch.rand(9, 4, dtype=torch.float64),
        edge_index=both,
        relation_index=arcs,
        num_relations=4,  # the last one has no edge
        **parts,
    )


def looped_mean(graph, relation):
    """The weighted mean over the neighbours of each node in one relation."""
    rows = torch.zeros_like(graph.x)
    for node in range(graph.num_nodes):
        total = 0.0
        for place, (kind, end, other) in enumerate(graph.relation_index.T.tolist()):
            if kind == relation and end == node:
                weight = float(graph.relation_weight[place]) if "relation_weight" in graph else 1.0
                rows[node] += weight * graph.x[other]
                total += weight
        if total:
            rows[node] /= total
    return rows


def test_relations_stay_apart():
    for graph in (related_graph(False), related_graph(True)):
        averages = neighbour_averages(graph, 2, torch.float64)
        assert [steps for _, steps in averages] == [1, 2, 1, 1, 1, 1]
        for relation, (matrix, _) in enumerate(averages[2:]):
            torch.testing.assert_close(matrix @ graph.x, looped_mean(graph, relation))
        assert averages[0].matrix is averages[1].matrix
        assert averages[5].matrix.matrix._nnz() == 0
    assert len(neighbour_averages(Data(x=graph.x, edge_index=graph.edge_index), 2)) == 2
    assert neighbour_averages(graph, 0) == []


# Some rows, the largest entries of each.


def rows(edge_index, num_nodes, nodes, **settings):
    matrix = propagation_matrix(undirected_adjacency(edge_index, num_nodes), CPU)
    found = pagerank_rows(matrix, torch.tensor(nodes).long(), **settings)
    assert found.shape == (len(nodes), num_nodes)
    return found


def inverse(edge_index, num_nodes, teleport):
    matrix = dense_symmetric(dense_adjacency(edge_index, num_nodes, undirected=True))
    identity = torch.eye(num_nodes, dtype=torch.float64)
    return teleport * torch.linalg.inv(identity - (1 - teleport) * matrix)


@pytest.mark.parametrize("teleport", [0.05, 0.5])
@given(graph=edge_lists())
def test_all_rows_are_those_of_the_inverse(graph, teleport):
    edge_index, num_nodes = graph
    every = list(range(num_nodes))
    found = rows(edge_index, num_nodes, every, teleport=teleport, keep=num_nodes)
    expected = inverse(edge_index, num_nodes, teleport)
    torch.testing.assert_close(found.to_dense().double(), expected, atol=1e-5, rtol=1e-4)


def test_only_the_largest_entries_are_kept():
    path = edges([(0, 1), (1, 2), (2, 3), (3, 4), (5, 6)])
    found = rows(path, 7, [0, 4], teleport=0.3, keep=2)
    assert found.crow_indices().tolist() == [0, 2, 4]
    assert [sorted(part.tolist()) for part in found.col_indices().split(2)] == [[0, 1], [3, 4]]
    exact = inverse(path, 7, 0.3)[[0, 4]]
    kept = found.to_dense().double()
    torch.testing.assert_close(kept[kept > 0], exact[kept > 0], atol=1e-3, rtol=1e-3)
    found = rows(edges([(0, 1)]), 4, [0, 3], teleport=0.2, keep=4)
    assert found.crow_indices().tolist() == [0, 2, 3]  # what cannot be reached is no entry
    assert rows(edges([(0, 1)]), 3, [], teleport=0.1, keep=2).to_dense().shape == (0, 3)


def test_blocks_change_nothing(monkeypatch):
    ring = edges([(node, (node + 1) % 9) for node in range(9)])
    whole = rows(ring, 9, list(range(9)), teleport=0.1, keep=5)
    monkeypatch.setattr("evengraph.ops.sparse.PAGERANK_ENTRIES", 18)
    parts = rows(ring, 9, list(range(9)), teleport=0.1, keep=5)
    torch.testing.assert_close(parts.to_dense(), whole.to_dense())


def dense(edges):
    """How often each node hears each other, by weight."""
    matrix = torch.zeros(edges.num_nodes, edges.num_nodes, dtype=torch.float64)
    weights = torch.ones(edges.sources.shape) if edges.weights is None else edges.weights
    for target, source, weight in zip(edges.targets, edges.sources, weights, strict=True):
        matrix[target, source] += weight
    return matrix


def closed_graph(edge_index, num_nodes):
    matrix = dense_adjacency(edge_index, num_nodes, undirected=True)
    return matrix + torch.eye(num_nodes, dtype=torch.float64)


@given(edge_lists())
def test_links_of_a_matrix_are_its_entries(drawn):
    matrix = closed_graph(*drawn)
    row = Sparse.from_dense(dense_row(matrix - torch.eye(drawn[1], dtype=torch.float64)))
    assert torch.equal(dense(list_edges(row)), matrix)


@pytest.mark.parametrize("both_ways", [False, True])
@pytest.mark.parametrize("loop", [0.0, 1.0])
def test_links_of_attached_nodes(both_ways, loop):
    matrix = closed_graph(random_edges(6, 9), 6)
    nodes, new = torch.tensor([0, 4, 4]), torch.tensor([0, 0, 1])
    weights = torch.tensor([1.0, 0.0, 0.5])
    attached = AttachedGraph(
        Sparse.from_dense(matrix), matrix.sum(1), nodes, new, weights, 3, both_ways, loop
    )
    expected = torch.zeros(9, 9, dtype=torch.float64)
    expected[:6, :6] = matrix
    expected[6, 0], expected[7, 4] = 1, 0.5
    if both_ways:
        expected[0, 6], expected[4, 7] = 1, 0.5
    for place in range(6, 9):
        expected[place, place] = loop
    assert torch.equal(dense(list_edges(attached)), expected)


def test_links_of_nodes_attached_to_attached_ones():
    matrix = closed_graph(random_edges(6, 9), 6)
    node, new, weight = torch.tensor([4]), torch.tensor([0]), torch.tensor([0.5])
    inner = AttachedGraph(Sparse.from_dense(matrix), matrix.sum(1), node, new, weight, 1, loop=1.0)
    ends, ones = torch.tensor([6, 2]), torch.ones(2)
    outer = AttachedGraph(
        inner, torch.ones(7), ends, torch.tensor([0, 0]), ones, 1, both_ways=False
    )
    expected = torch.zeros(8, 8, dtype=torch.float64)
    expected[:7, :7] = dense(list_edges(inner))
    expected[7, 6] = expected[7, 2] = 1
    assert expected[4, 6] == expected[6, 4] == 0.5
    assert torch.equal(dense(list_edges(outer)), expected)


@given(edge_lists(), st.data())
def test_links_of_repeated_nodes(drawn, data):
    matrix = closed_graph(*drawn)
    seeds = data.draw(st.lists(st.integers(0, drawn[1] - 1), max_size=5))
    originals = [*range(drawn[1]), *seeds]
    repeated = GraphWithCopies(Sparse.from_dense(matrix), torch.tensor(seeds, dtype=torch.long))
    assert torch.equal(dense(list_edges(repeated)), matrix[originals][:, originals])


@pytest.mark.parametrize("weighted", [False, True])
def test_attention_is_a_softmax_over_sources(weighted):
    targets, sources = random_edges(5, 12, seed=3)
    targets = targets % 4  # node 4 has no sources
    weights = torch.rand(12, generator=torch.Generator().manual_seed(1)) if weighted else None
    edges = EdgeList(targets, sources, weights, 5)
    scores, values = 3 * normal(12, 2, seed=1), normal(5, 2, 3, seed=2)
    found = attend(edges, scores, values)
    for node in range(5):
        mine = (targets == node).nonzero().flatten().tolist()
        for head in range(2):
            parts = [math.exp(scores[k, head]) for k in mine]
            if weights is not None:
                parts = [p * float(weights[k]) for p, k in zip(parts, mine, strict=True)]
            expected = sum(
                (
                    p / sum(parts) * values[sources[k], head]
                    for p, k in zip(parts, mine, strict=True)
                ),
                start=torch.zeros(3, dtype=torch.float64),
            )
            torch.testing.assert_close(found[node, head], expected)
    assert (found[4] == 0).all()


def test_attention_has_gradients():
    targets, sources = random_edges(5, 12, seed=3)
    edges = EdgeList(targets, sources, torch.rand(12, dtype=torch.float64), 5)
    scores = normal(12, 2, seed=1).requires_grad_()
    values = normal(5, 2, 3, seed=2).requires_grad_()
    torch.autograd.gradcheck(lambda s, v: attend(edges, s, v), (scores, values))


def dense_of(matrix):
    return matrix.to_dense().double()


@given(edge_lists(), st.integers(1, 4))
def test_equals_one_over_the_shortest_path(graph, alpha):
    edge_index, num_nodes = graph
    expected = dense_structural(edge_index, num_nodes, alpha)
    torch.testing.assert_close(
        dense_of(structural_adjacency(edge_index, num_nodes, alpha)), expected
    )


@given(edge_lists(), st.integers(1, 4))
def test_several_blocks_give_the_same_matrix(graph, alpha):
    edge_index, num_nodes = graph
    whole = structural_adjacency(edge_index, num_nodes, alpha)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structural, "BLOCK_ENTRIES", 3)
        pieces = structural_adjacency(edge_index, num_nodes, alpha)
    assert torch.equal(dense_of(whole), dense_of(pieces))


def test_blocks_cover_every_row_once_and_respect_their_size(monkeypatch):
    monkeypatch.setattr(structural, "BLOCK_ENTRIES", 10)
    walks = torch.randint(1, 8, (30,), generator=torch.Generator().manual_seed(1)).double().numpy()
    blocks = list(structural._blocks(walks))
    assert len(blocks) > 3
    assert [row for block in blocks for row in block] == list(range(30))
    assert all(len(block) == 1 or walks[block].sum() <= 10 for block in blocks)


def test_no_nodes_and_no_edges():
    assert structural_adjacency(edges([]), 0, 2).shape == (0, 0)
    assert structural_adjacency(edges([]), 3, 2).values().numel() == 0


@pytest.mark.parametrize("alpha", [0, -1])
def test_alpha_below_one_is_refused(alpha):
    with pytest.raises(ValueError, match=f"alpha must be at least 1, got {alpha}"):
        structural_adjacency(edges([(0, 1)]), 2, alpha)


def test_too_large_is_refused_before_all_of_it_is_built(monkeypatch):
    monkeypatch.setattr(structural, "BLOCK_ENTRIES", 2000)
    real, built = structural._weights, []
    monkeypatch.setattr(structural, "_weights", lambda *call: built.append(1) or real(*call))
    star = edges([(0, i) for i in range(1, 200)] + [(i, 0) for i in range(1, 200)])
    # 200 nodes, all at most two steps apart
    expected = r"alpha=2 would hold about 3\d,\d\d\d entries, 0.0 GiB, over .* or raise"
    with pytest.raises(MemoryError, match=expected):
        structural_adjacency(star, 200, 2, memory_limit=10_000)
    assert len(built) < 5


def test_expected_size_is_near_when_refused_early(monkeypatch):
    monkeypatch.setattr(structural, "BLOCK_ENTRIES", 500)
    edge_index = random_edges(400, 1600)
    exact = structural_adjacency(edge_index, 400, 2).values().numel()
    with pytest.raises(MemoryError) as caught:
        structural_adjacency(edge_index, 400, 2, memory_limit=8 * exact / 3)
    told = int(str(caught.value).split("about ")[1].split(" entries")[0].replace(",", ""))
    assert abs(told - exact) < 0.2 * exact


def test_not_refused_when_only_the_cheap_bound_is_too_large():
    clique = edges([(i, j) for i in range(12) for j in range(12) if i != j])
    exact = 12 * 11 * 8  # a column index and a weight of four bytes each
    # there are 12^4 walks from each node
    matrix = structural_adjacency(clique, 12, 4, memory_limit=exact)
    assert matrix.values().numel() == 12 * 11
    with pytest.raises(MemoryError):
        structural_adjacency(clique, 12, 4, memory_limit=exact - 1)


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


@pytest.mark.skipif(torch.cuda.is_available(), reason="runs kernels in Triton's interpreter")
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
