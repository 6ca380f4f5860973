"""ReNode: its loss written out, alone and under margins, and GCN as a special case."""

from typing import get_args

import pytest
import torch
from torch.nn.functional import cross_entropy

from evengraph.methods import ReNode
from evengraph.ops.losses import ClassLoss, conflict_weights
from evengraph.ops.sparse import undirected_adjacency
from small_graphs import small_task


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
