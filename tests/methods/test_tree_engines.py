"""Trees of each library against its own predictions, on two and on three classes."""

import pytest
import torch
from torch.nn.functional import softmax

from evengraph.methods.boosting import TreeParams, grower, lightgbm_table
from evengraph.ops.trees import path_contributions, tree_values, trees_from_tables
from labelled_rows import rows_of
from small_graphs import normal

PARAMS = TreeParams(learning_rate=0.1, weight_decay=1.0, leaves=6, smallest_leaf=4)
lightgbm = pytest.importorskip("lightgbm")


def sums(grown, x, rounds):
    values = tree_values(trees_from_tables(grown.tables, x.device), x)
    return torch.from_numpy(grown.baseline) + values.unflatten(1, (rounds, -1)).sum(1)


def probabilities(logits):
    if logits.shape[1] == 1:
        logits = torch.cat([0 * logits, logits], dim=1)
    return softmax(logits, dim=1)


@pytest.mark.parametrize("num_classes", [2, 3])
def test_converted_trees_predict_as_the_library_does(num_classes, monkeypatch):
    models = []
    create = lightgbm.Booster

    def remembered(*args, **kwargs):
        models.append(create(*args, **kwargs))
        return models[-1]

    monkeypatch.setattr(lightgbm, "Booster", remembered)
    x, labels, weights = rows_of(num_classes)
    grow = grower("lightgbm", x, labels, weights, PARAMS)
    grow(3)
    grown = grow(12)
    assert len(grown.tables) == 12 * len(grown.baseline)
    new = torch.cat([x, normal(200, 5, seed=9).float()])
    raw = models[0].predict(new.numpy(), raw_score=True).reshape(500, -1)
    theirs = torch.from_numpy(raw + grown.baseline)
    torch.testing.assert_close(sums(grown, new, 12), theirs.double(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("num_classes", [2, 3])
def test_all_libraries_learn_nearly_the_same(num_classes):
    x, labels, weights = rows_of(num_classes)
    ours, sklearn = (
        probabilities(sums(grower(name, x, labels, weights, PARAMS)(30), x, 30))
        for name in ("lightgbm", "sklearn")
    )
    assert (ours.argmax(1) == sklearn.argmax(1)).double().mean() > 0.9
    assert (ours - sklearn).abs().mean() < 0.05


def test_before_any_tree_classes_are_as_frequent_as_they_weigh():
    x, labels, weights = rows_of(3)
    for share in (labels, (labels > 0).long()):
        grown = grower("lightgbm", x, share, weights, PARAMS)(1)
        expected = torch.bincount(share, weights) / weights.sum()
        found = probabilities(torch.from_numpy(grown.baseline)[None])[0]
        torch.testing.assert_close(found, expected)


def test_inner_values_lead_to_the_leaves():
    """Were they shrunk twice or not at all, the last split would decide nearly everything."""
    x, labels, weights = rows_of(2)
    trees = trees_from_tables(grower("lightgbm", x, labels, weights, PARAMS)(1).tables, x.device)
    leaf = trees.left == torch.arange(trees.left.numel())
    inner = PARAMS.learning_rate * trees.value[~leaf][1:]
    low, high = trees.value[leaf].min(), trees.value[leaf].max()
    assert ((low < inner) & (inner < high)).all()
    assert inner.abs().max() > 0.1 * max(-low, high)
    _, parts = path_contributions(trees, x[0], PARAMS.learning_rate)
    torch.testing.assert_close(parts.sum(0), tree_values(trees, x[:1])[0])


def test_where_nothing_can_be_split_trees_add_nothing():
    x, labels, weights = rows_of(2)
    grown = grower("lightgbm", 0 * x, labels, weights, PARAMS)(4)
    assert len(grown.tables) == 4
    assert sums(grown, x, 4).unique().numel() == 1


def test_a_table_of_lightgbm_by_hand():
    leaf = {"leaf_index": 0, "leaf_value": 0.25}
    split = {"split_index": 0, "split_feature": 2, "threshold": 0.5, "internal_value": 0.1}
    inner = {**split, "left_child": {"leaf_value": -1.0}, "right_child": leaf}
    table = lightgbm_table({**split, "left_child": inner, "right_child": leaf}, PARAMS)
    assert table["value"].tolist() == [1.0, 1.0, 0.25, -1.0, 0.25]
    assert table["left"].tolist() == [1, 3, 0, 0, 0]
    assert table["right"].tolist() == [2, 4, 0, 0, 0]
    assert table["is_leaf"].tolist() == [0, 0, 1, 1, 1]
