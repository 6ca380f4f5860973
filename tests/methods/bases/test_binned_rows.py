"""Bins in a file against those of scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper

from evengraph.disk.propagation import RowBlocks
from evengraph.disk.tables import ArrayTable
from evengraph.methods.bases.binned_rows import bin_rows, bin_thresholds
from evengraph.ops.trees import coarsen
from small_graphs import normal


@pytest.fixture
def x():
    x = normal(1000, 20, dtype=torch.float32)
    x[:, 1] = x[:, 1].round()
    x[:, 2] = 3.0
    x[:, 3] = (100 * x[:, 3]).round()
    x[:, 4] = torch.where(x[:, 4] > -1, 0.0, x[:, 4])  # most rows are equal
    return x


@pytest.mark.parametrize("most", [4, 30, 255])
def test_all_rows_give_the_bins_of_scikit_learn(tmp_path, x, most):
    coarse = coarsen(x, most).double().numpy()
    mapper = _BinMapper(n_bins=most + 1)
    expected = mapper.fit_transform(coarse)
    rows = RowBlocks(ArrayTable.of(x), torch.arange(1000), 64)
    codes, thresholds = bin_rows(rows, most, 1000, tmp_path / "bins")
    assert codes.flags.f_contiguous
    np.testing.assert_array_equal(codes, expected)
    for some, theirs in zip(thresholds, mapper.bin_thresholds_, strict=True):
        np.testing.assert_array_equal(some, theirs)


def test_values_beyond_the_sample_have_a_bin(tmp_path, x):
    nodes = torch.arange(1000).flip(0)
    codes, thresholds = bin_rows(RowBlocks(ArrayTable.of(x), nodes, 300), 9, 50, tmp_path / "bins")
    sample = x[nodes][::20]
    for column, some in enumerate(thresholds):
        np.testing.assert_array_equal(some, bin_thresholds(sample[:, [column]], 9)[0])
        values = x[nodes][:, column].double().numpy()
        np.testing.assert_array_equal(codes[:, column], (values[:, None] > some).sum(1))
    assert (tmp_path / "bins").stat().st_size == x.numel()  # one byte per value
