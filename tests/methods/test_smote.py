"""SMOTE: where its new nodes lie, whom they are linked to, and over-sampling as a special case."""

import pytest
import torch
from oracles import as_dense, labelled, task_with

from evengraph.core.rng import seeded
from evengraph.methods import SMOTE, Oversampling
from evengraph.methods.bases.network import EnlargedGraph
from small_graphs import graph_of, normal, task_of


def dense_features(task):
    """The same task with features that have no zeros, all in general position."""
    task.graph.x = normal(task.graph.num_nodes, 4, dtype=torch.float32)
    return task


def enlarged(task, kind=SMOTE, seed=3, **fields):
    method = kind(**fields)
    with seeded(seed):
        return EnlargedGraph.of(task, method.copies, method.minority, method._new_features)


def new_nodes(task, seed=3, **fields):
    return enlarged(task, seed=seed, **fields).new


def shares(new, start, end):
    """How far on the way each new node lies; it must lie on it."""
    way = end - start
    share = ((new - start) * way).sum(1) / way.square().sum(1)
    torch.testing.assert_close(new, start + share.unsqueeze(1) * way, rtol=1e-4, atol=1e-5)
    assert ((share >= 0) & (share <= 1)).all()
    return share


def pair_shares(**fields):
    """Of a class of two: each goes towards the other."""
    task = dense_features(task_with(6, 6, 2))
    nodes, labels = labelled(task)
    new = new_nodes(task, **fields)
    pair = task.graph.x[nodes[labels == 2]]
    times = new.shape[0] // 2
    return shares(new, pair.repeat(times, 1), pair.flip(0).repeat(times, 1))


def test_two_nodes_go_towards_each_other_equally_far():
    one, other = pair_shares()
    assert one.item() == pytest.approx(other.item(), abs=1e-5)


def test_another_round_of_copies_goes_another_way():
    drawn = pair_shares(copies=3)
    assert drawn[::2].tolist() == pytest.approx(drawn[1::2].tolist(), abs=1e-5)
    assert drawn[::2].diff().abs().min() > 1e-3


def test_another_seed_goes_another_way():
    drawn = torch.cat([pair_shares(seed=seed) for seed in range(40)])
    assert drawn.min() < 0.2
    assert drawn.max() > 0.8
    assert drawn.mean().item() == pytest.approx(0.5, abs=0.15)


def test_where_sound_every_node_draws_for_itself():
    drawn = pair_shares(copies=3, sound=True).sort().values
    assert drawn.diff().min() > 1e-3


def test_every_class_draws_for_itself():
    task = dense_features(task_with(6, 2, 6, 2))
    nodes, labels = labelled(task)
    new = new_nodes(task)
    drawn = []
    for label, rows in ((1, new[:2]), (3, new[2:])):
        pair = task.graph.x[nodes[labels == label]]
        drawn.append(shares(rows, pair, pair.flip(0))[0])
    assert (drawn[0] - drawn[1]).abs() > 1e-3


def test_the_nearest_of_the_class_is_what_it_goes_towards():
    # the class at 0, 1 and 5, another one in between
    x = torch.tensor([[0.0], [1], [5], [0.1], [0.9], [4.9], [5.1], [0.5], [9], [9], [8], [7]])
    y = [1, 1, 1] + [0] * 8 + [1]
    task = task_of(graph_of(x, [], y), range(11), [11])
    assert task.class_counts.tolist() == [8, 3]
    one, two, three = new_nodes(task, minority=1).flatten().tolist()
    share = one
    assert 0 < share < 1
    assert two == pytest.approx(1 - share, abs=1e-5)
    assert three == pytest.approx(5 - 4 * share, abs=1e-5)


@pytest.mark.parametrize("sound", [False, True])
def test_links_are_those_of_the_seed(sound):
    task = dense_features(task_with(6, 6, 2))
    ours, copied = (enlarged(task, kind, sound=sound, copies=2) for kind in (SMOTE, Oversampling))
    one, other = (as_dense(copies.normalised(task.graph, "row")) for copies in (ours, copied))
    assert torch.equal(one, other)
    assert not torch.equal(ours.new, copied.new)
