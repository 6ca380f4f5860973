"""From each cluster's sum to its nodes: (sum of the cluster + the row) * the cluster's share."""

import pytest
import torch

pytest.importorskip("triton")

from evengraph.core.rng import generator
from evengraph.fast.triton_kernels import gather_cluster_sums
from evengraph.ops.semantic import prepare_clusters
from kernel_inputs import DEVICE, assert_same, is_untouched, on_device, poisoned, surrounded
from small_graphs import dense_semantic, dense_symmetric, normal

NODES, CLUSTERS = 37, 5  # more than two blocks of rows


def inputs(width, dtype=torch.float32):
    sums = on_device(CLUSTERS, width, seed=1, dtype=dtype)
    assignment = torch.randint(CLUSTERS, (NODES,), generator=generator(0)).to(DEVICE)
    share = 0.1 + torch.arange(CLUSTERS, dtype=dtype, device=DEVICE).unsqueeze(1)
    return sums, assignment, share


def by_rows(x, sums, assignment, share):
    x, sums, share = (part.cpu() for part in (x, sums, share))
    rows = zip(x, assignment.tolist(), strict=True)
    return torch.stack([(sums[own] + row) * share[own] for row, own in rows])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 5, 64, 130])
def test_equals_row_by_row(width, dtype):
    x, parts = on_device(NODES, width, dtype=dtype), inputs(width, dtype)
    output = torch.full_like(x, torch.nan)
    assert gather_cluster_sums(x, *parts, output) is output
    assert_same(output, by_rows(x, *parts))


@pytest.mark.parametrize("width", [5, 130])
def test_columns_of_wider_matrices(width):
    x, parts = on_device(NODES, width), inputs(width)
    output, whole = poisoned(NODES, width)
    gather_cluster_sums(surrounded(x)[0], *parts, output)
    assert_same(output, by_rows(x, *parts))
    assert is_untouched(whole)


@pytest.mark.parametrize("width", [5, 130])
@pytest.mark.parametrize("num_chosen", [0, 1, 20, NODES])
def test_fewer_rows_in_their_places(num_chosen, width):
    parts = inputs(width)
    chosen = torch.randperm(NODES, generator=generator(2))[:num_chosen]
    x = normal(num_chosen, width).float()
    positions = torch.full((NODES,), -1, dtype=torch.int32)
    positions[chosen] = torch.arange(num_chosen, dtype=torch.int32)
    every = torch.zeros(NODES, width)
    every[chosen] = x
    output, whole = poisoned(NODES, width)
    gather_cluster_sums(surrounded(x.to(DEVICE))[0], *parts, output, positions.to(DEVICE))
    assert_same(output, by_rows(every, *parts))
    assert is_untouched(whole)


def test_in_place():
    x, parts = on_device(NODES, 6), inputs(6)
    expected = by_rows(x.clone(), *parts)
    assert_same(gather_cluster_sums(x, *parts, x), expected)


def test_with_sums_and_shares_it_propagates():
    x = on_device(NODES, 3, dtype=torch.float64)
    assignment = torch.randint(CLUSTERS, (NODES,), generator=generator(3))
    clusters = prepare_clusters(assignment.to(DEVICE), CLUSTERS, x.dtype)
    sums = clusters.members.to_dense() @ x
    found = gather_cluster_sums(x, sums, clusters.assignment, clusters.share, torch.empty_like(x))
    assert_same(found, dense_symmetric(dense_semantic(assignment)) @ x.cpu())
