"""What processes that train together add up and agree on."""

import pytest
import torch

from evengraph.datasets import toy
from evengraph.splits import Natural
from evengraph.training.ranks import (
    ALONE,
    LostRankError,
    MemoryRows,
    Ranks,
    is_lost,
    joined_ranks,
)
from rank_workers import collectives, gradients, run_ranks


def test_two_processes_add_up_and_agree(tmp_path):
    first, second = run_ranks(tmp_path / "ranks", collectives)
    assert first["own"].tolist() == [0, 2, 4, 6, 8]
    assert second["own"].tolist() == [1, 3, 5, 7, 9]
    nodes, rows, index, total, before = first["part"]
    assert (nodes.tolist(), rows.tolist(), index.tolist()) == ([2, 2, 0], [1, 1, 0], [1, 2, 4])
    assert (total, before) == (5, 2)
    nodes, rows, index, total, before = second["part"]
    assert (nodes.tolist(), rows.tolist(), index.tolist()) == ([5, 9], [2, 4], [0, 3])
    assert (total, before) == (5, 1)
    assert (first["each"], second["each"]) == (["a", "c", "e"], ["b", "d"])
    for result in (first, second):
        assert result["sum"].tolist() == [2.0, 1.0]
        assert result["max"] == 1
        assert result["mean"] == 4.5
        assert result["gather"].tolist() == [[1, 0, 2, 2], [1, 0, 2, 2]]
        assert result["interleave"].squeeze(1).tolist() == list(range(10))
        assert result["once"] == "computed by 0"


def test_alone_everything_is_identity():
    values = torch.tensor([3.0, 1.0])
    for same in (ALONE.sum(values), ALONE.max(values), ALONE.interleave(values, 2)):
        assert same is values
    assert torch.equal(ALONE.gather(values, 0), values)
    assert ALONE.share_of_mean(values, 2) == 2
    assert ALONE.once(lambda: 5) == 5
    part = ALONE.part(torch.tensor([4, 2]))
    assert part.rows is part.nodes
    assert (part.index, part.total, part.before(1)) == (None, 2, 1)
    items = []
    ALONE.each(items.append, ["a", "b"])
    assert items == ["a", "b"]


def test_a_process_that_nobody_launched_is_alone(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with joined_ranks() as ranks:
        assert ranks is ALONE


@pytest.mark.parametrize(
    ("message", "lost"),
    [("[pair.cc:553] Connection closed by peer [::1]:4", True), ("shapes do not match", False)],
)
def test_messages_of_torch_that_mean_a_lost_process(message, lost):
    assert is_lost(RuntimeError(message)) is lost
    assert issubclass(LostRankError, ValueError)


def test_gradients_are_those_of_all_rows(tmp_path):
    expected = torch.tensor([[2 / 3 * (3 * 1 + 7 * 3 + 11 * 5), 2 / 3 * (3 * 2 + 7 * 4 + 11 * 6)]])
    for loss, score, gradient in run_ranks(tmp_path / "ranks", gradients):
        assert abs(loss - (9 + 49 + 121) / 3) < 1e-4
        assert score == 1  # that of the first process
        torch.testing.assert_close(gradient, expected)


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
