"""Trees on rows in blocks against those that the same library grows in memory."""

import numpy as np
import pytest
import torch
from evengraph.methods.bases.tree_streams import (
    SAMPLE,
    sample_size,
    streamed_grower,
    streamed_rows,
)
from torch.nn.functional import cross_entropy

from evengraph.disk.propagation import RowBlocks
from evengraph.disk.tables import ArrayTable
from evengraph.methods.bases.tree_engines import PACKAGES, TreeParams, grower
from evengraph.ops.trees import tree_values, trees_from_tables
from labelled_rows import rows_of

PARAMS = TreeParams(learning_rate=0.1, weight_decay=1.0, leaves=6, smallest_leaf=4)
MUCH = 10**9


def blocks(x, size=77):
    return RowBlocks(ArrayTable.of(x), torch.arange(len(x)), size)


def streamed(engine, x, labels, weights, folder, memory=MUCH):
    return streamed_grower(engine, blocks(x), labels, weights, PARAMS, memory, folder)


def logits_of(grown, x, rounds):
    """Logits after each round, (rounds + 1, n, C)."""
    values = tree_values(trees_from_tables(grown.tables, x.device), x).unflatten(1, (rounds, -1))
    start = torch.from_numpy(grown.baseline).expand(len(x), 1, -1)
    sums = torch.cat([start, values], dim=1).cumsum(1).transpose(0, 1)
    return torch.cat([0 * sums, sums], dim=2) if sums.shape[2] == 1 else sums


@pytest.mark.parametrize("num_classes", [2, 3])
@pytest.mark.parametrize("engine", PACKAGES)
def test_trees_are_those_of_rows_in_memory(tmp_path, engine, num_classes):
    pytest.importorskip(engine)
    x, labels, weights = rows_of(num_classes, 700)
    if engine == "xgboost":
        x = (20 * x).round()  # quantiles of more distinct values depend on the blocks
    grow = streamed(engine, x, labels, weights, tmp_path)
    grow(5)
    ours, theirs = grow(12), grower(engine, x, labels, weights, PARAMS)(12)
    np.testing.assert_allclose(ours.baseline, theirs.baseline)
    own, other = (trees_from_tables(grown.tables, x.device) for grown in (ours, theirs))
    assert torch.equal(own.feature, other.feature)
    torch.testing.assert_close(own.threshold, other.threshold)
    torch.testing.assert_close(own.value, other.value, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("num_classes", [2, 3])
@pytest.mark.parametrize("engine", PACKAGES)
def test_losses_are_those_of_the_trees(tmp_path, engine, num_classes):
    pytest.importorskip(engine)
    x, labels, weights = rows_of(num_classes)
    grow = streamed(engine, x, labels, weights, tmp_path)
    grow(2)
    grown = grow(6)
    for loss, logits in zip(grown.losses, logits_of(grown, x, 6), strict=True):
        expected = (weights * cross_entropy(logits, labels, reduction="none")).mean()
        assert loss == pytest.approx(float(expected), rel=1e-4)


@pytest.mark.parametrize("engine", PACKAGES)
def test_bins_of_a_sample_serve_as_well(tmp_path, engine):
    pytest.importorskip(engine)
    x, labels, weights = rows_of(3, 6000)
    memory = 8 * 8 * 5 * 1500  # a quarter of the rows
    assert sample_size(5, memory) == 1500
    ours = streamed(engine, x, labels, weights, tmp_path, memory)(20)
    theirs = grower(engine, x, labels, weights, PARAMS)(20)
    own, other = (logits_of(grown, x, 20)[-1] for grown in (ours, theirs))
    own_loss, other_loss = (float(cross_entropy(each, labels)) for each in (own, other))
    assert own_loss == pytest.approx(other_loss, rel=0.03)
    assert (own.argmax(1) == other.argmax(1)).double().mean() > 0.96


@pytest.mark.parametrize("engine", PACKAGES)
def test_every_row_counts(tmp_path, engine):
    pytest.importorskip(engine)
    params = PARAMS._replace(smallest_leaf=1, weight_decay=0.0)
    for row in (0, 76, 77, 461, 462, 499):  # at the ends of blocks
        x, labels = torch.zeros(500, 2), torch.zeros(500, dtype=torch.long)
        x[row, 1], labels[row] = 1, 1
        weights = torch.where(labels == 1, 499.0, 1.0).double()
        grow = streamed_grower(engine, blocks(x), labels, weights, params, MUCH, tmp_path)
        trees = trees_from_tables(grow(1).tables, x.device)
        assert tree_values(trees, x)[:, 0].argmax() == row
        assert trees.feature[0] == 1


def test_files_of_xgboost_give_the_trees_of_its_memory(tmp_path):
    pytest.importorskip("xgboost")
    x, labels, weights = rows_of(3, 3000)
    (tmp_path / "files").mkdir()
    few = streamed("xgboost", x, labels, weights, tmp_path / "files", memory=1000)
    assert list((tmp_path / "files").iterdir())
    results = [few(8), streamed("xgboost", x, labels, weights, tmp_path / "none")(8)]
    own, other = (trees_from_tables(grown.tables, x.device) for grown in results)
    assert torch.equal(own.feature, other.feature)
    torch.testing.assert_close(own.threshold, other.threshold)
    torch.testing.assert_close(own.value, other.value, rtol=1e-4, atol=1e-6)


def test_files_need_a_recent_xgboost(tmp_path, monkeypatch):
    library = pytest.importorskip("xgboost")
    monkeypatch.delattr(library, "ExtMemQuantileDMatrix")
    with pytest.raises(ValueError, match="XGBoost 3 or later"):
        streamed("xgboost", *rows_of(2), tmp_path, memory=1000)


def test_more_memory_allows_more_rows():
    assert sample_size(100, 10**12) == SAMPLE
    assert sample_size(10**6, 10**6) == 1024
    for engine in PACKAGES:
        few, many = (streamed_rows(engine, 128, 5, memory) for memory in (10**8, 10**9))
        assert all(10 * less <= more for less, more in zip(few, many, strict=True))
        assert min(few) > 10**5
        assert streamed_rows(engine, 128, 5, 1) == (1024, 1024)
    wide, narrow = (streamed_rows("lightgbm", width, 5, 10**8)[0] for width in (1000, 10))
    assert wide < narrow < streamed_rows("sklearn", 1000, 5, 10**8)[0]  # whose bins are in a file
