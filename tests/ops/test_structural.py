"""structural_adjacency against shortest paths of networkx (Eq. 1)."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.ops import structural
from evengraph.ops.structural import HostPaths, structural_adjacency
from small_graphs import dense_structural, edge_lists, edges, random_edges


def dense(matrix):
    return matrix.to_dense().double()


@given(edge_lists(), st.integers(1, 4))
def test_equals_one_over_the_shortest_path(graph, alpha):
    edge_index, num_nodes = graph
    expected = dense_structural(edge_index, num_nodes, alpha)
    torch.testing.assert_close(dense(structural_adjacency(edge_index, num_nodes, alpha)), expected)


@given(edge_lists(), st.integers(1, 4))
def test_several_blocks_give_the_same_matrix(graph, alpha):
    edge_index, num_nodes = graph
    whole = structural_adjacency(edge_index, num_nodes, alpha)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structural, "BLOCK_ENTRIES", 3)
        pieces = structural_adjacency(edge_index, num_nodes, alpha)
    assert torch.equal(dense(whole), dense(pieces))


def test_blocks_cover_every_row_once_and_respect_their_size(monkeypatch):
    monkeypatch.setattr(structural, "BLOCK_ENTRIES", 10)
    walks = HostPaths(structural.adjacency(random_edges(30, 60), 30), 2).walks
    rows = torch.randperm(30, generator=torch.Generator().manual_seed(0)).numpy()
    blocks = list(structural._blocks(walks, rows))
    assert len(blocks) > 3
    assert [row for block in blocks for row in block] == rows.tolist()
    assert all(len(block) == 1 or walks[block].sum() <= 10 for block in blocks)


def test_no_nodes_and_no_edges():
    assert structural_adjacency(edges([]), 0, 2).shape == (0, 0)
    assert structural_adjacency(edges([]), 3, 2).values().numel() == 0


@pytest.mark.parametrize("alpha", [0, -1])
def test_alpha_below_one_is_refused(alpha):
    with pytest.raises(ValueError, match=f"alpha must be at least 1, got {alpha}"):
        structural_adjacency(edges([(0, 1)]), 2, alpha)


def test_too_large_is_refused_before_building(monkeypatch):
    def build(*args):
        raise AssertionError("the matrix was built")

    monkeypatch.setattr(HostPaths, "weights", build)
    star = edges([(0, i) for i in range(1, 200)] + [(i, 0) for i in range(1, 200)])
    # 200 nodes, all at most two steps apart
    expected = "alpha=2 would hold about 39,800 entries, 0.0 GiB, over .* a smaller alpha or raise"
    with pytest.raises(MemoryError, match=expected):
        structural_adjacency(star, 200, 2, memory_limit=1000)


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
    assert HostPaths(structural.adjacency(clique, 12), 4).walks.sum() * 8 > exact
    matrix = structural_adjacency(clique, 12, 4, memory_limit=exact)
    assert matrix.values().numel() == 12 * 11
    with pytest.raises(MemoryError):
        structural_adjacency(clique, 12, 4, memory_limit=exact - 1)


@pytest.mark.parametrize("on_gpu", [False, True])
def test_the_matrix_is_built_where_the_edges_are(on_gpu, monkeypatch):
    other = "adjacency" if on_gpu else "adjacency_tensor"
    monkeypatch.setattr(structural, other, None)
    monkeypatch.setattr(torch.Tensor, "is_cuda", on_gpu)
    matrix = structural_adjacency(edges([(0, 1), (1, 2)]), 3, 2)
    assert dense(matrix)[0].tolist() == [0, 1, 0.5]


def test_nothing_is_counted_where_the_cheap_bound_fits(monkeypatch):
    path = edges([(0, 1), (1, 2)])
    walks = HostPaths(structural.adjacency(path, 3), 2).walks.sum()
    monkeypatch.setattr(HostPaths, "count", None)
    assert structural_adjacency(path, 3, 2, memory_limit=8 * walks).values().numel() == 3


def test_a_thinned_matrix_holds_no_explicit_zeros():
    matrix = structural.adjacency(random_edges(60, 200), 60)
    thinned, thinning = structural.bounded_path_weights(matrix, 2, 8 * 400)
    assert thinning is not None
    assert 0 < thinned.nnz < 400
    assert thinned.data.all()
