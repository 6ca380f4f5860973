"""K-means of several sets at once: for each what k-means of that set alone gives."""

import pytest
import torch

from evengraph.fast.kmeans import batched_kmeans, flatten_clusters
from evengraph.ops.semantic import cluster_means, kmeans, start_seeds
from small_graphs import normal

KS = [3, 7, 5, 7]


def sets(num_rows=60, width=4):
    """Sets of blobs, well apart, so that rounding decides nothing."""
    centres = 10 * normal(len(KS), 8, width, seed=1)
    return centres[:, torch.arange(num_rows) % 8] + normal(len(KS), num_rows, width, seed=2)


def inertia(x, assignment, k):
    means = cluster_means(x, assignment, k)
    return float((x - means[assignment]).square().sum())


def test_from_given_clusters_each_set_goes_its_own_way():
    x = sets()
    start = torch.stack([torch.arange(60) % k for k in KS])
    found = batched_kmeans(x, KS, start=start)
    for one, k, rows, first in zip(found, KS, x, start, strict=True):
        assert torch.equal(one, kmeans(rows, k, seed=0, start=first))


def test_from_nothing_as_good_as_alone():
    x = sets()
    found = batched_kmeans(x, KS, seeds=[4, 5, 6, 7])
    for one, k, rows, seed in zip(found, KS, x, [4, 5, 6, 7], strict=True):
        assert one.unique().tolist() == list(range(k))
        alone = inertia(rows, kmeans(rows, k, seed), k)
        assert inertia(rows, one, k) <= 1.5 * alone


def test_a_set_does_not_depend_on_its_company():
    x = sets()
    together = batched_kmeans(x, KS, seeds=[4, 5, 6, 7])
    alone = batched_kmeans(x[1:2], KS[1:2], seeds=[5])
    assert torch.equal(together[1], alone[0])


@pytest.mark.parametrize("distinct", [1, 2, 5])
def test_no_cluster_stays_empty(distinct):
    x = normal(2, distinct, 3)[:, torch.arange(20) % distinct]
    for one, k in zip(batched_kmeans(x, [6, 3], seeds=[0, 1]), [6, 3], strict=True):
        assert one.unique().tolist() == list(range(k))


def test_clusters_of_all_sets_as_one():
    clusters = torch.tensor([[0, 1, 1], [2, 0, 0]])
    assert flatten_clusters(clusters, 3).tolist() == [0, 1, 1, 5, 3, 3]


def test_distances_in_pieces(monkeypatch):
    x = sets()
    whole = batched_kmeans(x, KS, seeds=[4, 5, 6, 7])
    monkeypatch.setattr("evengraph.fast.kmeans.CHUNK", 100)
    assert torch.equal(batched_kmeans(x, KS, seeds=[4, 5, 6, 7]), whole)


def test_each_set_keeps_its_tightest_start():
    x = normal(len(KS), 60, 4, seed=8)  # without structure, so that starts differ
    seeds, starts = [4, 15, 26, 37], 5
    each = zip(*(start_seeds(seed, starts) for seed in seeds), strict=True)
    rounds = [batched_kmeans(x, KS, seeds=one) for one in each]
    best = batched_kmeans(x, KS, seeds=seeds, starts=starts)
    chosen = set()
    for number, (rows, k) in enumerate(zip(x, KS, strict=True)):
        values = [inertia(rows, one[number], k) for one in rounds]
        assert inertia(rows, best[number], k) == pytest.approx(min(values))
        chosen.add(values.index(min(values)))
    assert len(chosen) > 1  # not one round for all


def test_seeds_of_starts_begin_with_the_seed_and_do_not_overlap():
    one, other = start_seeds(7, 5), start_seeds(8, 5)
    assert (one[0], other[0], start_seeds(7, 1)) == (7, 8, [7])
    assert len({*one, *other}) == 10


def test_given_clusters_are_one_start():
    x = sets()
    start = batched_kmeans(x, KS, seeds=[4, 5, 6, 7])
    expected = batched_kmeans(x, KS, start=start)
    assert torch.equal(batched_kmeans(x, KS, start=start, starts=3), expected)
