"""Trees on bins in a file against scikit-learn's classifier."""

import sys

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from evengraph.disk import tables
from evengraph.disk.propagation import RowBlocks
from evengraph.disk.tables import ArrayTable
from evengraph.methods.bases.binned_rows import bin_rows
from evengraph.methods.bases.binned_trees import BinnedTrees
from evengraph.methods.bases.tree_engines import BINS, TreeParams, grower
from evengraph.ops.trees import tree_values, trees_from_tables
from labelled_rows import rows_of

PARAMS = TreeParams(learning_rate=0.1, weight_decay=1.0, leaves=6, smallest_leaf=4)


def binned_trees(folder, x, labels, weights):
    rows = RowBlocks(ArrayTable.of(x), torch.arange(len(x)), 77)
    binned = bin_rows(rows, BINS, len(x), folder / "bins")
    return BinnedTrees(binned, labels.numpy(), weights.numpy(), PARAMS, folder / "logits")


@pytest.mark.parametrize("num_classes", [2, 3])
def test_trees_are_those_of_the_classifier(tmp_path, num_classes):
    x, labels, weights = rows_of(num_classes, 2000)
    trees = binned_trees(tmp_path, x, labels, weights)
    trees.grow(4)
    ours, theirs = trees.grow(15), grower("sklearn", x, labels, weights, PARAMS)(15)
    assert len(ours.tables) == len(theirs.tables) == 15 * len(theirs.baseline)
    np.testing.assert_allclose(ours.baseline, theirs.baseline, rtol=1e-12)
    for own, other in zip(ours.tables, theirs.tables, strict=True):
        for name in ("feature_idx", "num_threshold", "left", "right", "is_leaf", "count"):
            np.testing.assert_array_equal(own[name], other[name])
        np.testing.assert_allclose(own["value"], other["value"], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("num_classes", [2, 3])
def test_losses_and_logits_are_those_of_the_trees(tmp_path, monkeypatch, num_classes):
    monkeypatch.setattr(tables.row_slices, "__defaults__", (128,))  # several blocks
    x, labels, weights = rows_of(num_classes)
    trees = binned_trees(tmp_path, x, labels, weights)
    grown = trees.grow(6)
    values = tree_values(trees_from_tables(grown.tables, x.device), x).unflatten(1, (6, -1))
    for rounds, loss in enumerate(grown.losses):
        logits = torch.from_numpy(grown.baseline) + values[:, :rounds].sum(1)
        if num_classes == 2:
            logits = torch.cat([0 * logits, logits], dim=1)
        expected = (weights * cross_entropy(logits, labels, reduction="none")).mean()
        assert loss == pytest.approx(float(expected))
    assert len(grown.losses) == 7
    np.testing.assert_allclose(trees.logits.T, logits[:, -len(trees.logits) :].numpy())


def test_a_version_without_the_grower_names_another_engine(tmp_path, monkeypatch):
    trees = binned_trees(tmp_path, *rows_of(2))
    name = "sklearn.ensemble._hist_gradient_boosting.grower"
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ValueError, match="cannot learn from rows on disk; use engine='lightgbm'"):
        trees.grow(1)
