"""GraphSHA: hard pairs by hand and by their laws, neighbours from walks, and plain where equal."""

import pytest
import torch
from oracles import dense_graph, labelled, task_with

from evengraph.core.rng import seeded
from evengraph.methods import GraphSHA, graphsha
from evengraph.methods.graphsha import hard_pairs, lacking
from small_graphs import check_law, dense_symmetric, small_task

# How many.


@pytest.mark.parametrize(
    ("counts", "fill", "wanted"),
    [
        ([20, 20, 2], False, [0, 0, 12]),
        ([20, 20, 2], True, [0, 0, 18]),
        ([5, 4, 4], False, [0, 0, 0]),  # a third of a node is none
        ([7, 7], True, [0, 0]),
        ([9, 1], False, [0, 4]),
    ],
)
def test_classes_reach_the_mean_or_the_largest(counts, fill, wanted):
    assert lacking(torch.tensor(counts), fill=fill).tolist() == wanted


# Whom. Of class 2, the rare one, node 4 is known and node 5 is taken for class 1.

LABELS = torch.tensor([0, 0, 1, 1, 2, 2])
PROBABILITIES = torch.tensor(
    [
        [0.9, 0.0, 0.1],
        [0.7, 0.0, 0.3],
        [0.0, 0.8, 0.2],
        [0.0, 0.2, 0.8],
        [0.0, 0.0, 1.0],
        [0.25, 0.75, 0.0],
    ]
)


def pairs(count=4000, beta=100.0):
    with seeded(0):
        return hard_pairs(PROBABILITIES, LABELS, torch.tensor([0, 0, count]), beta)


def test_an_anchor_is_one_that_is_not_recognised():
    assert set(pairs().sources.tolist()) == {5}
    assert (pairs().labels == 2).all()


def test_a_partner_is_of_the_class_that_the_anchor_is_taken_for():
    targets = pairs().targets
    found = torch.bincount(targets, minlength=6).tolist()
    # class 0 by a quarter, its nodes 1 to 3; class 1 by three quarters, its nodes 1 to 4
    check_law(found, [0.25 / 4, 0.75 / 4, 0.75 / 5, 0.6, 0, 0])


def test_features_are_nearly_the_partners():
    shares = pairs().shares.double()
    assert ((shares >= 0) & (shares <= 1)).all()
    assert shares.mean().item() == pytest.approx(1 / 101, rel=0.1)
    even = pairs(beta=1.0).shares.double()
    assert even.mean().item() == pytest.approx(0.5, abs=0.03)
    assert even.var().item() == pytest.approx(1 / 12, abs=0.01)


def test_where_all_are_recognised_anybody_is_an_anchor():
    certain = torch.eye(3)[LABELS]
    with seeded(0):
        found = hard_pairs(certain, LABELS, torch.tensor([0, 0, 1000]), 100.0)
    check_law(torch.bincount(found.sources, minlength=6).tolist()[4:], [0.5, 0.5])
    assert (LABELS[found.targets] != 2).all()


def test_nobody_is_wanted():
    found = hard_pairs(PROBABILITIES, LABELS, torch.zeros(3, dtype=torch.long), 1.0)
    assert [part.numel() for part in found] == [0] * 4


# Neighbours.


def test_neighbours_are_drawn_from_the_walk_of_the_anchor():
    task = task_with(9, 8, 2)
    nodes, _ = labelled(task)
    method = GraphSHA(warmup=0, reach=5, teleport=0.2)
    make = method._maker(task)
    with seeded(0):
        make(None)
        drawn = [make(torch.zeros(19, 3)) for _ in range(60)]
    matrix = dense_symmetric(dense_graph(task.graph))
    walk = torch.linalg.inv(torch.eye(150, dtype=torch.float64) - 0.8 * matrix)
    degrees = dense_graph(task.graph).sum(1)
    for found, new, ends in drawn:
        anchors = nodes[found.sources]
        assert (torch.bincount(new, minlength=4) <= degrees[anchors]).all()
        for place, node in zip(new.tolist(), ends.tolist(), strict=True):
            assert node in walk[anchors[place]].topk(5).indices.tolist()


def test_warm_up_copies_the_neighbours_of_the_source():
    task = task_with(9, 8, 2)
    nodes, _ = labelled(task)
    found, new, ends = GraphSHA(warmup=3)._maker(task)(torch.zeros(19, 3))
    assert torch.bincount(found.labels, minlength=3).tolist() == [0, 1, 7]
    adjacency = dense_graph(task.graph)
    for place, source in enumerate(nodes[found.sources].tolist()):
        expected = adjacency[source].nonzero().flatten().tolist()
        assert sorted(ends[new == place].tolist()) == expected


# All of it.


def test_logits_of_the_epoch_before_choose(monkeypatch):
    seen = []

    def spy(probabilities, *rest):
        seen.append(probabilities)
        return hard_pairs(probabilities, *rest)

    monkeypatch.setattr(graphsha, "hard_pairs", spy)
    GraphSHA(max_epochs=5, warmup=1).fit(small_task(), seed=0)
    assert len(seen) == 4  # epochs 2 to 5
    assert all(one.shape == (22, 3) for one in seen)
    assert not torch.equal(seen[0], seen[1])
