"""Logistic: scikit-learn's own answer, what is selected, and tables it must be quick with."""

from time import perf_counter

import pytest
import torch
from oracles import check_predicts_without_sklearn, task_with
from sklearn.linear_model import LogisticRegression
from torch_geometric.data import Data

from evengraph.methods import Logistic
from evengraph.methods import logistic as module
from evengraph.metrics import validation_score
from small_graphs import normal, small_task, task_of


@pytest.mark.parametrize("counts", [(20, 12), (12, 9, 4)])
def test_the_answer_is_that_of_scikit_learn(counts):
    task = task_with(*counts)
    method = Logistic().fit(task, seed=0)
    best = method.history_[0].best_epoch
    assert best > 0
    theirs = LogisticRegression(
        C=2 ** ((best - 1) // 2) / sum(counts),
        class_weight="balanced" if best % 2 else None,
        max_iter=1000,
    )
    x = method.scaling_(task.graph.x).numpy()
    theirs.fit(x[task.train.numpy()], task.graph.y[task.train].numpy())
    expected = torch.from_numpy(theirs.predict_proba(x)).float()
    torch.testing.assert_close(method.predict_proba(task.graph), expected, rtol=0, atol=5e-3)


def test_the_penalty_is_chosen_on_validation():
    task = task_with(9, 9, 9)
    method = Logistic().fit(task, seed=0)
    (history,) = method.history_
    assert history.epochs == 40
    score = float(validation_score(method.predict_proba(task.graph), task))
    assert score == pytest.approx(max(history.score), abs=1e-6)
    assert score > history.score[0] + 0.1


def test_of_equally_good_penalties_the_largest_is_chosen():
    x = torch.cat([torch.zeros(20, 1), torch.ones(20, 1)])  # every penalty separates them
    graph = Data(x=x, edge_index=torch.empty(2, 0, dtype=torch.long), y=x.squeeze(1).long())
    task = task_of(graph, [*range(5), *range(20, 25)], [*range(5, 10), *range(25, 30)])
    history = Logistic().fit(task, seed=0).history_[0]
    assert history.best_epoch == 1
    assert history.best_score == pytest.approx(1)


def test_the_graph_has_no_influence():
    task = small_task()
    method = Logistic().fit(task, seed=0)
    assert not method.uses_graph
    alone = Data(x=task.graph.x, edge_index=torch.empty(2, 0, dtype=torch.long))
    assert torch.equal(method.predict_proba(alone), method.predict_proba(task.graph))


def test_a_bag_of_words_stays_sparse_and_the_answer_the_same(monkeypatch):
    task = small_task()
    words = (normal(*task.graph.x.shape) > 1.5).float()
    graph = Data(x=words, edge_index=task.graph.edge_index, y=task.graph.y)
    masks = task.train.nonzero().squeeze(1), task.val.nonzero().squeeze(1)
    task = task_of(graph, *(nodes.tolist() for nodes in masks))
    method = Logistic().fit(task, seed=0)
    table = method._table(words)
    assert table.nnz == int(words.sum())
    monkeypatch.setattr(module, "DENSE", 0.0)
    monkeypatch.setattr(module, "ROWS", 7)
    dense = Logistic().fit(task, seed=0)
    assert not hasattr(dense._table(words), "nnz")
    found, expected = (one.predict_proba(graph) for one in (method, dense))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize(("rows", "columns", "density"), [(4_000, 8_000, 0.005), (100_000, 10, 1)])
def test_it_is_quick_with_wide_and_with_long_tables(rows, columns, density):
    stream = torch.Generator().manual_seed(0)
    x = torch.rand(rows, columns, generator=stream)
    x = torch.where(x < density, x, 0.0)
    y = (x[:, :5].sum(1) > x[:, :5].sum(1).median()).long()
    edges = torch.empty(2, 0, dtype=torch.long)
    nodes = range(rows)
    task = task_of(Data(x=x, edge_index=edges, y=y), nodes[: rows // 2], nodes[rows // 2 :])
    started = perf_counter()
    Logistic().fit(task, seed=0)
    assert perf_counter() - started < 60  # seconds; a tenth of that on a free core


def test_predicting_needs_no_scikit_learn(tmp_path, monkeypatch):
    check_predicts_without_sklearn(Logistic(max_epochs=8), tmp_path, monkeypatch)
