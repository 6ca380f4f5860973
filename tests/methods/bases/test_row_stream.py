"""Passes over labelled rows against the same in memory."""

import pytest
import torch
from torch_geometric.data import Data

from evengraph.disk import propagation as row_blocks
from evengraph.disk.propagation import Workspace
from evengraph.disk.tables import ArrayTable
from evengraph.methods.bases import row_stream
from evengraph.methods.bases.row_stream import RowStream
from evengraph.methods.bases.tree_engines import TreeParams, grower
from evengraph.ops.trees import separation, tree_values, trees_from_tables
from graphs_on_disk import Arrays, random_matrix
from labelled_rows import rows_of
from small_graphs import task_of

PARAMS = TreeParams(learning_rate=0.1, weight_decay=1.0, leaves=6, smallest_leaf=4)
COLUMNS = torch.tensor([0, 1, 3])


class Counted(ArrayTable):
    """Counts how often its rows are read."""

    rows = 0

    def read(self, rows, columns=slice(None)):
        read = super().read(rows, columns)
        self.rows += len(read)
        return read


@pytest.fixture
def stream(tmp_path, monkeypatch):
    """300 labelled rows of a table of 500, 200 of them for training, in blocks of 32."""
    monkeypatch.setattr(row_blocks, "SMALLEST", 32)
    x, labels, _ = rows_of(3, 500)
    nodes = torch.randperm(500, generator=torch.Generator().manual_seed(0))[:300].sort().values
    graph = Data(x=torch.zeros(300, 5), edge_index=torch.zeros(2, 0).long(), y=labels[nodes])
    val = range(0, 300, 3)
    task = task_of(graph, sorted(set(range(300)) - set(val)), val)
    space = Workspace(Arrays(random_matrix(500, 2, 0)), tmp_path / "space", 10**4)
    return RowStream(task, nodes, Counted.of(x), space, lambda x: 2 * x)


def rows(stream, mask):
    x = 2 * stream.table.read(stream.nodes)
    return x[getattr(stream.task, mask)], stream.task.graph.y[getattr(stream.task, mask)]


def test_the_f_statistic_is_that_of_the_training_rows(stream):
    x, labels = rows(stream, "train")
    expected = separation(x[:, COLUMNS], labels, 3)
    torch.testing.assert_close(stream.separation(COLUMNS), expected)


def test_trees_are_those_of_the_training_rows(stream):
    x, labels = rows(stream, "train")
    weights = torch.ones(len(x)).double()
    expected = grower("sklearn", x[:, COLUMNS], labels, weights, PARAMS)(4)
    with stream.grower("sklearn", COLUMNS, weights, PARAMS) as grow:
        found = grow(4)
        (folder,) = stream.space.folder.iterdir()
        assert {path.name for path in folder.iterdir()} == {"bins", "logits"}
    assert list(stream.space.folder.iterdir()) == []
    own, other = (trees_from_tables(each.tables, x.device) for each in (found, expected))
    assert torch.equal(own.feature, other.feature)
    assert torch.equal(own.threshold, other.threshold)
    torch.testing.assert_close(own.value, other.value, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("share", [1, 8, 10**9], ids=["one pass", "few", "one per round"])
def test_sums_are_those_of_the_validation_rows(stream, monkeypatch, share):
    monkeypatch.setattr(row_stream, "SUMS_SHARE", share)
    x, labels = rows(stream, "train")
    weights = torch.ones(len(x)).double()
    tables = grower("sklearn", x[:, COLUMNS], labels, weights, PARAMS)(4).tables
    validation, _ = rows(stream, "val")
    values = tree_values(trees_from_tables(tables, x.device), validation[:, COLUMNS])
    start = torch.rand(100, 3).double()
    stream.table.rows = 0
    found = [sums.clone() for sums in stream.validation_sums(COLUMNS, tables, start)]
    passes = {1: 1, 8: 4, 10**9: 4}[share]
    assert stream.table.rows == passes * 100
    for number, sums in enumerate(found, start=1):
        expected = start + values.unflatten(1, (4, 3))[:, :number].sum(1)
        torch.testing.assert_close(sums, expected)
    assert len(found) == 4
