"""Edge scores against their formula, and the loss on random pairs against that on all pairs."""

import math

import pytest
import torch

from evengraph.core.rng import seeded
from evengraph.nn.networks import EdgeDecoder, Reconstruction
from evengraph.ops.sparse import undirected_adjacency
from small_graphs import dense_adjacency, edges, normal, random_edges

CPU = torch.device("cpu")
NUM_NODES = 14
EDGES = random_edges(NUM_NODES, 16, seed=3)


def decoder(width=3):
    torch.manual_seed(0)
    return EdgeDecoder(width).double()


def closed_adjacency():
    return dense_adjacency(EDGES, NUM_NODES, undirected=True) + torch.eye(NUM_NODES)


def reconstruction(**limits):
    return Reconstruction(undirected_adjacency(EDGES, NUM_NODES), CPU, **limits)


def exact(scorer, embeddings):
    """The weighted squared errors of all pairs, every node joined to itself."""
    closed = closed_adjacency()
    turned = embeddings @ scorer.weight
    scores = (turned @ turned.t()).sigmoid()
    size = closed.sum()
    weight = torch.where(closed > 0, 1.0, size / (closed.numel() - size))
    return (weight * (scores - closed).square()).sum()


def test_scores_equal_the_formula():
    scorer = decoder()
    one, other = normal(5, 3), normal(5, 3, seed=1)
    weight = scorer.weight.tolist()
    expected = []
    for left, right in zip(one.tolist(), other.tolist(), strict=True):
        turned = [
            [sum(v * weight[i][j] for i, v in enumerate(row)) for j in range(3)]
            for row in (left, right)
        ]
        product = sum(a * b for a, b in zip(*turned, strict=True))
        expected.append(1 / (1 + math.exp(-product)))
    assert scorer(one, other).tolist() == pytest.approx(expected)


def test_scores_among_nodes_are_those_of_their_rows():
    scorer, embeddings = decoder(), normal(6, 3).requires_grad_()
    sources, targets = torch.tensor([0, 5, 2, 2]), torch.tensor([0, 1, 4, 4])
    ours = scorer.among(embeddings, sources, targets)
    theirs = scorer(embeddings[sources], embeddings[targets])
    torch.testing.assert_close(ours, theirs)
    over, upstream = [embeddings, scorer.weight], normal(4, seed=2)
    torch.testing.assert_close(
        torch.autograd.grad(ours, over, upstream), torch.autograd.grad(theirs, over, upstream)
    )
    nobody = torch.zeros(0, dtype=torch.long)
    assert scorer.among(embeddings, nobody, nobody).shape == (0,)


def test_weights_start_uniform():
    torch.manual_seed(0)
    weight = EdgeDecoder(64).weight
    assert weight.shape == (64, 64)
    assert 0.124 < weight.abs().max() <= 0.125
    assert weight.mean().abs() < 0.01


def test_edges_are_those_of_the_graph_and_the_loops():
    pairs = reconstruction().edges
    closed = torch.zeros(NUM_NODES, NUM_NODES)
    closed[pairs // NUM_NODES, pairs % NUM_NODES] = 1
    assert torch.equal(closed, closed_adjacency().float())
    assert pairs.numel() == int(closed.sum())


@pytest.mark.parametrize("limit", [2**17, 20])
def test_random_pairs_are_edges_and_others(limit):
    loss = reconstruction(limit=limit)
    closed = closed_adjacency().flatten()
    seen = torch.zeros(2, NUM_NODES**2, dtype=torch.bool)
    expected = min(limit, int(closed.sum()))
    with seeded(0):
        for _ in range(100):
            drawn, others, is_other = loss._draw()
            assert drawn.shape == others.shape == (expected,)
            assert (closed[drawn] == 1).all()
            assert torch.equal(is_other, closed[others] == 0)
            seen[0, drawn] = True
            seen[1, others] = True
    assert torch.equal(seen[0], closed == 1)
    assert seen[1].all()


@pytest.mark.parametrize("limit", [2**17, 20])
def test_right_on_average(limit):
    scorer = decoder()
    embeddings = 1.5 * normal(NUM_NODES, 3, seed=4)
    loss = reconstruction(limit=limit)
    assert (loss.edges.numel() > limit) == (limit == 20)
    with seeded(0), torch.no_grad():
        values = torch.stack([loss(scorer, embeddings) for _ in range(3000)])
        wanted = exact(scorer, embeddings)
    assert values.std() > 0
    assert abs(values.mean() - wanted) < 4 * values.std() / 3000**0.5
    assert 4 * values.std() / 3000**0.5 < 0.02 * wanted


def test_gradient_is_right_on_average():
    scorer = decoder()
    embeddings = normal(NUM_NODES, 3, seed=4).requires_grad_()
    loss, over = reconstruction(), [scorer.weight, embeddings]
    wanted = torch.cat(
        [part.flatten() for part in torch.autograd.grad(exact(scorer, embeddings), over)]
    )
    with seeded(0):
        found = torch.stack(
            [
                torch.cat(
                    [part.flatten() for part in torch.autograd.grad(loss(scorer, embeddings), over)]
                )
                for _ in range(1000)
            ]
        )
    assert ((found.mean(0) - wanted).abs() < 5 * found.std(0) / 1000**0.5).all()


def test_all_edges_count_when_they_are_within_the_limit():
    loss = reconstruction()
    drawn, _, _ = loss._draw()
    assert torch.equal(drawn, loss.edges)
    drawn, _, _ = reconstruction(limit=loss.edges.numel())._draw()
    assert torch.equal(drawn, loss.edges)


@pytest.mark.parametrize("num_nodes", [1, 2, 5])
def test_a_complete_graph_has_only_edges_to_miss(num_nodes):
    pairs = [(i, j) for i in range(num_nodes) for j in range(num_nodes)]
    loss = Reconstruction(undirected_adjacency(edges(pairs), num_nodes), CPU)
    scorer, embeddings = decoder(), normal(num_nodes, 3).requires_grad_()
    value = loss(scorer, embeddings)
    turned = embeddings @ scorer.weight
    torch.testing.assert_close(value, (1 - (turned @ turned.t()).sigmoid()).square().sum())
    (gradient,) = torch.autograd.grad(value, embeddings)
    assert torch.isfinite(gradient).all()
