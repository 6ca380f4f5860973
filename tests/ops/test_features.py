"""Tables of features against plain versions: scaling, components, signatures, neighbours, trees."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.feature_selection import f_classif

from evengraph.methods import lte4g
from evengraph.methods.lte4g import (
    class_prototypes,
    similar_nodes,
)
from evengraph.ops import features as tables
from evengraph.ops import trees as forest
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
from evengraph.ops.sparse import Sparse, from_scipy, undirected_adjacency
from evengraph.ops.trees import (
    Trees,
    check_trees,
    class_logits,
    coarsen,
    first_digits,
    largest_up_to,
    path_contributions,
    separation,
    separation_in_passes,
    tree_values,
    trees_from_tables,
)
from small_graphs import dense_adjacency, edge_lists, edges, normal


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
    monkeypatch.setattr(tables, "ROWS", rows)
    monkeypatch.setattr(tables, "SAMPLE", 1)
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
    x = np.array([[4, 0], [2, 0], [1, 8]], dtype=np.float32)
    nodes = np.array([0, 1, 2])
    table, factors = hop_table(kind(x), MEAN, nodes, 2)
    dense = MEAN.toarray()
    means = np.concatenate([x, dense @ x, dense @ dense @ x], axis=1)[nodes]
    plain = table.toarray() if sp.issparse(table) else table
    np.testing.assert_allclose(plain, means * factors, rtol=1e-6)
    sizes = plain.std(0).reshape(3, 2)
    np.testing.assert_allclose(sizes[1:], sizes[[0, 0]], rtol=1e-5)
    assert factors[:2].tolist() == [1, 1]


def test_factors_are_bounded():
    x = np.array([[1000], [0.001], [0]], dtype=np.float32)
    _, factors = hop_table(x, MEAN, np.array([0, 2]), 1)  # both have the same mean
    assert factors.tolist() == pytest.approx([1, LARGEST_FACTOR], rel=1e-3)
    x = np.array([[1], [5], [1]], dtype=np.float32)
    _, factors = hop_table(x, np.array([[0.5, 0.5, 0], [1, 0, 0], [0, 0, 1]]), np.array([0, 2]), 1)
    assert factors.tolist() == [1, 1]  # constant itself
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


def around(edge_index, node):
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
    expected = {node} | around(edge_index, node)
    assert set((~same).nonzero().squeeze(1).tolist()) == expected


@given(edge_lists(), st.data())
def test_other_edges_are_noticed_at_their_ends(drawn, data):
    edge_index, num_nodes = drawn
    node = st.integers(0, num_nodes - 1)
    one, other = data.draw(node), data.draw(node)
    x = torch.ones(num_nodes, 2)  # features that say nothing
    more = torch.cat([edge_index, torch.tensor([[one], [other]])], dim=1)
    same = matching_signatures(node_signatures(x, more), node_signatures(x, edge_index))
    new = one != other and other not in around(edge_index, one)
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


CPU = torch.device("cpu")


@st.composite
def situations(draw):
    """Few distinct probabilities, so that many are equal; features without equal angles."""
    edge_index, num_nodes = draw(edge_lists(max_nodes=16).filter(lambda graph: graph[1] > 2))
    num_classes = draw(st.integers(1, 3))
    nodes = draw(st.permutations(range(num_nodes)))[: draw(st.integers(num_classes, num_nodes))]
    more = len(nodes) - num_classes
    extra = draw(st.lists(st.integers(0, num_classes - 1), min_size=more, max_size=more))
    grid = st.sampled_from([0.0, 0.25, 0.5, 1.0])
    size = num_nodes * num_classes
    likely = draw(st.lists(grid, min_size=size, max_size=size))
    return {
        "embeddings": 2.0 ** torch.arange(num_nodes).double().unsqueeze(1),  # a mean tells whose
        "probabilities": torch.tensor(likely).reshape(num_nodes, num_classes),
        "x": normal(num_nodes, 3, seed=draw(st.integers(0, 999))).abs(),
        "edge_index": edge_index,
        "nodes": nodes,
        "labels": [*range(num_classes), *extra],
        "target": draw(st.integers(0, 10)),
    }


def plain_similar(x, linked, node, size):
    """Neither the node nor its neighbours, the most similar first."""
    rows = x.tolist()
    others = [i for i in range(len(rows)) if i != node and not linked[node][i]]

    def cosine(i):
        lengths = math.hypot(*rows[i]) * math.hypot(*rows[node])
        return sum(a * b for a, b in zip(rows[i], rows[node], strict=True)) / lengths

    return sorted(others, key=cosine, reverse=True)[1 : 1 + size]


def plain_members(situation, label, *, size):
    """The nodes whose embeddings make up a prototype."""
    nodes, labels = situation["nodes"], situation["labels"]
    x, target = situation["x"], situation["target"]
    linked = dense_adjacency(situation["edge_index"], x.shape[0], undirected=True).tolist()
    likely = situation["probabilities"][:, label].tolist()

    def best(pool, count):
        return sorted(pool, key=lambda node: (-likely[node], node))[: max(count, 0)]

    own = [node for node, given in zip(nodes, labels, strict=True) if given == label]
    fill = target - len(own)
    if fill <= 0:
        return own
    near = {i for node in own for i in range(x.shape[0]) if linked[node][i]}
    near -= set(own)
    members = own + best(near, fill)
    alike = {i for node in own for i in plain_similar(x, linked, node, size)}
    return members + best(alike, fill - len(members))


def of_situation(situation):
    num_nodes = situation["x"].shape[0]
    binary = undirected_adjacency(situation["edge_index"], num_nodes)
    return class_prototypes(
        situation["embeddings"],
        situation["probabilities"],
        situation["x"],
        from_scipy(binary, CPU, torch.float32),
        torch.tensor(situation["nodes"]),
        torch.tensor(situation["labels"]),
        situation["target"],
    )


@pytest.mark.parametrize("size", [1, 2, 10])
@given(situation=situations())
def test_prototypes_equal_the_plain_version(size, situation):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lte4g, "SIMILAR", size)
        value = of_situation(situation)
    for label, row in enumerate(value):
        members = plain_members(situation, label, size=size)
        expected = sum(2.0**node for node in members) / len(members)
        assert row.item() == pytest.approx(expected, rel=1e-12)


# Node 0 is labelled and knows 1. By features it resembles 2 most, then 3, then 4. Node 5 is
# labelled, too, of the other class.
STAR = {
    "embeddings": torch.eye(6).double(),
    "probabilities": torch.tensor([[1.0, 0], [0.2, 0], [0.9, 0], [0.8, 0], [0.7, 0], [0, 1]]),
    "x": torch.tensor([[1.0, 0], [1, 0.1], [1, 0.2], [1, 0.3], [1, 0.4], [0, 1]]),
    "edge_index": edges([(0, 1)]),
    "nodes": [0, 5],
    "labels": [0, 1],
}


@pytest.mark.parametrize(
    ("target", "members"),
    [
        (1, [0]),
        (2, [0, 1]),
        (3, [0, 1]),  # two were missing, and the list of two is not shorter than that
        (4, [0, 1, 3]),  # one short of three, and 2, the most similar, is left out
        (9, [0, 1, 3, 4, 5]),  # though 5 is labelled for the other class
    ],
)
def test_what_the_public_code_leaves_out(target, members):
    value = of_situation(STAR | {"target": target})
    assert value[0].nonzero().flatten().tolist() == members
    torch.testing.assert_close(value.sum(1), torch.ones(2).double())


def test_a_node_without_features_resembles_nobody(monkeypatch):
    matrix = from_scipy(undirected_adjacency(edges([(0, 1)]), 4), CPU, torch.float32)
    x = torch.tensor([[1.0, 0], [1, 0], [1, 1], [0, 0]])
    monkeypatch.setattr(lte4g, "SIMILAR", 1)
    assert similar_nodes(x, matrix, torch.tensor([0])).tolist() == [3]


def test_nobody_is_similar_to_nobody():
    matrix = from_scipy(undirected_adjacency(edges([]), 2), CPU, torch.float32)
    assert similar_nodes(torch.ones(2, 1), matrix, torch.zeros(0, dtype=torch.long)).numel() == 0


def test_neighbours_are_left_aside_whatever_the_signs_of_the_features(monkeypatch):
    monkeypatch.setattr(lte4g, "SIMILAR", 1)
    x = torch.tensor([[1.0, 0.0], [1.0, 0.0], [-0.5, 1.0], [1.0, 0.1]])
    graph = from_scipy(undirected_adjacency(edges([(0, 1)]), 4), CPU, torch.float32)
    assert similar_nodes(x, graph, torch.tensor([0])).tolist() == [2]


def tiny():
    """One split at feature 1, the left side split again at feature 0; then a tree of one leaf."""
    return Trees(
        feature=torch.tensor([1, 0, 0, 0, 0, 0]),
        threshold=torch.tensor([0.5, -1.0, 0, 0, 0, 0], dtype=torch.float64),
        left=torch.tensor([1, 3, 2, 3, 4, 5]),
        right=torch.tensor([2, 4, 2, 3, 4, 5]),
        value=torch.tensor([0, 0, 30, 10, 20, 7], dtype=torch.float64),
        roots=torch.tensor([0, 5]),
    )


def test_a_walk_by_hand():
    x = torch.tensor([[-1.0, 0.5], [-0.9, 0.0], [5.0, 0.6]])
    assert tree_values(tiny(), x).tolist() == [[10, 7], [20, 7], [30, 7]]


def test_the_first_trees_alone():
    x = torch.tensor([[-1.0, 0.5]])
    assert tree_values(tiny().first(1), x).tolist() == [[10]]
    assert tiny().first(1).value.numel() == 5
    assert tree_values(tiny().first(0), x).shape == (1, 0)
    assert tiny().first(2).roots.tolist() == [0, 5]


def grown():
    x, y = normal(80, 5), normal(80, 1, seed=1).squeeze(1)
    model = HistGradientBoostingRegressor(max_iter=12, min_samples_leaf=3).fit(x.numpy(), y.numpy())
    tables = [tree.nodes for trees in model._predictors for tree in trees]
    return x, model, trees_from_tables(tables, x.device)


@pytest.mark.parametrize("at_once", [1, 100, 2**22])
def test_trees_of_scikit_learn(at_once, monkeypatch):
    monkeypatch.setattr(forest, "AT_ONCE", at_once)
    x, model, trees = grown()
    values = tree_values(trees, x)
    assert values.shape == (80, 12)
    expected = torch.from_numpy(model.predict(x.numpy()))
    base = float(model._baseline_prediction.item())
    torch.testing.assert_close(base + values.sum(1), expected)


def test_coarse_columns_have_few_values_in_the_same_order():
    x = normal(300, 3)
    x[:, 1] = (x[:, 1] > 2.5).double()  # few ones among zeros
    x[:, 2] = x[:, 2].round()
    found = coarsen(x, 20)
    assert torch.equal(found[:, 1:], x[:, 1:])
    values = found[:, 0].unique()
    assert values.numel() == 20
    assert set(values.tolist()) <= set(x[:, 0].tolist())
    nearest = (x[:, :1] - values).abs().argmin(1)
    assert torch.equal(found[:, 0], values[nearest])
    assert torch.equal(coarsen(x[:20], 20), x[:20])


def test_a_tree_grown_on_coarse_columns_answers_the_same_for_both():
    x, y = normal(400, 2), normal(400, 1, seed=1).squeeze(1)
    coarse = coarsen(x, 255)
    assert not torch.equal(coarse, x)
    model = HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=1)
    model.fit(coarse.numpy(), y.numpy(), sample_weight=torch.rand(400).numpy() + 0.1)
    trees = trees_from_tables([one.nodes for many in model._predictors for one in many], x.device)
    assert torch.equal(tree_values(trees, coarse), tree_values(trees, x))


def test_no_trees_and_no_rows():
    none = trees_from_tables([], torch.device("cpu"))
    assert tree_values(none, normal(4, 2)).shape == (4, 0)
    assert tree_values(tiny(), torch.zeros(0, 2)).shape == (0, 2)


def test_separation_is_the_f_statistic():
    x, labels = normal(60, 4), torch.arange(60) % 3
    x[:, 1] += labels
    expected, _ = f_classif(x.numpy(), labels.numpy())
    torch.testing.assert_close(separation(x, labels, 3), torch.from_numpy(expected))


def test_two_classes_have_one_sum():
    sums = torch.tensor([[2.0], [-1.0]])
    assert class_logits(sums).tolist() == [[0, 2], [0, -1]]
    assert class_logits(sums.repeat(1, 3)).tolist() == [[2] * 3, [-1] * 3]


def test_separation_of_blocks_is_that_of_all_rows():
    x, labels = normal(60, 4), torch.arange(60).flip(0) // 20  # a class occurs in few blocks
    x[:, 2] = 0.5
    blocks = list(zip(x.split(7), labels.split(7), strict=True))
    found = separation_in_passes(lambda: iter(blocks), 3)
    torch.testing.assert_close(found, separation(x, labels, 3))
    assert found[2] == 0


def test_separation_of_constant_and_of_perfect_columns():
    labels = torch.tensor([0, 0, 1, 1])
    x = torch.stack([torch.full((4,), 3.0), labels.float()], dim=1)
    assert separation(x, labels, 2).tolist() == [0, float("inf")]


def test_splits_on_a_path_by_hand():
    trees = tiny()
    trees.value[1] = 120  # before shrinkage by 0.1
    trees.value[0] = 1000  # the mean that boosting starts from is part of no split
    features, parts = path_contributions(trees, torch.tensor([-0.9, 0.0]), 0.1)
    assert features.tolist() == [[1, 0], [0, 0]]
    assert parts.tolist() == [[12, 0], [8, 0]]
    assert path_contributions(trees.first(0), torch.zeros(2), 0.1)[1].shape == (0, 0)


def test_splits_on_a_path_sum_to_the_value_of_the_tree():
    x, _, trees = grown()
    for row in x[:5]:
        _, parts = path_contributions(trees, row, 0.1)
        torch.testing.assert_close(parts.sum(0), tree_values(trees, row[None])[0])


@pytest.mark.parametrize(
    ("part", "values"),
    [
        ("left", [1, 0, 2, 3, 4, 5]),  # a path that never ends
        ("right", [2, 9, 2, 3, 4, 5]),
        ("right", [2, -1, 2, 3, 4, 5]),
        ("roots", [0, 6]),
        ("feature", [1]),
        ("feature", [2, 0, 0, 0, 0, 0]),
        ("feature", [1, -1, 0, 0, 0, 0]),
        ("value", [1j] * 6),
        ("threshold", [1] * 6),
    ],
)
def test_trees_of_a_file_are_checked(part, values):
    check_trees(tiny(), 2)
    with pytest.raises(ValueError, match="The trees are damaged"):
        check_trees(tiny()._replace(**{part: torch.tensor(values)}), 2)


def test_the_identity_gives_the_next_smaller_single_precision_number():
    limits = torch.tensor([0.1, -0.1, 0.5, 0.0, -3.0, 1e-30, 1e30, 1e300, 7.0]).double()
    found = largest_up_to(lambda x: x.double(), limits)
    assert (found.double() <= limits).all()
    above = torch.from_numpy(np.nextafter(found[:-2].numpy(), np.float32(np.inf))).double()
    assert (above > limits[:-2]).all()
    assert found[2] == 0.5
    assert found[-1] == 7
    assert found[-2] == torch.finfo(torch.float32).max


def test_a_step_ends_where_the_function_rises():
    found = largest_up_to(torch.floor, torch.tensor([0.5, 1.0, -2.5]))
    ends = np.nextafter(np.float32([1, 2, -2]), np.float32(-np.inf))
    np.testing.assert_array_equal(found.numpy(), ends)


def test_the_first_sixteen_bits_of_a_number_are_used():
    x = torch.tensor([0.0, 1.0, -3.0, 65535.0, 65537.0, 131073.0, 131075.0, 1 + 2**-16, 1 + 2**-14])
    expected = [0.0, 1.0, -3.0, 65535.0, 65536.0, 131072.0, 131076.0, 1.0, 1 + 2**-14]
    assert first_digits(x).tolist() == expected
    assert torch.equal(first_digits(x * 2**-40), first_digits(x) * 2**-40)


def test_signatures_are_found_in_any_row_unless_several_rows_have_them():
    x = normal(300, 5, dtype=torch.float32)
    x[10:13] = x[20]  # alike: none of them can be told
    order = torch.randperm(300, generator=torch.Generator().manual_seed(0))
    rows = tables.find_signatures(tables.feature_signatures(x[order]), tables.feature_signatures(x))
    alike = torch.zeros(300, dtype=torch.bool).index_fill(0, torch.tensor([10, 11, 12, 20]), True)
    assert torch.equal(rows, torch.where(alike, -1, order.argsort()))
    other = tables.feature_signatures(x + 1)
    assert (tables.find_signatures(other, tables.feature_signatures(x)) == -1).all()
    assert tables.find_signatures(other[:0], other).tolist() == [-1] * 300
