"""NodeClassifier: what scikit-learn does with it, and which labels a fold sees."""

import numpy as np
import pytest
import torch
from sklearn.base import clone, is_classifier
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score

import evengraph as eg
from evengraph.methods.bases.method import Method
from small_graphs import small_task

GRAPH = small_task().graph
NODES, NAMES = np.arange(0, 150, 2), np.array(["ant", "bee", "crab"])
LABELS = NAMES[GRAPH.y[NODES].numpy()]


def classifier(**params):
    return eg.NodeClassifier(GRAPH, eg.GCN(max_epochs=40, **params))


def test_a_grid_is_searched_and_the_best_is_refitted():
    grid = {"method__hidden": [4, 16], "method__learning_rate": [1e-7, 0.01]}
    search = GridSearchCV(classifier(), grid, cv=3, scoring="balanced_accuracy")
    search.fit(NODES, LABELS)
    assert search.best_params_["method__learning_rate"] == 0.01
    others = np.arange(1, 150, 2)
    assert search.score(others, NAMES[GRAPH.y[others].numpy()]) > 0.6
    assert search.predict_proba(others).shape == (75, 3)


def test_a_fold_sees_the_labels_of_its_training_nodes_alone(monkeypatch):
    seen = []
    fit = Method.fit

    def spy(self, task, **options):
        seen.append(task)
        return fit(self, task, **options)

    monkeypatch.setattr(Method, "fit", spy)
    scores = cross_val_score(classifier(), NODES, LABELS, cv=3)
    assert len(seen) == len(scores) == 3
    for task in seen:
        known = (task.graph.y >= 0).nonzero().flatten()
        assert len(known) == 50
        assert torch.equal(known, (task.train | task.val).nonzero().flatten())
        assert set(known.tolist()) < set(NODES.tolist())
        assert 0 < int(task.val.sum()) <= 12
    assert GRAPH.y.min() >= 0  # the caller's graph is unchanged


def test_labels_come_out_as_they_went_in():
    model = classifier().fit(NODES[:, None], LABELS)
    assert list(model.classes_) == list(NAMES)
    assert set(model.predict([1, 3])) <= set(NAMES)
    assert cross_val_predict(classifier(), NODES, LABELS, cv=2).dtype == LABELS.dtype
    assert is_classifier(model)


def test_clones_share_the_graph_and_copy_the_method():
    model = classifier().fit(NODES, LABELS)
    copy = clone(model)
    assert copy.graph is GRAPH
    assert copy.method is not model.method
    assert copy.get_params()["method__max_epochs"] == 40
    assert not hasattr(copy, "method_")


def test_a_name_has_the_defaults_of_the_graph():
    model = eg.NodeClassifier(GRAPH, "labelpropagation").fit(NODES, LABELS)
    assert model.score(NODES, LABELS) > 0.5


@pytest.mark.parametrize("names", [[0, 1], [1, 0], ["fraud", "ok"], ["ok", "fraud"]])
def test_the_rarer_class_is_scored_whatever_it_is_called(names):
    graph = eg.toy(200, 800, 16, 2, size_ratio=0.2)
    labels, X = np.array(names)[graph.y.numpy()], np.arange(200)
    model = eg.NodeClassifier(graph, eg.GCN(max_epochs=5)).fit(X[::2], labels[::2])
    chance = model.predict_proba(X[1::2])[:, list(model.classes_).index(names[1])]
    wanted = average_precision_score(graph.y.numpy()[1::2] == 1, chance)
    assert model.rare_average_precision(model, X[1::2], labels[1::2]) == pytest.approx(wanted)
    scores = cross_val_score(model, X, labels, cv=2, scoring=model.rare_average_precision)
    assert (scores < 0.6).all()  # of the common class it would be far above


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([0.5, 1], "indices of nodes"),
        ([[0, 1]], "indices of nodes"),
        ([0, 150], "from 0 to 149"),
        ([-1], "from 0 to 149"),
    ],
)
def test_what_are_no_nodes(X, message):
    with pytest.raises(ValueError, match=message):
        classifier().fit(X, [0] * len(X))
    with pytest.raises(RuntimeError, match="not fitted"):
        classifier().predict([0])
