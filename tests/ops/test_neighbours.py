"""Nearest neighbours by cosine, against all pairs."""

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from evengraph.ops import neighbours
from evengraph.ops.neighbours import nearest_neighbours, neighbour_graph


def blobs(rows, columns=16, centres=12, spread=0.3):
    random = torch.Generator().manual_seed(0)
    means = torch.randn(centres, columns, generator=random)
    group = torch.randint(centres, (rows,), generator=random)
    return means[group] + spread * torch.randn(rows, columns, generator=random)


def all_pairs(x, count):
    cosines = normalize(x, dim=1) @ normalize(x, dim=1).T
    cosines.fill_diagonal_(-2)
    return cosines.topk(count).indices


def recall(found, expected):
    pairs = zip(found.tolist(), expected.tolist(), strict=True)
    return np.mean([len(set(a) & set(b)) / len(b) for a, b in pairs])


def test_small_graphs_are_exact():
    x = blobs(300)
    assert recall(nearest_neighbours(x, 7), all_pairs(x, 7)) == 1


def test_lists_find_nearly_all(monkeypatch):
    x = blobs(3_000)
    monkeypatch.setattr(neighbours, "EXACT", 100)
    found = nearest_neighbours(x, 10)
    assert recall(found, all_pairs(x, 10)) > 0.9
    assert not (found == torch.arange(3_000).unsqueeze(1)).any()


def test_equal_rows_share_a_list_without_comparing_all_pairs(monkeypatch):
    monkeypatch.setattr(neighbours, "EXACT", 100)
    largest = []
    search = neighbours._nearest_among

    def spy(x, rows, among, count):
        largest.append(rows.numel() * among.numel())
        return search(x, rows, among, count)

    monkeypatch.setattr(neighbours, "_nearest_among", spy)
    found = nearest_neighbours(torch.ones(4_000, 3), 5)
    assert (found >= 0).all()
    assert max(largest) < 4_000**2 / 2


def test_lists_may_be_empty(monkeypatch):
    x, lists = blobs(300), torch.arange(300) % 3 + 10
    monkeypatch.setattr(neighbours, "EXACT", 100)
    monkeypatch.setattr(neighbours, "_make_lists", lambda x, count: (lists, torch.ones(count, 16)))
    assert recall(nearest_neighbours(x, 7), all_pairs(x, 7)) == 1


def test_cosines_in_memory_are_limited(monkeypatch):
    x = blobs(3_000)
    monkeypatch.setattr(neighbours, "EXACT", 100)
    expected = nearest_neighbours(x, 10)
    monkeypatch.setattr(neighbours, "AT_ONCE", 20_000)
    largest = []
    product = torch.Tensor.__matmul__

    def spy(self, other):
        largest.append(self.shape[0] * other.shape[1])
        return product(self, other)

    monkeypatch.setattr(torch.Tensor, "__matmul__", spy)
    assert recall(nearest_neighbours(x, 10), expected) > 0.999
    assert 0 < max(largest) <= 20_000


def test_fewer_rows_than_neighbours():
    assert nearest_neighbours(torch.eye(3), 10).shape == (3, 2)


def test_the_graph_is_undirected():
    matrix = neighbour_graph(blobs(200), 5)
    assert (matrix != matrix.T).nnz == 0
    assert matrix.diagonal().sum() == 0
    assert matrix.getnnz(axis=1).min() >= 5
    assert set(matrix.data) == {1.0}


@pytest.mark.parametrize("rows", [1, 2])
def test_tiny_graphs(rows):
    assert neighbour_graph(torch.ones(rows, 2), 5).shape == (rows, rows)


def test_too_few_in_the_lists_that_are_searched(monkeypatch):
    lists = torch.tensor([0] * 9 + [1])
    monkeypatch.setattr(neighbours, "EXACT", 1)
    monkeypatch.setattr(neighbours, "PROBES", 1)
    monkeypatch.setattr(neighbours, "_make_lists", lambda x, count: (lists, torch.ones(2, 16)))
    found = nearest_neighbours(blobs(10), 3)
    assert found[9].tolist() == [-1, -1, -1]
    assert (found[:9] >= 0).all()
