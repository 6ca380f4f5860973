"""The validation score against scikit-learn."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk
from sklearn.metrics import average_precision_score, balanced_accuracy_score, log_loss, recall_score
from torch_geometric.data import Data

from evengraph.core.rng import generator
from evengraph.metrics import multiclass as selection
from evengraph.metrics.evaluation import Validation, suitable_metric
from evengraph.metrics.multiclass import batched_stopping_scores, stopping_score, validation_score
from small_graphs import graph_of, normal, small_task, task_of

COARSE, FINE = 4, 10**6


def two_classes(*counts, extra=0):
    """A task whose validation nodes have these counts; further nodes are in no set."""
    y = torch.cat([torch.full((n,), label) for label, n in enumerate(counts)])
    size = y.numel() + extra
    y = torch.cat([y, torch.zeros(extra, dtype=torch.long)])
    graph = Data(x=torch.ones(size, 1), edge_index=torch.zeros(2, 0, dtype=torch.long), y=y)
    return task_of(graph, [], range(size - extra), num_classes=len(counts))


@st.composite
def rankings(draw):
    """Scores of three replicas, some tied; which nodes count, which of those are positive."""
    size, stream = draw(st.integers(1, 20)), torch.Generator().manual_seed(draw(st.integers(0, 99)))
    levels = draw(st.sampled_from([COARSE, FINE]))
    scores = torch.randint(levels, (3, size), generator=stream) / levels
    mask, positive = torch.rand(2, 3, size, generator=stream) < 0.6
    mask[:, 0] = positive[:, 0] = True
    return positive & mask, scores, mask


@given(rankings())
def test_average_precision_of_several_replicas(case):
    found = selection.batched_average_precision(*case)
    for value, positive, scores, mask in zip(found, *case, strict=True):
        expected = sk.average_precision_score(positive[mask], scores[mask])
        assert float(value) == pytest.approx(expected, abs=1e-12)


def test_nodes_that_do_not_count_are_in_no_tie():
    positive, scores = torch.tensor([[True, False]]), torch.full((1, 2), -torch.inf)
    mask = torch.tensor([[True, False]])
    assert selection.batched_average_precision(positive, scores, mask).item() == 1


@pytest.mark.parametrize(
    ("counts", "rare"),
    [
        ((97, 3), 1),
        ((3, 97), 0),
        ((76, 24), 1),
        ((75, 25), None),
        ((50, 50), None),
        ((100, 0), None),
        ((97, 2, 1), None),
    ],
)
def test_which_class_is_rare(counts, rare):
    task = two_classes(*counts)
    assert selection.rare_class(task) == rare
    assert (selection.criterion(task) == "Macro-F1") == (rare is None)


def test_macro_f1_on_validation_nodes_alone():
    task = small_task()
    logits = normal(task.graph.num_nodes, 3)
    expected = sk.f1_score(task.graph.y[task.val], logits[task.val].argmax(1), average="macro")
    assert float(validation_score(logits, task)) == pytest.approx(expected, abs=1e-6)
    logits[~task.val] = 100.0
    assert float(validation_score(logits, task)) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("counts", [(90, 10), (10, 90)])
def test_a_rare_class_counts_by_rank_and_by_decision(counts):
    task = two_classes(*counts, extra=7)
    rare, labels = int(counts[1] < counts[0]), task.graph.y[task.val]
    logits = normal(107, 2) + torch.nn.functional.one_hot(task.graph.y, 2)
    shown = logits[task.val]
    expected = (
        sk.average_precision_score(labels == rare, shown[:, rare] - shown[:, 1 - rare])
        + sk.balanced_accuracy_score(labels, shown.argmax(1))
    ) / 2
    assert float(validation_score(logits, task)) == pytest.approx(expected, abs=1e-6)
    probabilities = logits.softmax(1).float()
    assert float(validation_score(probabilities, task)) == pytest.approx(expected, abs=1e-6)
    logits[~task.val] = 100.0
    assert float(validation_score(logits, task)) == pytest.approx(expected, abs=1e-6)


@given(st.integers(0, 99))
def test_replicas_score_as_each_alone(seed):
    tasks = [two_classes(*counts) for counts in ((36, 4), (2, 38), (20, 20), (40, 0))]
    logits = torch.randn(4, 40, 2, generator=torch.Generator().manual_seed(seed))
    rare = [selection.rare_class(task) for task in tasks]
    found = selection.batched_validation_scores(
        torch.stack([task.graph.y for task in tasks]),
        logits,
        torch.ones(4, 40, dtype=torch.bool),
        torch.tensor([-1 if label is None else label for label in rare]),
    )
    assert rare == [1, 0, None, None]
    alone = [float(validation_score(*pair)) for pair in zip(logits, tasks, strict=True)]
    assert found.tolist() == pytest.approx(alone, abs=1e-6)


@pytest.mark.parametrize("counts", [(20, 3), (9, 8), (5, 6, 7)], ids=["rare", "two", "three"])
def test_rows_of_the_validation_nodes_give_the_same_score(counts):
    task = two_classes(*counts, extra=4)
    logits = normal(task.graph.num_nodes, len(counts))
    found = selection.score_validation_rows(logits[task.val], task)
    assert torch.equal(found, validation_score(logits, task))


def expected(on, labels, logits):
    if on == "loss":
        return -log_loss(labels, logits.softmax(1), labels=range(logits.shape[1]))
    return recall_score(labels, logits.argmax(1), labels=labels.unique(), average="macro")


@pytest.mark.parametrize("on", ["loss", "accuracy"])
@pytest.mark.parametrize("seed", range(3))
def test_one_run(on, seed):
    task = small_task()
    logits = normal(task.graph.num_nodes, 3, seed=seed)
    value = stopping_score(on, logits, task)
    assert float(value) == pytest.approx(expected(on, task.graph.y[task.val], logits[task.val]))
    assert stopping_score("score", logits, task) == validation_score(logits, task)


@pytest.mark.parametrize("on", ["loss", "accuracy"])
def test_several_runs_with_nodes_that_do_not_count(on):
    labels = torch.randint(4, (5, 30), generator=torch.Generator().manual_seed(1))
    labels[0] = labels[0].clamp(max=2)  # a class without nodes
    mask = torch.rand(5, 30, generator=torch.Generator().manual_seed(2)) < 0.7
    logits = normal(5, 30, 4)
    values = batched_stopping_scores(on, labels, logits, mask, torch.full((5,), -1))
    for value, one, scores, counted in zip(values, labels, logits, mask, strict=True):
        assert float(value) == pytest.approx(expected(on, one[counted], scores[counted]))


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
    # one that is undefined is zero
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
