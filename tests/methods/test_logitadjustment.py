"""Logit adjustment: none of it is GCN, and its loss by hand."""

import pytest
import torch
from oracles import dense_logits, dense_propagation, first_loss, labelled, task_with

from evengraph.methods import GCN, LogitAdjustment
from small_graphs import small_task


def test_no_adjustment_is_gcn():
    task = small_task()
    expected = GCN(max_epochs=20).fit(task, seed=3).predict_proba(task.graph)
    found = LogitAdjustment(tau=0, max_epochs=20).fit(task, seed=3).predict_proba(task.graph)
    assert torch.equal(found, expected)


def test_the_loss_by_hand():
    task = task_with(9, 4, 1)
    method, loss = first_loss(LogitAdjustment(tau=0.5), task)
    nodes, labels = labelled(task)
    logits = dense_logits(method.net_, task.graph.x, dense_propagation(task.graph))[nodes]
    odds = logits.exp() * torch.tensor([3.0, 2.0, 1.0])  # roots of the class sizes
    chances = odds[range(14), labels] / odds.sum(1)
    assert loss == pytest.approx(-chances.log().mean().item(), rel=1e-5)


def test_the_stronger_the_more_of_the_rare_class():
    task = small_task()
    found = [
        LogitAdjustment(tau=tau, max_epochs=40).fit(task, seed=3).predict_proba(task.graph).mean(0)
        for tau in (0.0, 1.0, 3.0)
    ]
    assert found[0][2] < found[1][2] < found[2][2]
