"""Trees as tensors against scikit-learn, which grew them, and against a walk by hand."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.feature_selection import f_classif

from evengraph.ops import trees as module
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
from small_graphs import normal


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


@pytest.mark.parametrize("at_once", [1, 100, 2**22])
def test_trees_of_scikit_learn(at_once, monkeypatch):
    monkeypatch.setattr(module, "AT_ONCE", at_once)
    x, y = normal(80, 5), normal(80, 1, seed=1).squeeze(1)
    model = HistGradientBoostingRegressor(max_iter=12, min_samples_leaf=3).fit(x.numpy(), y.numpy())
    tables = [tree.nodes for trees in model._predictors for tree in trees]
    values = tree_values(trees_from_tables(tables, x.device), x)
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
    x, y = normal(80, 5), normal(80, 1, seed=1).squeeze(1)
    model = HistGradientBoostingRegressor(max_iter=12, min_samples_leaf=3).fit(x.numpy(), y.numpy())
    tables = [tree.nodes for trees in model._predictors for tree in trees]
    trees = trees_from_tables(tables, x.device)
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
