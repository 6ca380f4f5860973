"""IceBerg: whom to trust by hand, both losses against the formula, and plain without them."""

import pytest
import torch
from oracles import (
    by_conflict,
    check_chosen,
    check_losses,
    dense_conv,
    dense_propagation,
    first_loss,
    labelled,
    task_with,
)
from torch.nn.functional import cross_entropy

from evengraph.methods import IceBerg
from evengraph.methods.iceberg import doubly_balanced, trusted
from evengraph.ops.labelled import NAMED_LOSSES
from evengraph.rng import generator
from small_graphs import small_task


def test_trusted_are_those_above_the_mean():
    confidence = torch.tensor([0.9, 0.6, 0.75, 0.5])  # their mean is 0.6875
    assert trusted(confidence).tolist() == [True, False, True, False]


@pytest.mark.parametrize("confidence", [0.5, 0.1, 1 / 3, 0.7])
def test_equally_sure_nodes_are_all_trusted(confidence):
    assert trusted(torch.full((1001,), confidence)).all()


def test_those_that_do_not_count_change_nothing():
    logits = torch.randn(6, 3, generator=generator(0)).requires_grad_()
    predicted = torch.tensor([0, 1, 2, 0, 1, 1])
    counted = torch.tensor([True, True, False, True, False, True])  # nobody of class 2
    loss = doubly_balanced(logits, predicted, counted)
    shifted = logits[counted][:, :2] + torch.tensor([2.0, 2.0]).log()
    torch.testing.assert_close(loss, cross_entropy(shifted, predicted[counted]))
    (gradient,) = torch.autograd.grad(loss, logits)
    assert gradient.isfinite().all()
    assert (gradient[~counted] == 0).all()
    assert (gradient[:, 2] == 0).all()


@pytest.mark.parametrize("decoupled", [True, False])
@pytest.mark.parametrize("loss", NAMED_LOSSES)
def test_both_losses_are_means_balanced_by_their_own_sizes(decoupled, loss):
    task = task_with(9, 6, 2)
    fields = {"decoupled": decoupled, "loss": loss, "pseudo_weight": 0.7}
    method, found = first_loss(IceBerg(**fields), task)
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


def test_features_are_propagated_once():
    task = small_task()
    method = IceBerg(steps=3, teleport=0.2, max_epochs=0).fit(task, seed=0)
    matrix, own = dense_propagation(task.graph, "symmetric"), task.graph.x.double()
    x = own
    for _ in range(3):
        x = 0.8 * matrix @ x + 0.2 * own
    torch.testing.assert_close(method._inputs(task.graph).x.double(), x, rtol=1e-4, atol=1e-6)
    net = method.net_
    expected = net.last.linear(net.encoder.linear(x.float()).relu()).softmax(1)
    torch.testing.assert_close(method.predict_proba(task.graph), expected)


def test_without_steps_the_graph_does_not_matter():
    task = small_task()
    method = IceBerg(steps=0, max_epochs=0).fit(task, seed=0)
    alone = task.graph.clone()
    alone.edge_index = alone.edge_index[:, :0]
    torch.testing.assert_close(method.predict_proba(alone), method.predict_proba(task.graph))


@pytest.mark.parametrize("how", ["row", "symmetric"])
def test_without_pseudo_labels_it_is_two_convolutions_and_balanced_softmax(how):
    task = small_task()
    nodes, labels = labelled(task)
    fields = {"decoupled": False, "pseudo_weight": 0.0, "dropout": 0.0, "normalisation": how}
    first = IceBerg(max_epochs=0, **fields).fit(task, seed=0)
    matrix = dense_propagation(task.graph, how)

    def loss(net):
        hidden = dense_conv(net.encoder, task.graph.x, matrix)
        logits = matrix @ hidden @ net.last.weight + net.last.bias
        return cross_entropy(logits[nodes] + task.class_counts.double().log(), labels)

    check_losses(IceBerg(max_epochs=6, **fields), task, first.net_, loss)


@pytest.mark.parametrize("decoupled", [True, False])
def test_it_validates_on_what_it_predicts(decoupled):
    task = small_task()
    check_chosen(IceBerg(decoupled=decoupled, max_epochs=30).fit(task, seed=0), task)


@pytest.mark.parametrize(
    ("field", "value"), [("loss", "focal"), ("teleport", 1.0), ("steps", -1), ("pseudo_weight", -1)]
)
def test_bad_fields_are_refused(field, value):
    with pytest.raises(ValueError, match=f"{field} must"):
        IceBerg(**{field: value})
