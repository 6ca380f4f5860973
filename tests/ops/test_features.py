"""Scaling of columns: by hand, and what it must not do to outliers and to bags of words."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.ops import features as module
from evengraph.ops.features import (
    FAR,
    LARGEST_FACTOR,
    SPREAD,
    Scaling,
    feature_signatures,
    hop_table,
    matching_signatures,
    node_signatures,
    principal_components,
    sample_step,
    with_log_degree,
)
from evengraph.ops.sparse import Sparse
from small_graphs import edge_lists, edges, normal


def test_a_spread_column_is_centred_and_divided_by_its_quartile_distance():
    x = torch.arange(9.0).unsqueeze(1) * 10  # quartiles 20, 40 and 60
    found = Scaling.of(x)
    assert found.spread.tolist() == [True]
    torch.testing.assert_close(found(x), (x - 40) / 40 * SPREAD)


def test_an_outlier_neither_counts_nor_explodes():
    x = normal(1001, 1).float()
    plain = Scaling.of(x)
    x[0] = 1e9
    found = Scaling.of(x)
    torch.testing.assert_close(found.scale, plain.scale, rtol=0.02, atol=0)
    assert found(x).max() == FAR == 10


def test_a_rare_word_stays_small_and_zero_stays_zero():
    x = torch.zeros(1000, 3)
    x[0, 0], x[:5, 1], x[:, 2] = 1.0, 4.0, 0.0
    found = Scaling.of(x)
    assert not found.spread.any()
    assert found(x).unique().tolist() == [0, 1]
    assert torch.equal(found(x) != 0, x != 0)


def test_a_flag_that_is_mostly_set_is_shifted():
    x = torch.ones(100, 1)
    x[3] = 0
    assert Scaling.of(x)(x).squeeze(1).tolist() == [-1 if row == 3 else 0 for row in range(100)]


@pytest.mark.parametrize("rows", [1, 7, 10_000])
def test_the_largest_value_is_that_of_all_rows(rows, monkeypatch):
    monkeypatch.setattr(module, "ROWS", rows)
    monkeypatch.setattr(module, "SAMPLE", 1)
    x = torch.zeros(501, 2)
    x[333, 0], x[500, 1] = -8.0, 2.0  # rows that the sample of about 100 leaves out
    assert Scaling.of(x).scale.tolist() == [8, 2]


@pytest.mark.parametrize(
    ("rows", "columns", "step"),
    [
        (2**22, 1, 1),
        (2**23, 1, 2),
        (2**22, 8, 8),
        (1000, 2**22, 10),  # at least a hundred rows
        (7, 5, 1),
        (0, 0, 1),
    ],
)
def test_quartiles_are_taken_from_so_many_rows(rows, columns, step):
    assert sample_step(rows, columns) == step


PATH = sp.csr_matrix(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.float32))
MEAN = sp.csr_matrix(np.array([[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]], dtype=np.float32))


def test_the_degree_is_the_last_column():
    found = with_log_degree(torch.zeros(3, 2), PATH)
    torch.testing.assert_close(found[:, 2], torch.tensor([1.0, 2, 1]).log1p())
    assert found.shape == (3, 3)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_rows_are_own_values_then_means_times_their_factors(kind):
    x = np.array([[4, 0], [2, 0], [0, 8]], dtype=np.float32)
    nodes = np.array([0, 1])
    table, factors = hop_table(kind(x), MEAN, nodes, 2)
    dense = MEAN.toarray()
    means = np.concatenate([x, dense @ x, dense @ dense @ x], axis=1)[nodes]
    plain = table.toarray() if sp.issparse(table) else table
    np.testing.assert_allclose(plain, means * factors, rtol=1e-6)
    sizes = np.sqrt((plain**2).mean(0)).reshape(3, 2)
    np.testing.assert_allclose(sizes[1:, 0], sizes[0, 0], rtol=1e-6)
    assert factors[:2].tolist() == [1, 1]


def test_factors_are_bounded():
    x = np.array([[1000], [0.001], [1000]], dtype=np.float32)
    _, factors = hop_table(x, MEAN, np.array([0, 2]), 1)
    assert factors.tolist() == pytest.approx([1, LARGEST_FACTOR], rel=1e-3)
    _, factors = hop_table(np.zeros((3, 1), np.float32), MEAN, np.arange(3), 1)
    assert factors.tolist() == [1, 1]


def propagation(size):
    matrix = torch.rand(size, size, generator=torch.Generator().manual_seed(1))
    return matrix / matrix.sum(1, keepdim=True) + torch.eye(size)


def low_rank(rows, columns, rank):
    random = torch.Generator().manual_seed(2)
    scales = torch.linspace(5, 1, rank)
    return (torch.randn(rows, rank, generator=random) * scales) @ torch.randn(
        rank, columns, generator=random
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_they_span_the_leading_directions(sparse):
    x, matrix = low_rank(40, 60, 4), propagation(40)
    basis, rows = principal_components(
        Sparse.from_dense(x) if sparse else x, lambda y: matrix @ y, lambda y: matrix.T @ y, 4
    )
    dense = matrix @ x
    _, _, directions = torch.linalg.svd(dense - dense.mean(0), full_matrices=False)
    torch.testing.assert_close(
        basis @ basis.T, directions[:4].T @ directions[:4], rtol=1e-3, atol=1e-3
    )
    torch.testing.assert_close(rows, dense @ basis, rtol=1e-3, atol=1e-3)
    variances = (rows - rows.mean(0)).square().sum(0)
    assert (variances.diff() <= 0).all()  # the largest first


def test_with_few_features_nothing_is_lost():
    x, matrix = low_rank(30, 5, 5), propagation(30)
    basis, rows = principal_components(x, lambda y: matrix @ y, lambda y: matrix.T @ y, 8)
    torch.testing.assert_close(basis, torch.eye(5))
    torch.testing.assert_close(rows, matrix @ x)


def test_columns_of_zeros_do_not_matter():
    """A hashed text of few words: single precision alone fails here."""
    random = torch.Generator().manual_seed(3)
    x = torch.zeros(20, 264)
    x[:, torch.randperm(264, generator=random)[:20]] = torch.randn(20, 20, generator=random)
    basis, rows = principal_components(x, lambda y: y, lambda y: y, 256)
    torch.testing.assert_close(basis.T @ basis, torch.eye(256), rtol=0, atol=1e-4)
    torch.testing.assert_close(rows @ rows.T, x @ x.T, rtol=0, atol=0.02)


@pytest.mark.parametrize("scale", [1e-20, 1e20, 1e25])
def test_directions_do_not_depend_on_the_scale(scale):
    x, matrix = low_rank(40, 60, 4), propagation(40)
    maps = (lambda y: matrix @ y, lambda y: matrix.T @ y)
    basis, _ = principal_components(x, *maps, 4)
    scaled, rows = principal_components(x * scale, *maps, 4)
    torch.testing.assert_close(scaled @ scaled.T, basis @ basis.T, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(rows, matrix @ (x * scale) @ scaled, rtol=1e-3, atol=1e-3 * scale)


def neighbours(edge_index, node):
    source, target = edge_index
    near = set(target[source == node].tolist()) | set(source[target == node].tolist())
    return near - {node}


@given(edge_lists(), st.randoms(use_true_random=False))
def test_order_direction_repeats_and_loops_do_not_count(drawn, random):
    edge_index, num_nodes = drawn
    x = normal(num_nodes, 3)
    pairs = edge_index.t().tolist()
    pairs += [*random.sample(pairs, len(pairs) // 2), [0, 0]]
    random.shuffle(pairs)
    turned = edges([pair if random.random() < 0.5 else pair[::-1] for pair in pairs])
    before = node_signatures(x, edge_index)
    assert matching_signatures(node_signatures(x, turned), before).all()


@given(edge_lists(), st.data())
def test_other_features_are_noticed_by_the_node_and_its_neighbours(drawn, data):
    edge_index, num_nodes = drawn
    node = data.draw(st.integers(0, num_nodes - 1))
    column = data.draw(st.integers(0, 2))
    x = normal(num_nodes, 3)
    other = x.clone()
    other[node, column] += 0.01
    same = matching_signatures(node_signatures(other, edge_index), node_signatures(x, edge_index))
    expected = {node} | neighbours(edge_index, node)
    assert set((~same).nonzero().squeeze(1).tolist()) == expected


@given(edge_lists(), st.data())
def test_other_edges_are_noticed_at_their_ends(drawn, data):
    edge_index, num_nodes = drawn
    node = st.integers(0, num_nodes - 1)
    one, other = data.draw(node), data.draw(node)
    x = torch.ones(num_nodes, 2)  # features that say nothing
    more = torch.cat([edge_index, torch.tensor([[one], [other]])], dim=1)
    same = matching_signatures(node_signatures(x, more), node_signatures(x, edge_index))
    new = one != other and other not in neighbours(edge_index, one)
    assert set((~same).nonzero().squeeze(1).tolist()) == ({one, other} if new else set())


def test_swapped_neighbours_with_equal_features_are_noticed():
    x = torch.ones(4, 2)
    one, other = edges([(0, 1), (2, 3)]), edges([(0, 2), (1, 3)])
    assert not matching_signatures(node_signatures(x, one), node_signatures(x, other)).any()


def test_the_last_digits_do_not_count():
    x = normal(200, 40, dtype=torch.float32) * 10
    edge_index = torch.randint(200, (2, 900), generator=torch.Generator().manual_seed(0))
    wobbled = x * (1 + 1e-7 * torch.sign(normal(200, 40, seed=1)))
    before = node_signatures(x, edge_index)
    assert matching_signatures(node_signatures(wobbled, edge_index), before).all()
    assert matching_signatures(node_signatures(x.double(), edge_index), before).all()


def test_graphs_of_other_sizes():
    before = feature_signatures(normal(5, 3))
    assert matching_signatures(before[:3], before).tolist() == [True] * 3
    assert (
        matching_signatures(torch.cat([before, before]), before).tolist()
        == [True] * 5 + [False] * 5
    )
    assert matching_signatures(before[:0], before).tolist() == []


@pytest.mark.parametrize("shape", [(0, 3), (4, 0)])
def test_nothing_to_sign(shape):
    signatures = node_signatures(torch.zeros(shape), torch.zeros(2, 0, dtype=torch.long))
    assert signatures.shape == (shape[0], 6)
