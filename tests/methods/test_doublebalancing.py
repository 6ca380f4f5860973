"""Double Balancing: without pseudo-labels it is two plain convolutions, of any kind."""

from dataclasses import replace

import pytest
import torch
from oracles import check_losses, dense_conv, dense_propagation, labelled
from torch.nn.functional import cross_entropy

from evengraph.methods import DoubleBalancing
from small_graphs import small_task


@pytest.mark.parametrize("how", ["row", "symmetric"])
def test_without_pseudo_labels_it_is_two_convolutions_and_balanced_softmax(how):
    task = small_task()
    nodes, labels = labelled(task)
    fields = {"pseudo_weight": 0.0, "dropout": 0.0, "normalisation": how}
    first = DoubleBalancing(max_epochs=0, **fields).fit(task, seed=0)
    matrix = dense_propagation(task.graph, how)

    def loss(net):
        hidden = dense_conv(net.encoder, task.graph.x, matrix)
        logits = matrix @ hidden @ net.last.weight + net.last.bias
        return cross_entropy(logits[nodes] + task.class_counts.double().log(), labels)

    check_losses(DoubleBalancing(max_epochs=6, **fields), task, first.net_, loss)


def test_without_early_stopping_the_last_weights_stay_whatever_is_held_out():
    task, short = small_task(), {"max_epochs": 5, "stop_early": False}
    method = DoubleBalancing(**short).fit(task, seed=0)
    (history,) = method.history_
    assert history.epochs == history.best_epoch == 5
    assert 0 < history.best_score <= 1
    other = DoubleBalancing(**short).fit(replace(task, val=task.test, test=task.val), seed=0)
    assert torch.equal(method.predict_proba(task.graph), other.predict_proba(task.graph))


@pytest.mark.parametrize(
    ("backbone", "title"),
    [
        ("gcn", "Double balancing"),
        ("sage", "Double balancing on GraphSAGE"),
        ("gat", "Double balancing on GAT"),
    ],
)
def test_it_learns_on_any_backbone_and_is_called_by_it(backbone, title):
    task = small_task()
    method = DoubleBalancing(backbone=backbone, max_epochs=60).fit(task, seed=0)
    assert method.full_title == title
    assert method.score(task) > 0.5
