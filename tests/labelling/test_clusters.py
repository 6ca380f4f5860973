"""Groups of nodes that are alike."""

import torch

from evengraph.labelling.clusters import find_clusters

TWO = torch.cat([torch.zeros(12, 2), torch.full((8, 2), 9.0)]) + torch.arange(20)[:, None] / 100


def test_two_groups_are_found_and_their_middle_is_most_typical():
    clusters = find_clusters(TWO)
    assert clusters.number == 2
    assert sorted(clusters.sizes(torch.ones(20, dtype=torch.bool)).tolist()) == [8, 12]
    first = clusters.typical[:12]
    assert first.argmax() in (5, 6)
    assert ((clusters.typical > 0) & (clusters.typical <= 1)).all()


def test_equal_rows_and_few_rows_are_one_cluster():
    for size in (1, 5, 30):
        clusters = find_clusters(torch.ones(size, 3))
        assert clusters.typical.isfinite().all()
        assert len(clusters.of) == size
