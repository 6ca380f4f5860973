"""Strategies, on evidence made by hand."""

from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

from evengraph.datasets import toy
from evengraph.desk.evidence import find_clusters
from evengraph.desk.strategies import (
    STRATEGIES,
    combined,
    coverage,
    novelty,
    ranks,
    rare,
    representative,
)
from evengraph.desk.suggestions import Pool, choose_nodes, gather


@pytest.fixture(scope="module")
def evidence():
    pool = Pool.open(toy(200, 1000, 30, 3))
    labels = torch.where(torch.arange(200) % 10 == 0, pool.labels, -1)
    return gather(pool, labels)


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_gives_each_node_a_finite_score_and_the_same_twice(evidence, name):
    scores = STRATEGIES[name].score(evidence)
    assert scores.shape == (200,)
    assert scores.isfinite().all()
    assert torch.equal(scores, STRATEGIES[name].score(evidence))


def test_uncertainty_prefers_the_smallest_gap(evidence):
    top = evidence.probabilities.topk(2, dim=1).values
    gap = top[:, 0] - top[:, 1]
    assert STRATEGIES["uncertainty"].score(evidence).argmax() == gap.argmin()


def test_reach_prefers_the_middle_of_a_star_and_falls_near_labels():
    star = torch.tensor([[0] * 6, list(range(1, 7))])
    path = torch.tensor([[7, 8], [8, 9]])
    edge_index = torch.cat([star, path], dim=1)
    graph = Data(x=torch.eye(10), edge_index=torch.cat([edge_index, edge_index.flip(0)], dim=1))
    pool = Pool.open(graph)
    cold = STRATEGIES["reach"].score(gather(pool))
    assert cold.argmax() == 0
    named = replace(pool, class_names=("a",), labels=torch.where(torch.arange(10) == 0, 0, -1))
    warm = STRATEGIES["reach"].score(gather(named))
    assert warm[1] < warm[8]
    assert cold[1] - warm[1] > cold[7] - warm[7]


def test_rare_counts_a_label_for_more_where_there_are_few():
    pool = Pool.open(toy(20, 40, 5, 2))
    labels = torch.tensor([0, 0, 0, 1] + [-1] * 16)
    predicted = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.4, 0.6]] + [[0.5, 0.5]] * 17)
    found = rare(replace(gather(pool, labels), probabilities=predicted))
    shares = predicted.mean(0)
    assert found[0] == pytest.approx(0.25 / (4 / 6 * shares[0]))
    assert found[1] == pytest.approx(0.25 / (2 / 6 * shares[1]))
    assert found.argmax() == 2  # probably rare, and not certain


def test_rare_counts_a_label_for_more_where_there_are_few_nodes():
    pool = Pool.open(toy(20, 40, 5, 2))
    labels = torch.tensor([0, 1] + [-1] * 18)
    predicted = torch.tensor([[0.0, 1.0]] * 2 + [[1.0, 0.0]] * 18)
    found = rare(replace(gather(pool, labels), probabilities=predicted))
    assert found[0] == pytest.approx(9 * found[19])


def groups(evidence, sizes):
    """Evidence with rows in groups far from one another."""
    rows = torch.repeat_interleave(10.0 * torch.arange(len(sizes)), torch.tensor(sizes))
    rows = rows[:, None] + torch.arange(len(rows))[:, None] % 7 / 10
    return replace(evidence, rows=rows, clusters=find_clusters(rows))


def test_representative_prefers_the_largest_group_that_is_like_no_label(monkeypatch):
    pool = Pool.open(toy(100, 200, 5, 2))
    cold = groups(gather(pool, torch.full((100,), -1)), [50, 30, 20])
    assert representative(cold).argmax() < 50
    labels = torch.where(torch.arange(100) < 7, 0, -1)
    some = representative(replace(cold, labels=labels))
    assert 50 <= some.argmax() < 80
    monkeypatch.setattr("evengraph.desk.strategies.BLOCK", 3)
    assert torch.allclose(representative(replace(cold, labels=labels)), some, atol=1e-3)
    sure = torch.tensor([[1.0, 0.0]] * 80 + [[0.5, 0.5]] * 20)
    assert representative(replace(cold, labels=labels, probabilities=sure)).argmax() >= 80


def test_novelty_is_for_groups_unlike_every_label_not_for_single_outliers():
    groups = [torch.zeros(15, 1), torch.full((14, 1), 5.0), torch.full((1, 1), 8.0)]
    rows = torch.cat(groups) + torch.arange(30)[:, None] / 1000
    pool = Pool.open(toy(30, 60, 5, 2))
    evidence = gather(pool, torch.where(torch.arange(30) < 2, pool.labels, -1))
    scores = novelty(replace(evidence, rows=rows, clusters=find_clusters(rows)))
    assert 15 <= scores.argmax() < 29


def test_the_default_needs_no_model(evidence):
    cold = replace(evidence, probabilities=None)
    assert combined(cold).isfinite().all()
    assert not torch.equal(combined(cold), combined(evidence))


def test_ranks_count_lower_candidates():
    scores, candidates = torch.tensor([5.0, 1, 3, 3]), torch.tensor([True, True, True, False])
    assert torch.allclose(ranks(scores, candidates), torch.tensor([2 / 3, 0, 1 / 3, 1 / 3]))


def test_a_group_unlike_every_label_is_offered_even_if_the_model_is_sure():
    groups = [torch.zeros(40, 1), torch.full((40, 1), 1.0), torch.full((20, 1), 30.0)]
    rows = torch.cat(groups) + torch.arange(100)[:, None] / 1000
    pool = Pool.open(toy(100, 200, 5, 2))
    labels = torch.where(torch.arange(100) % 20 == 0, (torch.arange(100) >= 40).long(), -1)
    labels[80:] = -1
    sure = torch.tensor([[0.4, 0.6]] * 80 + [[0.0, 1.0]] * 20)
    evidence = replace(
        gather(pool, labels), rows=rows, clusters=find_clusters(rows), probabilities=sure
    )
    assert int(combined(evidence).argmax()) >= 80


def test_coverage_takes_one_of_every_cluster_first(evidence):
    clusters = evidence.clusters
    best = coverage(evidence)[evidence.candidates].topk(3).indices
    groups = clusters.of[evidence.candidates.nonzero().squeeze(1)[best]]
    assert len(groups.unique()) == 3


def test_without_a_model_every_group_gets_a_node_before_one_gets_two():
    rows = torch.repeat_interleave(10.0 * torch.arange(4), torch.tensor([55, 15, 15, 15]))[:, None]
    rows = rows + torch.arange(100)[:, None] / 1000
    pool = Pool.open(toy(100, 400, 5, 2))
    cold = replace(
        gather(pool, torch.full((100,), -1), budget=4), rows=rows, clusters=find_clusters(rows)
    )
    groups = (rows[choose_nodes(cold)[0]] / 10).round().squeeze(1)
    assert sorted(groups.tolist()) == [0, 1, 2, 3]
