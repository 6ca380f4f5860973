"""Strategies on evidence made by hand, and reasons in words."""

from dataclasses import replace
from math import ceil
from types import SimpleNamespace

import pytest
import torch
from torch_geometric.data import Data

from evengraph.datasets import toy
from evengraph.desk.strategies import (
    LARGEST,
    OF_MODELS,
    PART,
    TIMES,
    WEIGHTS,
    Clusters,
    combined,
    coverage,
    find_clusters,
    find_hunt,
    new_class,
    novelty,
    random_scores,
    ranks,
    rare,
    reach,
    reasons,
    representative,
    uncertainty,
    unlike_labels,
)
from evengraph.desk.suggestions import Pool, choose_nodes, gather


@pytest.fixture(scope="module")
def evidence():
    pool = Pool.open(toy(200, 1000, 30, 3))
    labels = torch.where(torch.arange(200) % 10 == 0, pool.labels, -1)
    return gather(pool, labels)


@pytest.mark.parametrize("score", [combined, random_scores, *WEIGHTS])
def test_every_node_has_a_finite_score_and_the_same_twice(evidence, score):
    scores = score(evidence)
    assert scores.shape == (200,)
    assert scores.isfinite().all()
    assert torch.equal(scores, score(evidence))
    if score not in OF_MODELS:
        assert score(replace(evidence, probabilities=None)).isfinite().all()


def test_uncertainty_prefers_the_smallest_gap(evidence):
    top = evidence.probabilities.topk(2, dim=1).values
    gap = top[:, 0] - top[:, 1]
    assert uncertainty(evidence).argmax() == gap.argmin()


def test_reach_prefers_the_middle_of_a_star_and_falls_near_labels():
    star = torch.tensor([[0] * 6, list(range(1, 7))])
    path = torch.tensor([[7, 8], [8, 9]])
    edge_index = torch.cat([star, path], dim=1)
    graph = Data(x=torch.eye(10), edge_index=torch.cat([edge_index, edge_index.flip(0)], dim=1))
    pool = Pool.open(graph)
    cold = reach(gather(pool))
    assert cold.argmax() == 0
    named = replace(pool, class_names=("a",), labels=torch.where(torch.arange(10) == 0, 0, -1))
    warm = reach(gather(named))
    assert warm[1] < warm[8]
    assert cold[1] - warm[1] > cold[7] - warm[7]


def test_rare_counts_a_label_for_more_where_there_are_few_labels_or_nodes():
    pool = Pool.open(toy(20, 40, 5, 2))
    labels = torch.tensor([0, 0, 0, 1] + [-1] * 16)
    predicted = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.4, 0.6]] + [[0.5, 0.5]] * 17)
    found = rare(replace(gather(pool, labels), probabilities=predicted))
    shares = predicted.mean(0)
    assert found[0] == pytest.approx(0.25 / (4 / 6 * shares[0]))
    assert found[1] == pytest.approx(0.25 / (2 / 6 * shares[1]))
    assert found.argmax() == 2  # probably rare, and not certain
    predicted = torch.tensor([[0.0, 1.0]] * 2 + [[1.0, 0.0]] * 18)
    found = rare(replace(gather(pool, torch.tensor([0, 1] + [-1] * 18)), probabilities=predicted))
    assert found[0] == pytest.approx(9 * found[19])


def placed(evidence, rows, **changes):
    """Evidence whose nodes lie elsewhere."""
    return replace(evidence, rows=rows, clusters=find_clusters(rows), **changes)


def test_representative_prefers_the_largest_group_that_is_like_no_label(monkeypatch):
    pool = Pool.open(toy(100, 200, 5, 2))
    rows = torch.repeat_interleave(10.0 * torch.arange(3), torch.tensor([50, 30, 20]))[:, None]
    rows = rows + torch.arange(100)[:, None] % 7 / 10
    cold = placed(gather(pool, torch.full((100,), -1)), rows)
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
    pool = Pool.open(toy(30, 60, 5, 2))
    evidence = gather(pool, torch.where(torch.arange(30) < 2, pool.labels, -1))
    found = novelty(placed(evidence, torch.cat(groups) + torch.arange(30)[:, None] / 1000))
    assert 15 <= found.argmax() < 29


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
    assert int(combined(placed(gather(pool, labels), rows, probabilities=sure)).argmax()) >= 80


def test_coverage_takes_one_of_every_cluster_first(evidence):
    clusters = evidence.clusters
    best = coverage(evidence)[evidence.candidates].topk(3).indices
    groups = clusters.of[evidence.candidates.nonzero().squeeze(1)[best]]
    assert len(groups.unique()) == 3


def test_without_a_model_every_group_gets_a_node_before_one_gets_two():
    rows = torch.repeat_interleave(10.0 * torch.arange(4), torch.tensor([55, 15, 15, 15]))[:, None]
    rows = rows + torch.arange(100)[:, None] / 1000
    pool = Pool.open(toy(100, 400, 5, 2))
    cold = placed(gather(pool, torch.full((100,), -1), budget=4), rows)
    groups = (rows[choose_nodes(cold)[0]] / 10).round().squeeze(1)
    assert sorted(groups.tolist()) == [0, 1, 2, 3]


TWO = torch.cat([torch.zeros(12, 2), torch.full((8, 2), 9.0)]) + torch.arange(20)[:, None] / 100


def test_groups_are_found_and_their_middle_is_most_typical(monkeypatch):
    clusters = find_clusters(TWO)
    assert sorted(clusters.sizes(torch.ones(20, dtype=torch.bool)).tolist()) == [8, 12]
    assert clusters.typical[:12].argmax() in (5, 6)
    assert ((clusters.typical > 0) & (clusters.typical <= 1)).all()
    for size in (1, 5, 30):  # equal rows
        assert find_clusters(torch.ones(size, 3)).typical.isfinite().sum() == size
    monkeypatch.setattr("evengraph.desk.strategies.CLUSTERED", 50)  # a sample bounds their number
    rows = torch.randn(300, 2, generator=torch.Generator().manual_seed(0))
    assert len(find_clusters(rows, 120).means) == 5


def test_turns_count_the_more_typical_of_a_cluster():
    clusters = Clusters(
        torch.tensor([0, 0, 1, 0]), torch.tensor([0.2, 0.9, 0.5, 0.4]), torch.zeros(2, 1)
    )
    everyone = torch.ones(4, dtype=torch.bool)
    assert clusters.turns(everyone).tolist() == [2, 0, 0, 1]
    without = torch.tensor([True, False, True, True])
    assert clusters.turns(without)[[0, 2, 3]].tolist() == [1, 0, 0]


def test_a_class_that_the_model_does_not_know_has_no_probability():
    method = SimpleNamespace(predict_proba=lambda graph: torch.full((20, 1), 0.75))
    pool = replace(Pool.open(toy(20, 40, 5, 2)), method=method)  # which knows the first class
    assert gather(pool, torch.full((20,), -1)).probabilities[3].tolist() == [0.75, 0.0]


def along_a_line(*places):
    """Evidence on groups of ten nodes along a line; only the first has a label."""
    found = gather(Pool.open(toy(10 * len(places), 40, 5, 2)), torch.tensor([0] + [-1] * 59))
    means = torch.tensor(places).unsqueeze(1)
    of = torch.arange(len(places)).repeat_interleave(10)
    return replace(found, rows=means[of], clusters=Clusters(of, torch.ones(len(of)), means))


@pytest.mark.parametrize("last", [14.0, 50.0])
def test_only_a_group_far_from_where_most_are_may_be_a_new_class(last):
    evidence = along_a_line(0.0, 10.0, 11.0, 12.0, 13.0, last)
    assert unlike_labels(evidence).sum() == 50  # with one label, far from it is usual
    found = new_class(evidence).nonzero().squeeze(1).tolist()
    assert found == (list(range(50, 60)) if last == 50 else [])


def sure(shares, labelled, budget=10):
    """100 nodes of which the model is sure; the first of each class have labels."""
    predicted = torch.repeat_interleave(torch.arange(len(shares)), torch.tensor(shares))
    labels = torch.full((100,), -1)
    for label, count in enumerate(labelled):
        labels[(predicted == label).nonzero().squeeze(1)[:count]] = label
    pool = replace(Pool.open(toy(100, 400, 10, 2)), class_names=tuple("abcd"[: len(shares)]))
    probabilities = torch.eye(len(shares))[predicted]
    return replace(gather(pool, labels, budget=budget), probabilities=probabilities)


@pytest.mark.parametrize(
    ("shares", "labelled", "expected"),
    [
        ([70, 20, 10], [2, 3, 5], (2, 2)),  # a third of 20 labels, rounded up, less five
        ([40, 40, 20], [6, 6, 10], (2, ceil(TIMES * 0.2 * 32) - 10)),  # twice its share of nodes
        ([60, 40], [9, 13], (1, LARGEST * 32 - 13)),  # but at most half
        ([60, 40], [20, 1], (1, PART)),  # other classes keep a part of the batch
        ([65, 25, 10], [2, 2, 10], (1, 3)),  # of the rarest none is left
        ([50, 50], [9, 1], None),
        ([52, 48], [9, 1], None),
        ([90, 10], [9, 0], None),
    ],
)
def test_the_rarest_class_gets_an_equal_share_of_the_labels(shares, labelled, expected):
    evidence = sure(shares, labelled)
    hunt = find_hunt(evidence)
    assert (None if hunt is None else (hunt.label, hunt.number)) == expected
    if hunt is not None:
        assert int(hunt.likely.sum()) == shares[hunt.label] - labelled[hunt.label]
    assert find_hunt(replace(evidence, probabilities=None)) is None


def test_the_default_offers_likely_nodes_of_the_rarest_class_first_and_says_so():
    found = sure([80, 20], [20, 6])
    nodes, _ = choose_nodes(found)
    assert len(set(nodes.tolist())) == 10
    assert (nodes[:3] >= 80).all()  # the part that may be hunted
    texts = reasons(found, nodes, ("honest", "fraud"))
    assert texts[0].startswith("likely fraud (100%), the rarest class")
    assert not any("rarest" in text for text, node in zip(texts, nodes, strict=True) if node < 80)


@pytest.mark.parametrize(("size", "expected"), [(12, [0.99, 0.8, 0.7]), (30, None)])
def test_of_a_scarce_class_the_most_probable_come_first(size, expected):
    """Between the classes by a model that balances them, hardly any node is of the scarce one."""
    evidence = sure([100 - size, size], [20, 2])
    odds = torch.full((size,), 0.55)
    odds[[4, 7, 9]] = torch.tensor([0.7, 0.99, 0.8])
    found = evidence.probabilities.clone()
    found[100 - size :] = torch.stack([1 - odds, odds], 1)
    evidence = replace(evidence, probabilities=found)
    assert find_hunt(evidence).surest is (expected is not None)
    first = found[choose_nodes(evidence)[0][:3], 1].tolist()
    assert first == pytest.approx(expected) if expected else 0.99 not in first


@pytest.mark.parametrize("budget", [1, 2, 5, 10])
def test_the_part_is_the_same_however_batches_are_cut(budget):
    numbers = [
        find_hunt(sure([70, 30], [20 + known, 1], budget)).number for known in range(0, 20, budget)
    ]
    assert sum(numbers) == 2 * PART


@pytest.mark.parametrize(
    ("labelled", "budget", "number"), [([20, 6], 1, 1), ([79, 2], 60, 19), ([4, 16], 10, 10)]
)
def test_as_many_as_the_budget_or_the_candidates(labelled, budget, number):
    nodes = choose_nodes(sure([80, 20], labelled, budget))[0].tolist()
    assert len(set(nodes)) == len(nodes) == number


def test_reasons_say_what_the_model_predicts():
    pool = Pool.open(toy(20, 40, 5, 2))
    found = gather(pool, torch.where(torch.arange(20) < 2, pool.labels, -1))
    predicted = torch.tensor([[0.9, 0.1], [0.52, 0.48]] + [[0.5, 0.5]] * 18)
    texts = reasons(replace(found, probabilities=predicted), torch.tensor([0, 1]), ("ham", "spam"))
    assert texts[0].startswith("likely ham")
    assert texts[1].startswith("ham or spam")
