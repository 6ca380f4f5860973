"""Rows in memory, of one process and of two."""

import torch

from evengraph.datasets import toy
from evengraph.splits import Natural
from evengraph.training.ranks import Ranks
from evengraph.training.row_supply import MemoryRows


def test_all_rows_are_one_shard_and_validation_is_one_block():
    task = Natural(train=0.3, val=0.2)(toy(60, 100, 4, 3), seed=0)
    supply = MemoryRows(task, task.graph.x)
    shard = supply.advance()
    assert supply.advance() is shard
    assert torch.equal(shard.rows, task.graph.x)
    assert torch.equal(shard.labelled, task.train_nodes)
    assert torch.equal(torch.cat([shard.labelled, shard.others]).sort().values, torch.arange(60))
    ((rows, labels),) = supply.validation()
    assert torch.equal(rows, task.graph.x[task.val])
    assert torch.equal(labels, task.graph.y[task.val])


def test_processes_share_the_validation_rows():
    task = Natural(train=0.3, val=0.2)(toy(60, 100, 4, 3), seed=0)
    views = torch.stack([task.graph.x, -task.graph.x])
    parts = []
    for rank in (0, 1):
        ranks = Ranks(rank, 2)
        ((rows, labels),) = MemoryRows(task, views[:, ranks.own(60)], ranks).validation()
        assert len(labels) == rows.shape[1]
        parts.append(rows)
    both = torch.cat(parts, dim=1)
    assert both.shape[1] == int(task.val.sum())
    torch.testing.assert_close(both.sum(1), views[:, task.val].sum(1))
