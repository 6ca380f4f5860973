"""Focal loss: its value by hand, and the losses that it is without focus."""

import pytest
import torch
from oracles import dense_logits, dense_propagation, first_loss, labelled, task_with

from evengraph.fast.replicas import batching
from evengraph.methods import GCN, Focal, Reweight
from small_graphs import small_task


def probabilities(method, task):
    return method.fit(task, seed=3).predict_proba(task.graph)


@pytest.mark.parametrize("balance", [False, True])
def test_the_loss_by_hand(balance):
    task = task_with(9, 4, 1)
    method, loss = first_loss(Focal(gamma=2, balance=balance), task)
    nodes, labels = labelled(task)
    logits = dense_logits(method.net_, task.graph.x, dense_propagation(task.graph))[nodes]
    chances = logits.softmax(1)[range(14), labels]
    each = -((1 - chances) ** 2) * chances.log()
    weights = 1 / torch.tensor([9, 4, 1])[labels] if balance else torch.ones(14)
    assert loss == pytest.approx(((weights * each).sum() / weights.sum()).item(), rel=1e-5)


@pytest.mark.parametrize(("balance", "same"), [(False, GCN()), (True, Reweight(balance=True))])
def test_without_focus_it_is_a_weighted_mean(balance, same):
    task = small_task()
    same.max_epochs = 10
    expected = probabilities(same, task)
    found = probabilities(Focal(gamma=0, balance=balance, max_epochs=10), task)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


def test_it_is_trained_alone():
    assert batching(Focal()) is None
