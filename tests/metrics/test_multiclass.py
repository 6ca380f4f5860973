"""Metrics against scikit-learn and imbalanced-learn."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from imblearn.metrics import geometric_mean_score
from sklearn import metrics as sk

from evengraph import metrics
from small_graphs import normal, small_task


@st.composite
def predictions(draw):
    """Labels and predictions; classes may lack nodes, or predictions, or both."""
    num_classes, num_nodes = draw(st.integers(2, 5)), draw(st.integers(1, 20))
    label = st.integers(0, draw(st.integers(0, num_classes - 1)))
    lists = st.lists(label, min_size=num_nodes, max_size=num_nodes)
    guess = st.lists(st.integers(0, num_classes - 1), min_size=num_nodes, max_size=num_nodes)
    return torch.tensor(draw(lists)), torch.tensor(draw(guess)), num_classes


@st.composite
def scores(draw):
    """Labels and probabilities with many ties."""
    labels, _, num_classes = draw(predictions())
    size = labels.numel() * num_classes
    values = draw(st.lists(st.integers(0, 4), min_size=size, max_size=size))
    return labels, torch.tensor(values).reshape(-1, num_classes) / 4


def oracle(function, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they warn of missing classes; we test those on purpose
        return function(*args, **options)


def close(ours, theirs):
    assert float(ours) == pytest.approx(theirs, abs=1e-6, nan_ok=True)


@given(predictions())
def test_confusion_matrix(case):
    labels, guesses, num_classes = case
    ours = metrics.confusion_matrix(labels, guesses, num_classes)
    theirs = sk.confusion_matrix(labels, guesses, labels=range(num_classes))
    assert ours.tolist() == theirs.tolist()


@given(predictions())
def test_figures_from_the_confusion_matrix(case):
    labels, guesses, _ = case
    confusion = metrics.confusion_matrix(*case)
    close(metrics.accuracy(confusion), sk.accuracy_score(labels, guesses))
    close(metrics.balanced_accuracy(confusion), oracle(sk.balanced_accuracy_score, labels, guesses))
    close(metrics.macro_f1(confusion), oracle(sk.f1_score, labels, guesses, average="macro"))
    if labels.unique().numel() > 1:
        theirs = oracle(geometric_mean_score, labels, guesses, average="macro")
        close(metrics.g_mean(confusion), theirs)
    else:  # no other class, so its specificity is zero over zero
        assert math.isnan(metrics.g_mean(confusion))


@given(predictions())
def test_figures_of_each_class(case):
    labels, guesses, num_classes = case
    confusion = metrics.confusion_matrix(*case)
    names = {"labels": range(num_classes), "average": None, "zero_division": np.nan}
    for ours, theirs in [
        (metrics.recalls(confusion), sk.recall_score(labels, guesses, **names)),
        (metrics.f1_scores(confusion), sk.f1_score(labels, guesses, **names)),
    ]:
        np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-6)
    for label, ours in enumerate(metrics.specificities(confusion).tolist()):
        others = labels != label
        kept = (guesses[others] != label).double().mean()
        assert ours == pytest.approx(float(kept), abs=1e-6, nan_ok=True)


@given(scores())
def test_average_precision(case):
    labels, probabilities = case
    theirs = [
        sk.average_precision_score(labels == label, probabilities[:, label])
        for label in labels.unique()
    ]
    close(metrics.average_precision(labels, probabilities), np.mean(theirs))


@given(scores())
def test_auroc(case):
    labels, probabilities = case
    theirs = [
        sk.roc_auc_score(labels == label, probabilities[:, label])
        for label in labels.unique()
        if (labels != label).any()
    ]
    close(metrics.auroc(labels, probabilities), np.mean(theirs) if theirs else math.nan)


def test_g_mean_is_a_function_of_balanced_accuracy_on_balanced_sets():
    labels = torch.arange(4).repeat(25)
    guesses = torch.where(normal(100) > 0.3, labels, (labels + 1) % 4)
    confusion = metrics.confusion_matrix(labels, guesses, 4)
    share = float(metrics.balanced_accuracy(confusion))
    close(metrics.g_mean(confusion), math.sqrt(share * (1 - (1 - share) / 3)))


def test_validation_score_is_macro_f1_on_validation_nodes_alone():
    task = small_task()
    logits = normal(task.graph.num_nodes, 3)
    expected = sk.f1_score(task.graph.y[task.val], logits[task.val].argmax(1), average="macro")
    close(metrics.validation_score(logits, task), expected)
    logits[~task.val] = 100.0
    close(metrics.validation_score(logits, task), expected)


def test_evaluate_gives_every_figure_of_the_test_nodes():
    task = small_task()
    probabilities = normal(task.graph.num_nodes, 3, dtype=torch.float32).softmax(1)
    labels, chosen = task.graph.y[task.test], probabilities[task.test]
    guesses = chosen.argmax(1)
    result = metrics.evaluate(task, probabilities)
    assert set(result) == {
        "balanced_accuracy",
        "macro_f1",
        "g_mean",
        "accuracy",
        "average_precision",
        "auroc",
        "per_class_recall",
        "per_class_f1",
        "per_class_support",
        "confusion_matrix",
    }
    close(result["balanced_accuracy"], sk.balanced_accuracy_score(labels, guesses))
    close(result["macro_f1"], sk.f1_score(labels, guesses, average="macro"))
    close(result["g_mean"], geometric_mean_score(labels, guesses, average="macro"))
    close(result["accuracy"], sk.accuracy_score(labels, guesses))
    close(result["auroc"], sk.roc_auc_score(labels, chosen, multi_class="ovr"))
    assert result["per_class_support"] == [8, 8, 8]
    assert result["confusion_matrix"] == sk.confusion_matrix(labels, guesses).tolist()
    assert result["per_class_recall"] == pytest.approx(
        sk.recall_score(labels, guesses, average=None)
    )
    assert result["per_class_f1"] == pytest.approx(sk.f1_score(labels, guesses, average=None))
    assert all(isinstance(value, float | list) for value in result.values())


def test_perfect_probabilities_score_one():
    task = small_task()
    probabilities = torch.nn.functional.one_hot(task.graph.y, 3).float()
    result = metrics.evaluate(task, probabilities)
    for name in ("balanced_accuracy", "macro_f1", "g_mean", "accuracy", "auroc"):
        assert result[name] == 1
    assert result["average_precision"] == 1


def test_evaluate_refuses_what_it_cannot_score():
    task = small_task()
    nodes = task.graph.num_nodes
    with pytest.raises(ValueError, match=rf"shape \({nodes}, 3\), got \({nodes}, 4\)"):
        metrics.evaluate(task, torch.zeros(nodes, 4))
    with pytest.raises(ValueError, match="Some test nodes have no label"):
        metrics.evaluate(task.without_test_labels(), torch.zeros(nodes, 3))
    task.test.zero_()
    with pytest.raises(ValueError, match="no test nodes"):
        metrics.evaluate(task, torch.zeros(nodes, 3))


@given(st.integers(1, 12), st.integers(2, 4), st.integers(0, 500))
def test_macro_f1_of_several_replicas(size, num_classes, seed):
    stream = torch.Generator().manual_seed(seed)
    labels, guesses = torch.randint(num_classes, (2, 3, size), generator=stream)
    counted = torch.rand(3, size, generator=stream) < 0.7
    counted[:, 0] = True
    found = metrics.replica_macro_f1(labels, guesses, counted, num_classes)
    for replica in range(3):
        kept = counted[replica]
        confusion = metrics.confusion_matrix(
            labels[replica][kept], guesses[replica][kept], num_classes
        )
        assert found[replica].item() == pytest.approx(metrics.macro_f1(confusion).item(), abs=1e-6)


@pytest.mark.parametrize("positive", [None, 0])
def test_two_classes_have_figures_of_the_one_that_matters(positive):
    task = small_task(num_classes=2)
    rare = int(task.class_counts.argmin()) if positive is None else positive
    probabilities = normal(task.graph.num_nodes, 2, dtype=torch.float32).softmax(1)
    result = metrics.evaluate(task, probabilities, positive=positive, k=3)
    truth, chosen = task.graph.y[task.test] == rare, probabilities[task.test][:, rare]
    close(result["positive_average_precision"], sk.average_precision_score(truth, chosen))
    close(result["precision_at_k"], float(truth[chosen.topk(3).indices].double().mean()))
    threshold = result["tuned_threshold"]
    close(result["tuned_f1"], sk.f1_score(truth, chosen.double() >= threshold))
    validation = task.graph.y[task.val] == rare, probabilities[task.val][:, rare]
    assert threshold in validation[1].double()
    best = max(
        sk.f1_score(validation[0], validation[1].double() >= one) for one in validation[1].double()
    )
    close(sk.f1_score(validation[0], validation[1].double() >= threshold), best)
    hidden = replace(task, val=torch.zeros_like(task.val))
    assert math.isnan(metrics.evaluate(hidden, probabilities)["tuned_f1"])
    with pytest.raises(ValueError, match="positive must be class 0 or 1, got 2"):
        metrics.evaluate(task, probabilities, positive=2)
