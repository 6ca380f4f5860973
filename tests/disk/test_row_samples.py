"""Which rows of a graph on disk a fit sees."""

import torch

from evengraph.datasets import toy
from evengraph.disk.models import fair_sizes, plan_note, sample_nodes, select_nodes
from evengraph.disk.shards import RowPlan
from evengraph.splits import Natural


def test_rare_classes_keep_their_nodes():
    assert fair_sizes([1000, 3, 50], 100) == [49, 3, 48]
    assert fair_sizes([5, 6], 100) == [5, 6]
    task = Natural(train=0.5, val=0.2)(toy(1000, 2000, 4, 3), seed=0)
    nodes = sample_nodes(task, 90, seed=0)
    assert torch.equal(nodes, nodes.unique())
    part = select_nodes(task, nodes)
    assert (int(part.train.sum()), int(part.val.sum())) == (90, 90)
    assert len(nodes) == 270
    assert torch.equal(part.graph.y, task.graph.y[nodes])


def test_the_note_counts_all_rows_or_some():
    task = Natural(train=0.5, val=0.2)(toy(1000, 2000, 4, 3), seed=0)
    plan = RowPlan.of(task, room=400, epochs=10, drawn=(100, 10), validated=50, seed=0)
    assert plan_note(task, plan) == (
        "Rows from disk, in 2 shards: all 500 training nodes, 50 of 199 validation nodes, "
        "100 of 500 others. Epochs draw no more than these."
    )
