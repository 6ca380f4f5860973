"""Components in passes are those in memory."""

import pytest
import torch

from evengraph.disk import tables
from evengraph.disk.propagation import (
    Walk,
    Workspace,
    column_means,
    component_table,
    cross_product,
    scale_of,
)
from evengraph.disk.tables import ArrayTable
from evengraph.nn.members import Components
from evengraph.ops.propagate import diffuse, neighbour_means, propagation_matrix
from graphs_on_disk import Arrays, random_matrix
from small_graphs import normal

CPU = torch.device("cpu")
NODES = 90


def features(width):
    """Columns of very different size, so that components are well apart."""
    x = normal(NODES, width, dtype=torch.float32)
    return x * torch.linspace(5, 0.1, width)


def propagation(matrix, walk):
    if walk.kind == "symmetric":
        spread = propagation_matrix(matrix, CPU)
        return (lambda x: diffuse(spread, x, walk.steps, walk.teleport),) * 2
    means = neighbour_means(matrix, CPU)
    return means.__matmul__, means.transposed_product


@pytest.mark.parametrize("walk", [Walk("symmetric", 3, 0.1), Walk("mean", 1)], ids=str)
@pytest.mark.parametrize("width", [6, 40])
@pytest.mark.parametrize("rows", [2**16, 17])
def test_components_are_those_in_memory(tmp_path, monkeypatch, walk, width, rows):
    monkeypatch.setattr(
        "evengraph.disk.propagation.row_slices", lambda size: tables.row_slices(size, rows)
    )
    x, matrix = features(width), random_matrix(NODES, 4, seed=0)
    memory, disk = Components(width, 10), Components(width, 10)
    expected = memory(x, *propagation(matrix, walk))
    space = Workspace(Arrays(matrix), tmp_path, 20_000)
    table = component_table(disk, ArrayTable.of(x), space, walk, fit=True, stage="")
    found = table.read(slice(0, NODES))
    signs = (found * expected).sum(0).sign()  # a component may point either way
    torch.testing.assert_close(found * signs, expected, rtol=1e-3, atol=1e-5)
    if width <= 10 and rows > NODES:
        assert torch.equal(found, expected)
        assert torch.equal(disk.centre, memory.centre)
    again = component_table(disk, ArrayTable.of(x), space, walk, fit=False, stage="")
    torch.testing.assert_close(again.read(slice(0, NODES)), found, rtol=1e-3, atol=1e-5)


def test_passes(monkeypatch):
    monkeypatch.setattr(
        "evengraph.disk.propagation.row_slices", lambda size: tables.row_slices(size, 7)
    )
    x, y = normal(50, 3, dtype=torch.float32), normal(50, 2, seed=1, dtype=torch.float32)
    table = ArrayTable.of(x)
    torch.testing.assert_close(column_means(table), x.mean(0))
    torch.testing.assert_close(cross_product(table, ArrayTable.of(y)), x.T @ y)
    torch.testing.assert_close(scale_of(table), 0.5 / x.square().sum(1).mean().sqrt())
    assert scale_of(ArrayTable.of(torch.zeros(5, 2))) == 1


def test_huge_features_stay_finite(tmp_path):
    x, matrix = features(40) * 1e30, random_matrix(NODES, 4, seed=0)
    space, part = Workspace(Arrays(matrix), tmp_path, 10**6), Components(40, 10)
    table = component_table(part, ArrayTable.of(x), space, Walk("mean", 1), fit=True, stage="")
    assert torch.isfinite(table.read(slice(0, NODES))).all()
