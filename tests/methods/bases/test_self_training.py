"""Both losses of Double Balancing: whom to trust by hand, and the sum against the formula."""

from typing import get_args

import pytest
import torch
from oracles import by_conflict, check_chosen, first_loss, labelled, task_with
from torch.nn.functional import cross_entropy

from evengraph.core.rng import generator
from evengraph.methods import DoubleBalancing, IceBerg
from evengraph.methods.bases.network import above_mean, pseudo_label_loss
from evengraph.ops.losses import NamedLoss
from small_graphs import small_task


def test_trusted_are_those_above_the_mean():
    confidence = torch.tensor([0.9, 0.6, 0.75, 0.5])  # their mean is 0.6875
    assert above_mean(confidence).tolist() == [True, False, True, False]


@pytest.mark.parametrize("confidence", [0.5, 0.1, 1 / 3, 0.7])
def test_equally_sure_nodes_are_all_trusted(confidence):
    assert above_mean(torch.full((1001,), confidence)).all()


def test_those_that_do_not_count_change_nothing():
    logits = torch.randn(6, 3, generator=generator(0)).requires_grad_()
    predicted = torch.tensor([0, 1, 2, 0, 1, 1])
    counted = torch.tensor([True, True, False, True, False, True])  # nobody of class 2
    loss = pseudo_label_loss(logits, predicted, counted)
    shifted = logits[counted][:, :2] + torch.tensor([2.0, 2.0]).log()
    torch.testing.assert_close(loss, cross_entropy(shifted, predicted[counted]))
    (gradient,) = torch.autograd.grad(loss, logits)
    assert gradient.isfinite().all()
    assert (gradient[~counted] == 0).all()
    assert (gradient[:, 2] == 0).all()


@pytest.mark.parametrize("kind", [DoubleBalancing, IceBerg])
@pytest.mark.parametrize("loss", get_args(NamedLoss))
def test_both_losses_are_means_balanced_by_their_own_sizes(kind, loss):
    task = task_with(9, 6, 2)
    method, found = first_loss(kind(loss=loss, pseudo_weight=0.7), task)
    nodes, labels = labelled(task)
    logits = method._logits(task.graph).detach().double()
    others = (~task.train).nonzero().flatten()
    confidence, predicted = logits.softmax(1)[others].max(1)
    trusted = confidence >= confidence.mean()
    sizes = torch.bincount(predicted[trusted], minlength=3).double()
    on_labels = logits[nodes]
    if loss == "balanced_softmax":
        on_labels = on_labels + task.class_counts.double().log()
    each = cross_entropy(on_labels, labels, reduction="none")
    if loss in ("reweight", "renode"):
        each = each * (17 / 3 / task.class_counts)[labels]
    if loss == "renode":
        each = each * by_conflict(task)
    expected = each.mean()
    shifted = logits[others][trusted] + sizes.log()
    expected = expected + 0.7 * cross_entropy(shifted, predicted[trusted])
    assert found == pytest.approx(float(expected), rel=1e-4)


@pytest.mark.parametrize("kind", [DoubleBalancing, IceBerg])
def test_it_validates_on_what_it_predicts(kind):
    task = small_task()
    check_chosen(kind(max_epochs=30).fit(task, seed=0), task)
