"""Balanced softmax: its loss, its kin, and what it does for a rare class."""

import pytest
import torch
from oracles import check_chosen, dense_logits, dense_propagation, first_loss, labelled, task_with

from evengraph.methods import GCN, BalancedSoftmax, LogitAdjustment
from small_graphs import small_task


def probabilities(method, task):
    return method.fit(task, seed=3).predict_proba(task.graph)


def test_the_loss_is_that_of_raised_logits():
    task = task_with(9, 4, 1)
    method, loss = first_loss(BalancedSoftmax(), task)
    nodes, labels = labelled(task)
    logits = dense_logits(method.net_, task.graph.x, dense_propagation(task.graph))[nodes]
    odds = logits.exp() * torch.tensor([9, 4, 1])
    chances = odds[range(14), labels] / odds.sum(1)
    assert loss == pytest.approx(-chances.log().mean().item(), rel=1e-5)


def test_equal_classes_make_it_a_gcn():
    task = task_with(6, 6, 6)
    expected = probabilities(GCN(max_epochs=10), task)
    found = probabilities(BalancedSoftmax(max_epochs=10), task)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


def test_it_is_logit_adjustment_of_strength_one():
    task = small_task()
    expected = probabilities(LogitAdjustment(tau=1.0, max_epochs=20), task)
    assert torch.equal(probabilities(BalancedSoftmax(max_epochs=20), task), expected)


def test_a_rare_class_is_predicted_more_often():
    task = small_task()
    plain = probabilities(GCN(max_epochs=40), task).mean(0)[2]
    assert probabilities(BalancedSoftmax(max_epochs=40), task).mean(0)[2] > plain
    check_chosen(BalancedSoftmax(max_epochs=20).fit(task, seed=0), task)
