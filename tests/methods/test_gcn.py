"""GCN: its network against the formula, and its loss."""

import dataclasses

import pytest
import torch

from evengraph.methods import GCN
from small_graphs import dense_adjacency, dense_row, dense_symmetric, small_task


@pytest.mark.parametrize(("how", "dense"), [("row", dense_row), ("symmetric", dense_symmetric)])
def test_probabilities_equal_the_formula(how, dense):
    task = small_task()
    graph = task.graph
    method = GCN(hidden=5, max_epochs=3, normalisation=how).fit(task, seed=0)
    matrix = dense(dense_adjacency(graph.edge_index, graph.num_nodes, undirected=True))
    net = method.net_.double()
    hidden = (matrix @ graph.x.double() @ net.encoder.weight + net.encoder.bias).relu()
    conv, linear = net.classifier.conv, net.classifier.linear
    hidden = (matrix @ hidden @ conv.weight + conv.bias).relu()
    expected = (hidden @ linear.weight.t() + linear.bias).softmax(1).detach()
    net.float()
    torch.testing.assert_close(method.predict_proba(graph).double(), expected, rtol=1e-4, atol=1e-6)


def test_the_loss_is_the_mean_over_training_nodes():
    task = small_task()
    method = GCN(dropout=0, max_epochs=0).fit(task, seed=0)
    values = method.predict_proba(task.graph)[task.train]
    expected = -values.gather(1, task.graph.y[task.train, None]).log().mean()
    assert method.history_[0].loss[0] == pytest.approx(expected.item(), rel=1e-5)


def test_edges_are_read_in_both_directions():
    task = small_task()
    source, target = task.graph.edge_index
    one_way = task.graph.clone()
    one_way.edge_index = task.graph.edge_index[:, source < target]
    first = GCN(max_epochs=3).fit(task, seed=0).predict_proba(task.graph)
    second = GCN(max_epochs=3).fit(dataclasses.replace(task, graph=one_way), seed=0)
    assert torch.equal(second.predict_proba(one_way), first)
