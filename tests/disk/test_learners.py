"""Adapters of methods: epochs on drawn rows, and trees on rows in blocks as in memory."""

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from evengraph.datasets import toy
from evengraph.disk import learners
from evengraph.disk import propagation as row_blocks
from evengraph.disk.learners import RowEpoch, TreeLearner
from evengraph.disk.propagation import RowBlocks, Workspace
from evengraph.disk.tables import ArrayTable
from evengraph.methods import Boosting
from evengraph.methods.bases.method import reset
from evengraph.methods.boosting import grower
from evengraph.metrics.multiclass import rare_class, validation_score
from evengraph.nn.networks import PlainNetwork
from evengraph.ops.trees import tree_values, trees_from_tables
from evengraph.splits import Natural
from evengraph.training.ranks import ALONE, MemoryRows, draw, validation_scores
from graphs_on_disk import Arrays, random_matrix, table_of
from labelled_rows import rows_of
from small_graphs import normal, task_of

MUCH = 10**9


class Layer(torch.nn.Linear):
    """A linear layer with the signature of a convolution."""

    def forward(self, x, propagation):
        return super().forward(x)


def test_draw_takes_all_or_some():
    nodes = torch.arange(10, 20)
    assert torch.equal(draw(nodes, 10), nodes)
    some = draw(nodes, 4)  # with replacement
    assert len(some) == 4
    assert set(some.tolist()) <= set(nodes.tolist())


@pytest.mark.parametrize("classes", [2, 3])
def test_the_score_is_that_of_all_logits(classes):
    task = Natural(train=0.3, val=0.3)(toy(200, 300, 6, classes), seed=0)
    logits, nodes = normal(200, classes), task.val_nodes
    labels = task.graph.y[nodes]
    (score,) = validation_scores(logits[None, nodes], labels, rare_class(task), ALONE)
    torch.testing.assert_close(score, validation_score(logits, task))


@pytest.mark.parametrize("pseudo_weight", [0.0, 1.0])
def test_an_epoch_sees_drawn_rows_only(monkeypatch, pseudo_weight):
    monkeypatch.setattr(learners, "BATCH", 16)
    monkeypatch.setattr(learners, "FULL", 0)
    task = Natural(train=0.3, val=0.3)(toy(200, 300, 6, 3), seed=0)
    net, sizes = PlainNetwork(Layer, Layer, 6, 8, 3, 0.5), []

    def on_labels(labels, logits):
        sizes.append((len(labels), len(logits)))
        return cross_entropy(logits, labels)

    supply = MemoryRows(task.hide_test_labels(), task.graph.x)
    loss, score = RowEpoch(net, supply, lambda size: None, on_labels, pseudo_weight)()
    loss.backward()
    assert sizes == [(16, 16)]
    assert torch.isfinite(loss)
    assert 0 <= score <= 1


# Trees


def tree_learner(folder, memory=MUCH, **params):
    params = {"weight_decay": 1.0, "leaves": 6, "smallest_leaf": 4, **params}
    space = Workspace(Arrays(random_matrix(500, 2, 0)), folder, memory)
    return TreeLearner(Boosting(engine="lightgbm", hops=0, **params), space)


def blocks(x, size=77):
    return RowBlocks(table_of(x), torch.arange(len(x)), size)


def streamed(folder, x, labels, weights, memory=MUCH, **params):
    pytest.importorskip("lightgbm")
    return tree_learner(folder, memory, **params)._grower(blocks(x), labels, weights)


def in_memory(folder, *rows):
    return grower("lightgbm", *rows, tree_learner(folder).method.tree_params())


def test_bins_of_a_sample_serve_as_well(tmp_path):
    x, labels, weights = rows_of(3, 6000)
    memory = 8 * 8 * 5 * 1500  # a quarter of the rows
    ours = streamed(tmp_path, x, labels, weights, memory)(20)
    theirs = in_memory(tmp_path, x, labels, weights)(20)
    own, other = (
        tree_values(trees_from_tables(grown.tables, x.device), x).unflatten(1, (20, 3)).sum(1)
        + torch.from_numpy(grown.baseline)
        for grown in (ours, theirs)
    )
    own_loss, other_loss = (float(cross_entropy(each, labels)) for each in (own, other))
    assert own_loss == pytest.approx(other_loss, rel=0.03)
    assert (own.argmax(1) == other.argmax(1)).double().mean() > 0.96


class Counted(ArrayTable):
    """Counts how often its rows are read."""

    rows = 0

    def read(self, rows, columns=slice(None)):
        read = super().read(rows, columns)
        self.rows += len(read)
        return read


@pytest.mark.parametrize(("share", "passes"), [(1, 1), (8, 4), (10**9, 4)])
def test_sums_are_those_of_the_validation_rows(tmp_path, monkeypatch, share, passes):
    """In one pass, in few, or in one for each round."""
    pytest.importorskip("lightgbm")
    monkeypatch.setattr(learners, "SUMS_SHARE", share)
    x, labels, weights = rows_of(3, 100)
    tables = in_memory(tmp_path, x, labels, weights)(4).tables
    values = tree_values(trees_from_tables(tables, x.device), x)
    start, table = torch.rand(100, 3).double(), table_of(x, Counted)
    rows = RowBlocks(table, torch.arange(100), 32)
    found = [each.clone() for each in tree_learner(tmp_path, 10**4)._sums(rows, tables, start)]
    assert table.rows == passes * 100
    for number, sums in enumerate(found, start=1):
        expected = start + values.unflatten(1, (4, 3))[:, :number].sum(1)
        torch.testing.assert_close(sums, expected)
    assert len(found) == 4


def test_columns_are_chosen_by_all_training_rows(tmp_path, monkeypatch):
    """A column that tells the classes apart is in the second block alone."""
    pytest.importorskip("lightgbm")
    monkeypatch.setattr(row_blocks, "LEAST_ROWS", 32)
    x, labels = normal(300, 5, dtype=torch.float32), torch.arange(300) % 3
    x[64:96, 3] += 9 * labels[64:96]
    graph = Data(x=torch.zeros(300, 5), edge_index=torch.zeros(2, 0).long(), y=labels)
    val = range(0, 300, 4)
    task = task_of(graph, sorted(set(range(300)) - set(val)), val)
    learner = tree_learner(tmp_path, 10**4, columns=1, max_epochs=1)
    reset(learner.method, task)
    learner.fit_streamed(task, torch.arange(300), {"features": table_of(x)})
    assert set(learner.method.trees_.feature[learner.method.trees_.feature > 0].tolist()) == {3}


def test_more_memory_allows_more_rows(tmp_path):
    few, many = (tree_learner(tmp_path, size).streamed_rows(127, 5) for size in (10**8, 10**9))
    assert all(10 * less <= more for less, more in zip(few, many, strict=True))
    assert min(few) > 10**5
    assert tree_learner(tmp_path, 1).streamed_rows(127, 5) == (1024, 1024)
    wide, narrow = (tree_learner(tmp_path, 10**8).streamed_rows(n, 5)[0] for n in (1000, 10))
    assert wide < narrow
