"""Selection on validation against scikit-learn and formulas."""

import pytest
import torch
from sklearn.metrics import average_precision_score, balanced_accuracy_score

from evengraph.core.rng import generator
from evengraph.metrics.selection import Validation, suitable_metric
from small_graphs import graph_of, normal, task_of

RARE, ALL = "positive_average_precision", "balanced_accuracy"


def task_of_counts(*counts):
    """A task whose validation nodes have so many of each class."""
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    total, classes = len(labels), range(len(counts))
    graph = graph_of(torch.ones(total + len(counts), 1), [], [*labels.tolist(), *classes])
    return task_of(graph, range(total, total + len(counts)), range(total))


@pytest.mark.parametrize(
    ("counts", "metric", "positive"),
    [
        ((2, 18), RARE, 0),
        ((18, 2), RARE, 1),
        ((8, 12), ALL, 0),
        ((10, 10), ALL, 1),
        ((1, 18, 1), ALL, 1),  # rare classes of three are what balanced accuracy is for
    ],
)
def test_the_metric_fits_the_task(counts, metric, positive):
    task = task_of_counts(*counts)
    assert suitable_metric(task) == metric
    validation = Validation.of(task)
    assert (validation.metric, validation.positive) == (metric, positive)
    assert validation.labels.bincount().tolist() == list(counts)
    assert Validation.of(task, "accuracy").metric == "accuracy"


def test_a_metric_of_two_classes_needs_two():
    message = "metric tuned_f1 is for two classes, got 3"
    with pytest.raises(ValueError, match=message):
        Validation.of(task_of_counts(5, 5, 5), "tuned_f1")
    assert Validation.of(task_of_counts(5, 5), "tuned_f1").metric == "tuned_f1"


def test_scores_are_those_of_scikit_learn():
    labels, values = torch.arange(60) % 3, normal(60, 3).softmax(1)
    three = Validation(labels, ALL)
    assert three.score(values) == pytest.approx(balanced_accuracy_score(labels, values.argmax(1)))
    labels, values = (torch.arange(60) % 5 == 0).long(), normal(60, 2).softmax(1)
    two = Validation(1 - labels, RARE, positive=0)
    expected = average_precision_score(labels, values[:, 0])
    assert two.score(values) == pytest.approx(expected)
    rows = torch.tensor([0, 5, 5, 1, 2])
    expected = average_precision_score(labels[rows], values[rows, 0])
    assert two.score(values, rows) == pytest.approx(expected)


def test_an_undefined_score_is_zero():
    assert Validation(torch.zeros(4, dtype=torch.long), RARE).score(normal(4, 2).softmax(1)) == 0


def test_resamples_have_the_classes_of_the_nodes():
    labels = torch.tensor([0, 0, 0, 0, 1, 1, 2])
    samples = Validation(labels, ALL).resamples(generator(0), 50)
    assert len(samples) == 50
    for rows in samples:
        assert labels[rows].bincount().tolist() == [4, 2, 1]
    assert set(torch.cat(samples).tolist()) == set(range(7))
    again = Validation(labels, ALL).resamples(generator(0), 50)
    assert all(torch.equal(one, other) for one, other in zip(samples, again, strict=True))


def test_noise_is_the_standard_error_of_the_paired_difference():
    labels = torch.tensor([0] * 60 + [1] * 40)
    right = normal(2, 100, seed=3) > -0.5
    first, second = (
        torch.nn.functional.one_hot(torch.where(hit, labels, 1 - labels), 2).double()
        for hit in right
    )
    validation = Validation(labels, ALL)
    found = validation.noise(first, second, validation.resamples(generator(1), 2000))
    gaps = right[0].double() - right[1].double()
    variances = [gaps[labels == c].var(unbiased=False) / (labels == c).sum() for c in (0, 1)]
    assert found == pytest.approx(float(sum(variances)) ** 0.5 / 2, rel=0.08)
    assert validation.noise(first, first, validation.resamples(generator(1))) == 0


def test_noise_is_measured_on_a_hundred_samples():
    assert len(Validation(torch.tensor([0, 1]), ALL).resamples(generator(0))) == 100
