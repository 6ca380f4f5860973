"""Which rows training sees, in shards of a file each."""

from contextlib import ExitStack

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.datasets import toy
from evengraph.disk import pack_graph, shards
from evengraph.disk.models import fair_sizes, plan_note, sample_nodes, select_nodes
from evengraph.disk.propagation import Workspace
from evengraph.disk.shards import SPAN, RowPlan, sharded_rows
from evengraph.splits import Natural
from evengraph.training.ranks import Ranks
from graphs_on_disk import table_of

NODES = 200


def turns(plan):
    """Shards until each chunk has been in memory."""
    return max(len(plan.labelled), len(plan.others))


@pytest.fixture
def task():
    task = Natural(train=0.3, val=0.2)(toy(NODES, 400, 5, 3), seed=0)
    return task.hide_test_labels()


@pytest.fixture
def space(tmp_path, task):
    return Workspace(pack_graph(toy(20, 30, 2, 2), tmp_path / "g"), tmp_path, 10**6)


@pytest.fixture
def tables():
    """Numbers that tell nodes and tables apart."""
    numbers = torch.arange(NODES, dtype=torch.float32)
    return {
        "one": table_of(torch.stack([numbers, numbers + 0.5], dim=1)),
        "two": table_of(-numbers.unsqueeze(1)),
    }


def side_by_side(rows):
    return torch.cat(list(rows.values()), dim=1)


def planned(task, **options):
    usual = {"room": 60, "epochs": 1000, "drawn": (10**6, 10**6), "validated": 10**6, "seed": 1}
    return RowPlan.of(task, **usual | options)


@pytest.fixture
def supply(task, tables, space):
    """Opens a supply until the end of the test."""
    with ExitStack() as stack:

        def opened(room=60, drawn=(10**6, 10**6)):
            plan = planned(task, room=room, drawn=drawn)
            rows = sharded_rows(task, plan, tables, side_by_side, space)
            return stack.enter_context(rows)

        yield opened


@given(
    room=st.integers(2, 400),
    epochs=st.integers(1, 40),
    drawn=st.tuples(st.integers(1, 30), st.integers(0, 30)),
    validated=st.integers(1, 60),
    seed=st.integers(0, 5),
)
def test_a_plan_divides_the_nodes(room, epochs, drawn, validated, seed):
    task = Natural(train=0.3, val=0.2)(toy(NODES, 400, 5, 3), seed=0)
    options = {"room": room, "epochs": epochs, "drawn": drawn, "validated": validated, "seed": seed}
    plan = RowPlan.of(task, **options)
    draws = [epochs * count for count in drawn]
    assert 1 <= plan.span <= SPAN
    assert plan.span * turns(plan) <= max(epochs, turns(plan))  # every shard has its turn
    kinds = (task.train_nodes, (~task.train).nonzero().squeeze(1))
    for chunks, nodes, most in zip((plan.labelled, plan.others), kinds, draws, strict=True):
        chosen = torch.cat(chunks) if chunks else nodes[:0]
        assert len(chosen) == min(len(nodes), most)
        assert len(chosen.unique()) == len(chosen)
        assert torch.isin(chosen, nodes).all()
    largest = [max(map(len, chunks), default=0) for chunks in (plan.labelled, plan.others)]
    assert sum(largest) <= max(room, 2)
    assert len(plan.validation) == min(int(task.val.sum()), validated)
    again = RowPlan.of(task, **options)
    assert all(map(torch.equal, plan.files.values(), again.files.values()))


def test_every_row_comes_in_turn_as_it_is_in_the_tables(task, supply):
    rows = supply()
    assert turns(rows.plan) == 5
    seen, held = set(), []
    for epoch in range(SPAN * 5):
        shard = rows.advance()
        assert torch.equal(shard.rows[:, 0], -shard.rows[:, 2])
        assert torch.equal(shard.rows[:, 0] + 0.5, shard.rows[:, 1])
        nodes = shard.rows[:, 0].long()
        assert torch.equal(shard.labels, task.graph.y[nodes])
        assert task.train[nodes[shard.labelled]].all()
        assert not task.train[nodes[shard.others]].any()
        assert len(nodes) <= 60
        seen |= set(nodes.tolist())
        if epoch % SPAN:
            assert shard is held[-1]
        held.append(shard)
    assert seen == set(range(NODES))


def test_validation_is_a_pass_in_blocks(task, supply, monkeypatch):
    monkeypatch.setattr(shards, "BLOCK", 21)
    blocks = list(supply().validation())
    assert [len(labels) for _, labels in blocks] == [7, 7, 7, 7, 7, 5]
    shard = supply(drawn=(10**6, 0)).advance()
    assert (len(shard.labelled), len(shard.others)) == (60, 0)  # epochs draw no others
    nodes = torch.cat([rows for rows, _ in blocks])[:, 0].long()
    assert torch.equal(nodes, task.val_nodes)
    assert torch.equal(torch.cat([labels for _, labels in blocks]), task.graph.y[nodes])


def test_a_checkpoint_continues_with_the_same_shard(supply):
    first, second = supply(), supply()
    for _ in range(SPAN + 3):
        first.advance()
    second.load_state_dict(first.state_dict())
    for _ in range(2 * SPAN):
        assert torch.equal(first.advance().rows, second.advance().rows)


def test_each_process_has_every_second_row(task, supply, monkeypatch):
    monkeypatch.setattr(shards, "BLOCK", 12)
    whole, *parts = (supply(room=34) for _ in range(3))
    assert len(whole.plan.labelled[0]) % 2 == 1  # other rows then begin with the second process
    for rank, part in enumerate(parts):
        part.ranks = Ranks(rank, 2)
    for _ in range(3 * SPAN):
        shard, (one, two) = whole.advance(), [part.advance() for part in parts]
        assert torch.equal(shard.rows[::2], one.rows)
        assert torch.equal(shard.rows[1::2], two.rows)
        assert torch.equal(shard.labels, two.labels)
    nodes = [rows[:, 0] for part in parts for rows, _ in part.validation()]
    assert torch.equal(torch.cat(nodes).sort().values, task.val_nodes.float())


def test_two_runs_at_once_do_not_share_files(task, tables, space):
    plan = planned(task)
    with sharded_rows(task, plan, tables, side_by_side, space) as one:
        with sharded_rows(task, plan, tables, side_by_side, space) as other:
            other.advance()
        one.advance()  # the files of the other are gone
        assert sum(1 for _ in one.validation())
    assert not list(space.folder.glob(".scratch-*"))


def test_rare_classes_keep_their_nodes_and_notes_count_rows():
    assert fair_sizes([1000, 3, 50], 100) == [49, 3, 48]
    assert fair_sizes([5, 6], 100) == [5, 6]
    task = Natural(train=0.5, val=0.2)(toy(1000, 2000, 4, 3), seed=0)
    nodes = sample_nodes(task, 0, train=90, val=90)
    assert torch.equal(nodes, nodes.unique())
    part = select_nodes(task, nodes)
    assert (int(part.train.sum()), int(part.val.sum())) == (90, 90)
    assert len(nodes) == 180
    assert torch.equal(part.graph.y, task.graph.y[nodes])
    plan = RowPlan.of(task, room=400, epochs=10, drawn=(100, 10), validated=50, seed=0)
    assert plan_note(task, plan) == (
        "Rows from disk, in 2 shards: all 500 training nodes, 50 of 199 validation nodes, "
        "100 of 500 others. Epochs draw no more than these."
    )
