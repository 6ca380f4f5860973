"""Estimator: what scikit-learn's tools find."""

import dataclasses

import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score

from evengraph.methods import GCN, METHODS, UniGNN
from small_graphs import small_task


@pytest.fixture(scope="module")
def task():
    return small_task()


@pytest.fixture(scope="module")
def fitted(task):
    return GCN(max_epochs=20).fit(task, seed=0)


@pytest.mark.parametrize("name", METHODS)
def test_clone_has_the_fields_and_is_not_fitted(name, task):
    method = METHODS[name](max_epochs=0, weight_decay=0.125).fit(task, seed=0)
    copy = clone(method)
    assert copy is not method
    assert copy == method
    assert not copy.is_fitted
    assert copy.get_params() == dataclasses.asdict(method)


def test_params_are_set_together_or_not_at_all():
    method = UniGNN()
    assert method.set_params(alpha=3, hidden=8) is method
    assert (method.alpha, method.hidden) == (3, 8)
    with pytest.raises(ValueError, match="hidden must be at least 1, got 0"):
        method.set_params(alpha=1, hidden=0)
    with pytest.raises(ValueError, match="UniGNN has no field 'hiden'; it has learning_rate, "):
        method.set_params(alpha=1, hiden=4)
    assert (method.alpha, method.hidden) == (3, 8)
    assert method.set_params() is method


def test_predict_is_the_most_probable_class(task, fitted):
    assert torch.equal(fitted.predict(task.graph), fitted.predict_proba(task.graph).argmax(1))


@pytest.mark.parametrize("form", ["default", "mask", "list", "val"])
def test_score_is_balanced_accuracy(task, fitted, form):
    mask = task.val if form == "val" else task.test
    nodes = {"default": None, "list": mask.nonzero().squeeze(1)}.get(form, mask)
    found = fitted.predict(task.graph)[mask]
    expected = balanced_accuracy_score(task.graph.y[mask], found)
    assert fitted.score(task, nodes=nodes) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (torch.zeros(150, dtype=torch.bool), "no nodes to score on"),
        (torch.zeros(3, dtype=torch.bool), "a mask of 150 nodes, got 3"),
        (torch.tensor([150]), "ids from 0 to 149"),
        (torch.tensor([-1]), "ids from 0 to 149"),
        (torch.tensor([0.5]), "a bool mask or a list of whole numbers"),
    ],
)
def test_nodes_that_cannot_be_scored(task, fitted, nodes, message):
    with pytest.raises(ValueError, match=message):
        fitted.score(task, nodes=nodes)


def test_nodes_without_labels_cannot_be_scored(task, fitted):
    hidden = task.hide_test_labels()
    with pytest.raises(ValueError, match="have no label"):
        fitted.score(hidden)
