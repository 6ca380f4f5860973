"""Groups of nodes that are alike."""

import torch

from evengraph.desk import evidence as module
from evengraph.desk.evidence import Clusters, find_clusters

TWO = torch.cat([torch.zeros(12, 2), torch.full((8, 2), 9.0)]) + torch.arange(20)[:, None] / 100


def test_two_groups_are_found_and_their_middle_is_most_typical():
    clusters = find_clusters(TWO)
    assert clusters.number == 2
    assert sorted(clusters.sizes(torch.ones(20, dtype=torch.bool)).tolist()) == [8, 12]
    first = clusters.typical[:12]
    assert first.argmax() in (5, 6)
    assert ((clusters.typical > 0) & (clusters.typical <= 1)).all()


def test_a_sample_bounds_the_number_of_clusters(monkeypatch):
    monkeypatch.setattr(module, "SAMPLE", 50)
    rows = torch.randn(300, 2, generator=torch.Generator().manual_seed(0))
    assert find_clusters(rows, 120).number == 5


def test_equal_rows_and_few_rows_are_one_cluster():
    for size in (1, 5, 30):
        clusters = find_clusters(torch.ones(size, 3))
        assert clusters.typical.isfinite().all()
        assert len(clusters.of) == size


def test_turns_count_the_more_typical_of_a_cluster():
    clusters = Clusters(
        torch.tensor([0, 0, 1, 0]), torch.tensor([0.2, 0.9, 0.5, 0.4]), torch.zeros(2, 1)
    )
    everyone = torch.ones(4, dtype=torch.bool)
    assert clusters.turns(everyone).tolist() == [2, 0, 0, 1]
    without = torch.tensor([True, False, True, True])
    assert clusters.turns(without)[[0, 2, 3]].tolist() == [1, 0, 0]
