"""Assessing a fitted method: scores are from before refitting, the rest from after."""

import pytest
import torch

import evengraph as eg
from evengraph.metrics.evaluation import evaluate, reported
from evengraph.pipeline.sources import GraphSource
from evengraph.pipeline.table_model import assess, positive_index
from small_graphs import small_task


def test_scores_are_from_before_refitting_and_the_threshold_from_after():
    task = small_task()
    method = eg.Logistic(max_epochs=6).fit(task, seed=0)
    source = GraphSource(name="graph", graph=task.graph)
    same, plain = assess(method, task, source, None, refit_seed=None, costs=None)
    other, again = assess(method, task, source, None, refit_seed=0, costs=None)
    assert same is method
    assert plain.refit is None
    assert plain.test_scores == again.test_scores
    scores = reported(evaluate(task, method.predict_proba(task.graph)))
    assert again.test_scores["accuracy"] == scores["accuracy"]
    assert again.refit is not None
    assert not torch.equal(other.predict_proba(task.graph), method.predict_proba(task.graph))


def test_a_second_fit_that_was_interrupted_does_not_count(monkeypatch):
    def interrupt(history):
        if history.epochs == 2:
            raise KeyboardInterrupt

    def refitted(self, task, *, seed):
        return eg.GCN(max_epochs=5).fit(task, seed=seed, on_epoch=interrupt)

    task = small_task()
    method = eg.GCN(max_epochs=5).fit(task, seed=0)
    monkeypatch.setattr(eg.GCN, "refitted", refitted)
    source = GraphSource(name="graph", graph=task.graph)
    with pytest.warns(UserWarning, match="Not trained again on all labels: it was interrupted"):
        same, info = assess(method, task, source, None, refit_seed=0, costs=None)
    assert same is method
    assert info.refit is None


def test_a_second_fit_that_fails_leaves_the_first(monkeypatch):
    def refitted(self, task, *, seed):
        raise MemoryError

    task = small_task()
    method = eg.Logistic(max_epochs=2).fit(task, seed=0)
    monkeypatch.setattr(eg.Logistic, "refitted", refitted)
    source = GraphSource(name="graph", graph=task.graph)
    with pytest.warns(UserWarning, match="Not trained again on all labels: MemoryError"):
        same, info = assess(method, task, source, None, refit_seed=0, costs=None)
    assert same is method
    assert info.refit is None
    assert info.test_scores


def test_the_positive_class_has_a_name_or_is_the_rarer_one():
    three = small_task()
    assert positive_index(three, None) is None
    with pytest.raises(ValueError, match="positive must be one of two classes, got 'x'"):
        positive_index(three, "x")
