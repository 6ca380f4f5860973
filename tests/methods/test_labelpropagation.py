"""Label propagation: a path by hand, and which labels count in other graphs."""

import dataclasses

import pytest
import torch
from oracles import dense_propagation, task_with
from torch_geometric.data import Data

from evengraph.methods import LabelPropagation
from evengraph.pipeline.model_info import load_model
from small_graphs import graph_of, small_task, task_of


def line():
    """Six nodes in a row, the ends labelled 0 and 1, validated on their neighbours."""
    graph = graph_of(torch.eye(6), [(n, n + 1) for n in range(5)], [0, 0, 0, 1, 1, 1])
    return task_of(graph, [0, 5], [1, 4])


def test_two_steps_by_hand():
    task = line()
    method = LabelPropagation(restart=0.5, max_epochs=2).fit(task, seed=0)
    assert int(method.steps_) == 2  # of equal scores the latest
    # after one step node 1 holds 1/6 of class 0 and node 0 holds 1/4 + 1/2; after two, node 2
    # holds half of a third of 1/6, and node 3 as much of class 1
    reached = method.predict_proba(task.graph)
    assert reached[2].tolist() == pytest.approx([1, 0], abs=1e-6)
    assert reached[3].tolist() == pytest.approx([0, 1], abs=1e-6)
    assert method.history_[0].score == pytest.approx([1 / 3, 1, 1])


@pytest.mark.parametrize("balance", [False, True])
def test_it_is_the_formula(balance):
    task = task_with(9, 4, 1)
    method = LabelPropagation(balance=balance, restart=0.2, max_epochs=9).fit(task, seed=0)
    matrix = dense_propagation(task.graph)
    start = torch.zeros(150, 3, dtype=torch.float64)
    for node in task.train.nonzero().flatten().tolist():
        label = int(task.graph.y[node])
        start[node, label] = 1 / (9, 4, 1)[label] if balance else 1
    spread = start
    for _ in range(int(method.steps_)):
        spread = 0.8 * matrix @ spread + 0.2 * start
    reached = spread.sum(1) > 0
    expected = spread[reached] / spread[reached].sum(1, keepdim=True)
    found = method.predict_proba(task.graph).double()
    torch.testing.assert_close(found[reached], expected, rtol=1e-4, atol=1e-5)


def test_other_steps_can_be_taken_later():
    task = line()
    method = LabelPropagation(restart=0.5, max_epochs=2).fit(task, seed=0)
    method.rewind(1)
    again = LabelPropagation(restart=0.5, max_epochs=1).fit(task, seed=0)
    assert torch.equal(method.predict_proba(task.graph), again.predict_proba(task.graph))


def test_where_no_label_reaches_all_classes_are_as_likely():
    task = small_task()
    lonely = int((~task.train & ~task.val).nonzero()[0])
    keep = (task.graph.edge_index != lonely).all(0)
    graph = task.graph.clone()
    graph.edge_index = graph.edge_index[:, keep]
    task = dataclasses.replace(task, graph=graph)
    values = LabelPropagation().fit(task, seed=0).predict_proba(graph)
    assert values[lonely].tolist() == pytest.approx([1 / 3] * 3)


def test_everything_restarts_is_no_propagation():
    task = line()
    method = LabelPropagation(restart=1.0).fit(task, seed=0)
    values = method.predict_proba(task.graph)
    assert values[1].tolist() == [0.5, 0.5]
    assert values[0].tolist() == pytest.approx([1, 0])


def test_labels_count_where_their_nodes_are_known_again():
    task = line()
    method = LabelPropagation(restart=0.5, max_epochs=2).fit(task, seed=0)
    x, edge_index = task.graph.x.clone(), task.graph.edge_index
    x[5] = x[4]  # another node stands there now
    values = method.predict_proba(Data(x=x, edge_index=edge_index))
    assert values[1].tolist() == pytest.approx([1, 0])
    assert values[4].tolist() == [0.5, 0.5]
    grown = torch.cat([task.graph.x, x[:1]]), torch.cat([edge_index, edge_index.new([[6], [5]])], 1)
    values = method.predict_proba(Data(x=grown[0], edge_index=grown[1]))
    assert values[6].tolist() == pytest.approx([0, 1])


def test_saved_steps_that_nobody_could_wait_for_are_refused(tmp_path):
    method = LabelPropagation(max_epochs=2**31 - 1).fit(line(), seed=0)
    method.steps_ = torch.tensor(2**31 - 1)
    method.save(tmp_path / "model")
    with pytest.raises(ValueError, match="steps must lie between 0 and 100000"):
        load_model(tmp_path / "model")


def test_rows_in_another_order_are_known_by_their_features():
    task = small_task()
    method = LabelPropagation().fit(task, seed=0)
    order = torch.randperm(task.graph.num_nodes, generator=torch.Generator().manual_seed(1))
    place = order.argsort()
    shuffled = Data(x=task.graph.x[order], edge_index=place[task.graph.edge_index])
    expected = method.predict_proba(task.graph)[order]
    torch.testing.assert_close(method.predict_proba(shuffled), expected)
    shuffled.x = shuffled.x + 1  # other nodes: no label is known
    assert torch.allclose(method.predict_proba(shuffled), torch.tensor(1 / task.num_classes))
