"""Logistic: scikit-learn's own answer, what is selected, and means over neighbours by hand."""

import pytest
import torch
from oracles import dense_graph, task_with
from sklearn.linear_model import LogisticRegression
from torch_geometric.data import Data

from evengraph.core.rng import generator
from evengraph.core.task import folds
from evengraph.methods import Logistic
from evengraph.methods import logistic as module
from evengraph.metrics.multiclass import validation_likelihood, validation_score
from evengraph.ops.features import Scaling
from evengraph.testing.contract import with_graph
from small_graphs import normal, small_task, task_of


@pytest.mark.parametrize("counts", [(20, 12), (12, 9, 4)])
def test_the_answer_is_that_of_scikit_learn(counts):
    task = task_with(*counts)
    method = Logistic().fit(task, seed=0)
    best = method.history_[0].best_epoch
    assert best > 0
    theirs = LogisticRegression(C=4 ** (best - 1) / sum(counts), max_iter=1000)
    x = method.scaling_(task.graph.x).numpy()
    theirs.fit(x[task.train.numpy()], task.graph.y[task.train].numpy())
    odds = torch.from_numpy(theirs.predict_proba(x)).float() / torch.tensor(counts)
    expected = odds / odds.sum(1, keepdim=True)  # as if all classes were of one size
    torch.testing.assert_close(method.predict_proba(task.graph), expected, rtol=0, atol=1e-2)


def test_the_penalty_is_chosen_on_validation():
    task = task_with(9, 9, 9)
    method = Logistic().fit(task, seed=0)
    (history,) = method.history_
    score = float(validation_likelihood(method.predict_proba(task.graph).log(), task).exp())
    assert score == pytest.approx(max(history.score), abs=1e-6)
    assert score > history.score[0] + 0.02
    assert history.epochs == min(8, history.best_epoch + 4)


def test_another_penalty_can_be_taken_later_but_never_none():
    task = task_with(9, 9, 9)
    method, shorter = Logistic(hops=1).fit(task, seed=0), Logistic(hops=1, max_epochs=1)
    shorter.fit(task, seed=0)
    best = method.weights_
    again = Logistic(hops=1).fit(task, seed=0)
    again.rewind(again.history_[0].best_epoch)
    assert torch.equal(again.weights_, best)
    assert not torch.equal(best, shorter.weights_)
    method.rewind(0)  # without any weight nothing is ranked
    torch.testing.assert_close(method.weights_, shorter.weights_)


@pytest.mark.parametrize(("counts", "weaker"), [((60, 6), True), ((30, 30), False)])
def test_where_a_class_is_rare_a_weaker_penalty_may_be_less_likely(counts, weaker, monkeypatch):
    chosen, task = [], folds(task_with(*counts), 2, generator(0))[0]
    for nats in (0.0, 100.0):
        monkeypatch.setattr(module, "RANKED", nats)
        history = Logistic(patience=8).fit(task, seed=0).history_[0]
        chosen.append(history.best_epoch)
    assert (chosen[0] < chosen[1] == 8) == weaker


def test_of_equally_good_penalties_the_largest_is_chosen():
    edges, labels = torch.empty(2, 0, dtype=torch.long), torch.arange(40) // 20
    graph = Data(x=torch.ones(40, 1), edge_index=edges, y=labels)  # no penalty separates them
    task = task_of(graph, [*range(5), *range(20, 25)], [*range(5, 10), *range(25, 30)])
    history = Logistic().fit(task, seed=0).history_[0]
    assert (history.best_epoch, history.epochs) == (0, 4)
    assert max(history.score) == pytest.approx(0.5, abs=1e-6)


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
    table = method._scaled(words)
    assert table.nnz == int(words.sum())
    monkeypatch.setattr(module, "DENSE", 0.0)
    monkeypatch.setattr(module, "ROWS", 7)
    dense = Logistic().fit(task, seed=0)
    assert not hasattr(dense._scaled(words), "nnz")
    found, expected = (one.predict_proba(graph) for one in (method, dense))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize("words", [False, True])
def test_with_hops_it_is_logistic_regression_on_means_over_neighbours(words):
    task = small_task()
    if words:
        task.graph.x = (normal(*task.graph.x.shape) > 1.2).float()
    method = Logistic(hops=2, degree=True, max_epochs=20).fit(task, seed=0)
    matrix = dense_graph(task.graph)
    x = torch.cat([task.graph.x, matrix.sum(1, keepdim=True).log1p()], dim=1).float()
    own = method.scaling_(x).double()
    mean = matrix / matrix.sum(1, keepdim=True).clamp(min=1)
    table = torch.cat([own, mean @ own, mean @ mean @ own], dim=1)
    weights, bias = method.weights_[:, :-1], method.weights_[:, -1]
    expected = (table @ weights.t() + bias).softmax(1).float()
    torch.testing.assert_close(method.predict_proba(task.graph), expected)
    as_fitted = expected.log() + task.class_counts.log()  # before shares were taken off
    likelihood = float(validation_likelihood(as_fitted, task).exp())
    assert likelihood == pytest.approx(max(method.history_[0].score), abs=1e-5)
    score = float(validation_score(expected, task))
    assert score == pytest.approx(method.history_[0].best_score, abs=1e-6)


def test_means_get_the_size_of_what_they_are_means_of():
    task = small_task()
    method = Logistic(hops=1)
    method.scaling_ = Scaling.of(task.graph.x)
    nodes, width = torch.arange(task.graph.num_nodes), task.graph.num_features
    table, factors = method._table(task.graph, nodes)
    sizes = torch.from_numpy(table).std(0)
    torch.testing.assert_close(sizes[:width], sizes[width:], rtol=1e-4, atol=0)
    assert (factors[:width] == 1).all()
    assert (factors[width:] > 1).float().mean() > 0.9


def test_a_graph_without_edges_adds_nothing():
    task = small_task()
    graph = Data(x=task.graph.x, edge_index=torch.empty(2, 0, dtype=torch.long), y=task.graph.y)
    masks = (mask.nonzero().squeeze(1).tolist() for mask in (task.train, task.val))
    task = task_of(graph, *masks)
    one, other = (Logistic(hops=hops).fit(task, seed=0).predict_proba(graph) for hops in (0, 2))
    torch.testing.assert_close(one, other, rtol=0, atol=1e-4)


def test_relations_are_columns_of_their_own():
    task = small_task()
    source, target = task.graph.edge_index
    kind = (task.graph.y[source] == task.graph.y[target]).long()
    related = with_graph(task, relation_index=torch.stack([kind, source, target]), num_relations=2)
    method = Logistic(hops=2, max_epochs=20).fit(related, seed=0)
    width = task.graph.num_features
    assert method.weights_.shape == (3, 5 * width + 1)
    scaled = method.scaling_(task.graph.x).double()
    rows = [scaled]
    for chosen in (kind >= 0, kind == 0, kind == 1):
        matrix = torch.zeros(150, 150, dtype=torch.float64)
        matrix[source[chosen], target[chosen]] = 1
        rows.append(matrix / matrix.sum(1, keepdim=True).clamp(min=1) @ scaled)
        if len(rows) == 2:
            rows.append(matrix / matrix.sum(1, keepdim=True).clamp(min=1) @ rows[1])
    logits = torch.cat(rows, 1) @ method.weights_[:, :-1].T + method.weights_[:, -1]
    expected = logits.softmax(1).float()
    torch.testing.assert_close(method.predict_proba(related.graph), expected)
