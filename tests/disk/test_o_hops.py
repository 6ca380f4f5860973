"""Tables of features and means on disk."""

import torch

from evengraph.disk import propagation as hops
from evengraph.disk.propagation import (
    Workspace,
    fit_scaling,
    mean_tables,
    own_columns,
    rescaled_table,
)
from evengraph.disk.tables import ArrayTable, row_slices
from evengraph.ops.propagate import Scaling, neighbour_means
from evengraph.ops.structural import with_log_degree
from graphs_on_disk import Arrays, random_matrix
from small_graphs import normal

ALL = slice(0, 60)


def test_means_of_features_and_degrees(tmp_path):
    matrix, x = random_matrix(60, 4, seed=0), normal(60, 5, dtype=torch.float32)
    links = Arrays(matrix)
    own = own_columns(ArrayTable.of(x), links, degree=True)
    expected = with_log_degree(x, matrix)
    assert torch.equal(own.read(ALL), expected)
    means = neighbour_means(matrix, torch.device("cpu"))
    for table in mean_tables(own, Workspace(links, tmp_path, 10**6), 2):
        expected = means @ expected
        assert torch.equal(table.read(ALL), expected)
    assert own_columns(ArrayTable.of(x), links, degree=False).shape == (60, 5)


def test_scaling_in_passes(monkeypatch):
    monkeypatch.setattr(hops, "row_slices", lambda size: row_slices(size, 7))
    x = normal(60, 5, dtype=torch.float32)
    x[:, 2] = (x[:, 2] > 2).float()
    table, expected = ArrayTable.of(x), Scaling.of(x)
    scaling = fit_scaling(table)
    assert all(torch.equal(*pair) for pair in zip(scaling, expected, strict=True))
    scaled = rescaled_table(table, scaling)
    assert torch.equal(scaled.read(slice(3, 9), slice(1, 3)), expected(x)[3:9, 1:3])
