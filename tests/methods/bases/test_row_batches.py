"""Epochs on drawn rows."""

import pytest
import torch
from evengraph.methods.bases.row_batches import RowEpoch, draw, row_score

from evengraph.datasets import toy
from evengraph.methods.bases import row_batches
from evengraph.metrics.multiclass import rare_class, validation_score
from evengraph.nn.networks import PlainNetwork
from evengraph.splits import Natural
from evengraph.training.ranks import MemoryRows
from small_graphs import normal


class Layer(torch.nn.Linear):
    """A linear layer with the signature of a convolution."""

    def forward(self, x, propagation):
        return super().forward(x)


@pytest.fixture
def task():
    return Natural(train=0.3, val=0.3)(toy(200, 300, 6, 3), seed=0)


def test_draw_takes_all_or_some():
    nodes = torch.arange(10, 20)
    assert torch.equal(draw(nodes, 10), nodes)
    some = draw(nodes, 4)
    assert len(some) == 4
    assert set(some.tolist()) <= set(nodes.tolist())


@pytest.mark.parametrize("classes", [2, 3])
def test_the_score_is_that_of_all_logits(classes):
    task = Natural(train=0.3, val=0.3)(toy(200, 300, 6, classes), seed=0)
    logits = normal(200, classes)
    expected = validation_score(logits, task)
    nodes = task.val_nodes
    score = row_score(logits[nodes], task.graph.y[nodes], rare_class(task))
    torch.testing.assert_close(score, expected)


@pytest.mark.parametrize("pseudo_weight", [0.0, 1.0])
def test_an_epoch_sees_drawn_rows_only(task, monkeypatch, pseudo_weight):
    monkeypatch.setattr(row_batches, "BATCH", 16)
    monkeypatch.setattr(row_batches, "FULL", 0)
    net, sizes = PlainNetwork(Layer, Layer, 6, 8, 3, 0.5), []

    def on_labels(labels, logits):
        sizes.append((len(labels), len(logits)))
        return torch.nn.functional.cross_entropy(logits, labels)

    hidden = task.hide_test_labels()
    epoch = RowEpoch(
        net, MemoryRows(hidden, task.graph.x), lambda size: None, on_labels, pseudo_weight
    )
    loss, score = epoch()
    loss.backward()
    assert sizes == [(16, 16)]
    assert torch.isfinite(loss)
    assert 0 <= score <= 1
