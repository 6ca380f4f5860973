"""ReNode: its loss written out, alone and under margins, and GCN as a special case."""

from typing import get_args

import pytest
import torch
from oracles import dense_logits, dense_propagation, first_loss, labelled, task_with
from torch.nn.functional import cross_entropy

from evengraph.methods import ReNode
from evengraph.ops.losses import ClassLoss, conflict_weights
from evengraph.ops.sparse import undirected_adjacency
from small_graphs import small_task


@pytest.mark.parametrize("loss", get_args(ClassLoss))
def test_the_loss_by_hand(loss):
    task = task_with(9, 4, 1)
    method, found = first_loss(ReNode(loss=loss), task)
    nodes, labels = labelled(task)
    logits = dense_logits(method.net_, task.graph.x, dense_propagation(task.graph))[nodes]
    counts = torch.tensor([9.0, 4.0, 1.0], dtype=torch.float64)
    if loss == "balanced_softmax":
        logits = logits + counts.log()
    matrix = undirected_adjacency(task.graph.edge_index, task.graph.num_nodes)
    weights = conflict_weights(matrix, nodes, labels, counts.long())
    if loss == "reweight":
        weights = weights * (14 / 3 / counts)[labels]
    each = -logits.log_softmax(1)[range(14), labels]
    assert found == pytest.approx((weights * each).mean().item(), rel=1e-4)


def written_out(method, task):
    """The loss of the logits of all nodes, with nothing taken apart."""
    labels, counts, margins = task.graph.y[task.train], task.class_counts, method._margins(task)
    matrix = undirected_adjacency(task.graph.edge_index, task.graph.num_nodes)
    nodes = task.train.nonzero().flatten()
    weights = conflict_weights(matrix, nodes, labels, counts, method.least, method.most)
    raised = torch.zeros(counts.numel())
    if method.loss == "reweight":
        weights = weights * (counts.float().mean() * (1 / counts.float()))[labels]
    if method.loss == "balanced_softmax":
        raised = counts.float().log()

    def loss(logits):
        rows = logits[task.train] + raised + margins(logits)
        return (weights * cross_entropy(rows, labels, reduction="none")).mean()

    return loss


@pytest.mark.parametrize("margin", ["none", "tam"])
@pytest.mark.parametrize("loss", get_args(ClassLoss))
def test_its_answer_is_that_of_the_loss_written_out(loss, margin, monkeypatch):
    task = small_task()

    def answer():
        method = ReNode(loss=loss, margin=margin, least=0.3, max_epochs=12)
        return method.fit(task, seed=3).predict_proba(task.graph)

    found = answer()
    monkeypatch.setattr(ReNode, "_loss", written_out)
    assert torch.equal(found, answer())
