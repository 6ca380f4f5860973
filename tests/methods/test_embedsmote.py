"""Embed-SMOTE: its network and its loss against the formulas."""

import pytest
import torch
from oracles import (
    check_losses,
    dense_conv,
    dense_linear,
    dense_propagation,
    first_loss,
    labelled,
    nearest,
    task_with,
)
from torch.nn.functional import cross_entropy

from evengraph.methods import EmbedSMOTE, embedsmote
from small_graphs import small_task

SHARE = 0.3


@pytest.fixture
def one_share(monkeypatch):
    """Every new point lies as far on its way."""
    monkeypatch.setattr(
        embedsmote, "random_shares", lambda copies, *_: torch.full(copies.labels.shape, SHARE)
    )


def dense_embed(net, task, how="row"):
    matrix, hidden = dense_propagation(task.graph, how), task.graph.x
    for conv in net.convs:
        hidden = dense_conv(conv, hidden, matrix)
    return hidden


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize(
    ("how", "backbone"), [("row", "gcn"), ("symmetric", "gcn"), ("row", "sage"), ("row", "gat")]
)
def test_probabilities_equal_the_formula(layers, how, backbone):
    task = small_task()
    fields = {"layers": layers, "normalisation": how, "backbone": backbone}
    method = EmbedSMOTE(hidden=6, max_epochs=3, **fields)
    net = method.fit(task, seed=0).net_
    assert len(net.convs) == layers
    expected = dense_linear(net.linear, dense_embed(net, task, how)).softmax(1)
    values = method.predict_proba(task.graph).double()
    torch.testing.assert_close(values, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("times", [1, 3])
def test_a_single_node_merely_counts_more_often(times):
    task = task_with(6, 6, 1)
    method, loss = first_loss(EmbedSMOTE(copies=times), task)
    nodes, labels = labelled(task)
    logits = dense_linear(method.net_.linear, dense_embed(method.net_, task))[nodes]
    weight = torch.tensor([1.0, 1, 1 + times]).double()
    assert loss == pytest.approx(cross_entropy(logits, labels, weight).item(), rel=1e-5)


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("layers", [1, 2])
def test_new_points_lie_between_and_move_both_ends(one_share, size, layers):
    task = task_with(18, 18, size)
    method = EmbedSMOTE(layers=layers, hidden=8, dropout=0, max_epochs=4)
    nodes, labels = labelled(task)

    def loss(net):
        rows = dense_embed(net, task)[nodes]
        seeds = rows[labels == 2]
        new = (1 - SHARE) * seeds + SHARE * seeds[nearest(seeds.detach())]
        every = torch.cat([labels, torch.full((size,), 2)])
        return cross_entropy(dense_linear(net.linear, torch.cat([rows, new])), every)

    start, _ = first_loss(method, task)
    check_losses(method, task, start.net_, loss)


def test_new_points_are_drawn_anew_in_every_epoch(monkeypatch):
    drawn, real = [], embedsmote.random_shares

    def spy(*args):
        drawn.append(real(*args))
        return drawn[-1]

    monkeypatch.setattr(embedsmote, "random_shares", spy)
    EmbedSMOTE(max_epochs=5).fit(task_with(6, 6, 2), seed=0)
    assert len(drawn) == 6
    assert all(shares[0] == shares[1] for shares in drawn)  # one for the class
    assert len({shares[0].item() for shares in drawn}) == 6
