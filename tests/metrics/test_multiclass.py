"""Metrics against scikit-learn and imbalanced-learn."""

import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from imblearn.metrics import geometric_mean_score
from sklearn import metrics as sk

from evengraph import metrics


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
def test_figures_from_the_confusion_matrix(case):
    labels, guesses, num_classes = case
    confusion = metrics.confusion_matrix(*case)
    theirs = sk.confusion_matrix(labels, guesses, labels=range(num_classes))
    assert confusion.tolist() == theirs.tolist()
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
def test_average_precision_and_auroc(case):
    labels, probabilities = case
    each = [(labels == label, probabilities[:, label]) for label in labels.unique()]
    theirs = [sk.average_precision_score(*one) for one in each]
    close(metrics.average_precision(labels, probabilities), np.mean(theirs))
    theirs = [sk.roc_auc_score(*one) for one in each if not one[0].all()]
    close(metrics.auroc(labels, probabilities), np.mean(theirs) if theirs else math.nan)


@given(st.integers(1, 12), st.integers(2, 4), st.integers(0, 500))
def test_macro_f1_of_several_replicas(size, num_classes, seed):
    stream = torch.Generator().manual_seed(seed)
    labels, guesses = torch.randint(num_classes, (2, 3, size), generator=stream)
    counted = torch.rand(3, size, generator=stream) < 0.7
    counted[:, 0] = True
    found = metrics.batched_macro_f1(labels, guesses, counted, num_classes)
    for replica in range(3):
        kept = counted[replica]
        confusion = metrics.confusion_matrix(
            labels[replica][kept], guesses[replica][kept], num_classes
        )
        expected = metrics.macro_f1(confusion).item()
        assert found[replica].item() == pytest.approx(expected, abs=1e-6)
        alone = metrics.macro_f1_score(labels[replica][kept], guesses[replica][kept], num_classes)
        assert alone.item() == pytest.approx(expected, abs=1e-6)
