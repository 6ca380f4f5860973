"""Scaling of columns: by hand, and what it must not do to outliers and to bags of words."""

import pytest
import torch

from evengraph.ops import features as module
from evengraph.ops.features import FAR, SPREAD, Scaling, sample_step
from small_graphs import normal


def test_a_spread_column_is_centred_and_divided_by_its_quartile_distance():
    x = torch.arange(9.0).unsqueeze(1) * 10  # quartiles 20, 40 and 60
    found = Scaling.of(x)
    assert found.spread.tolist() == [True]
    torch.testing.assert_close(found(x), (x - 40) / 40 * SPREAD)


def test_a_normal_column_gets_unit_variance():
    x = 1000 + 7 * normal(5000, 2).float()
    scaled = Scaling.of(x)(x)
    torch.testing.assert_close(scaled.std(0), torch.ones(2), rtol=0.05, atol=0)
    torch.testing.assert_close(scaled.mean(0), torch.zeros(2), rtol=0, atol=0.05)


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
