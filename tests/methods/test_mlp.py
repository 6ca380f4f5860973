"""MLP: GCN without a graph."""

import dataclasses

import torch

from evengraph.datasets import toy
from evengraph.methods import GCN, MLP
from small_graphs import small_task


def without_edges(task):
    graph = task.graph.clone()
    graph.edge_index = graph.edge_index[:, :0]
    return dataclasses.replace(task, graph=graph)


def test_it_is_gcn_where_there_are_no_edges():
    task = small_task()
    expected = GCN(max_epochs=15).fit(without_edges(task), seed=3)
    found = MLP(max_epochs=15).fit(task, seed=3)
    values = expected.predict_proba(without_edges(task).graph)
    assert torch.equal(found.predict_proba(task.graph), values)


def test_edges_change_nothing():
    task = small_task()
    method = MLP(max_epochs=5).fit(task, seed=0)
    values = method.predict_proba(task.graph)
    assert torch.equal(method.predict_proba(without_edges(task).graph), values)
    again = MLP(max_epochs=5).fit(without_edges(task), seed=0)
    assert torch.equal(again.predict_proba(task.graph), values)


def test_a_node_is_answered_by_its_features_alone():
    task = small_task()
    method = MLP(max_epochs=5).fit(task, seed=0)
    other = toy(40, 90, 64, 3, seed=9)
    other.x[11] = task.graph.x[5]
    mine = method.predict_proba(task.graph)[5]
    torch.testing.assert_close(method.predict_proba(other)[11], mine)
