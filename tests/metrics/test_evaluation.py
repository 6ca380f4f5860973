"""Metrics, evaluate and the validation score against scikit-learn and imbalanced-learn."""

import json
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
from sklearn.metrics import average_precision_score, balanced_accuracy_score, log_loss, recall_score
from torch_geometric.data import Data

from command_line import call
from evengraph import metrics
from evengraph.core.rng import generator
from evengraph.metrics import binary
from evengraph.metrics import multiclass as selection
from evengraph.metrics.calibration import Calibrator, brier_score, expected_calibration_error
from evengraph.metrics.decisions import BEST_F1, Costs, Decision, Rule
from evengraph.metrics.evaluation import (
    Predictions,
    Validation,
    evaluate,
    suitable_metric,
)
from evengraph.metrics.multiclass import (
    batched_stopping_scores,
    stopping_score,
    validation_likelihood,
    validation_score,
)
from evengraph.metrics.registry import METRICS, Metric, abbreviations, comparable_metrics
from small_graphs import normal, small_task, task_of


def close(ours, theirs):
    assert float(ours) == pytest.approx(theirs, abs=1e-6, nan_ok=True)


def test_evaluate_gives_every_figure_of_the_test_nodes():
    task = small_task()
    probabilities = normal(task.graph.num_nodes, 3, dtype=torch.float32).softmax(1)
    labels, chosen = task.graph.y[task.test], probabilities[task.test]
    guesses = chosen.argmax(1)
    result = metrics.evaluate(task, probabilities)
    common = {
        name
        for name, metric in metrics.METRICS.items()
        if not (metric.binary or metric.calibration)
    }
    per_class = {"per_class_recall", "per_class_f1", "per_class_support", "confusion_matrix"}
    assert set(result) == common | per_class
    assert {"balanced_accuracy", "macro_f1", "g_mean", "accuracy", "auroc"} <= common
    confusion = metrics.confusion_matrix(labels, guesses, 3)
    for name in ("balanced_accuracy", "macro_f1", "g_mean", "accuracy"):
        close(result[name], float(getattr(metrics, name)(confusion)))
    close(result["auroc"], float(metrics.auroc(labels, chosen)))
    close(result["average_precision"], float(metrics.average_precision(labels, chosen)))
    assert result["per_class_support"] == [8, 8, 8]
    assert result["confusion_matrix"] == confusion.tolist()
    assert result["per_class_recall"] == metrics.recalls(confusion).tolist()
    assert result["per_class_f1"] == metrics.f1_scores(confusion).tolist()
    assert all(isinstance(value, float | list) for value in result.values())


def test_evaluate_refuses_what_it_cannot_score():
    task = small_task()
    nodes = task.graph.num_nodes
    with pytest.raises(ValueError, match=rf"shape \({nodes}, 3\), got \({nodes}, 4\)"):
        metrics.evaluate(task, torch.zeros(nodes, 4))
    with pytest.raises(ValueError, match="Some test nodes have no label"):
        metrics.evaluate(task.hide_test_labels(), torch.zeros(nodes, 3))
    task.test.zero_()
    with pytest.raises(ValueError, match="no test nodes"):
        metrics.evaluate(task, torch.zeros(nodes, 3))


@pytest.mark.parametrize("positive", [None, 0])
def test_two_classes_have_figures_of_the_one_that_matters(positive):
    task = small_task(num_classes=2)
    rare = int(task.class_counts.argmin()) if positive is None else positive
    probabilities = normal(task.graph.num_nodes, 2, dtype=torch.float32).softmax(1)
    result = metrics.evaluate(task, probabilities, positive=positive)
    truth, chosen = task.graph.y[task.test] == rare, probabilities[task.test][:, rare]
    close(result["positive_average_precision"], sk.average_precision_score(truth, chosen))
    close(
        result["precision_at_k"],
        float(truth[chosen.topk(int(truth.sum())).indices].double().mean()),
    )
    threshold = result["tuned_threshold"]
    labels, held_out = task.graph.y[task.val], probabilities[task.val]
    calibrator = Calibrator.fit(held_out, labels)
    decision = Decision.choose(calibrator(held_out), labels, rare, BEST_F1)
    assert threshold == decision.threshold
    flags = calibrator(probabilities[task.test])[:, rare].double() >= threshold
    close(result["tuned_f1"], sk.f1_score(truth, flags))
    other = metrics.evaluate(task, probabilities, positive=positive, held_out=task.train)
    assert other["tuned_threshold"] != threshold
    hidden = replace(task, val=torch.zeros_like(task.val))
    assert math.isnan(metrics.evaluate(hidden, probabilities)["tuned_f1"])
    with pytest.raises(ValueError, match="positive must be class 0 or 1, got 2"):
        metrics.evaluate(task, probabilities, positive=2)


def test_metrics_of_calibration_are_added_if_asked_for():
    task = small_task()
    probabilities = normal(task.graph.num_nodes, 3).softmax(1)
    shares = [0.5, 0.3, 0.2]
    result = metrics.evaluate(task, probabilities, shares=shares, calibration=True)
    labels, raw = task.graph.y[task.test], probabilities[task.test]
    known = probabilities[task.val], task.graph.y[task.val]
    calibrated = Calibrator.fit(*known, shares=shares)(raw)
    assert {name: result[name] for name, one in metrics.METRICS.items() if one.calibration} == {
        "calibration_error": expected_calibration_error(labels, raw),
        "calibrated_error": expected_calibration_error(labels, calibrated),
        "brier": brier_score(labels, raw),
        "calibrated_brier": brier_score(labels, calibrated),
    }
    without = metrics.evaluate(task, probabilities)
    assert without == {name: value for name, value in result.items() if name in without}
    values = metrics.reported(without)  # in percent
    assert list(values) == [name for name, value in without.items() if isinstance(value, float)]
    assert values["macro_f1"] == 100 * without["macro_f1"]


LABELS = torch.tensor([0, 0, 1, 1, 0])
HIGH = torch.tensor([0.1, 0.6, 0.7, 0.4, 0.2])
BOTH = torch.stack([1 - HIGH, HIGH], 1)


def test_the_highest_scores_are_as_many_as_there_are_positive_nodes():
    assert Predictions(labels=LABELS, probabilities=BOTH).top == 2
    assert Predictions(labels=LABELS * 0, probabilities=BOTH).top == 1


def test_the_threshold_comes_from_held_out_nodes_alone():
    assert math.isnan(Predictions(labels=LABELS, probabilities=BOTH).threshold)
    held_out = (torch.tensor([0, 1, 0, 1]), torch.tensor([[0.8, 0.2], [0.7, 0.3]] * 2))
    for costs in (Costs(1.0, 100.0), Costs(9.0, 1.0)):
        case = Predictions(
            labels=LABELS, probabilities=BOTH, held_out=held_out, rule=Rule.of(costs), positive=0
        )
        assert case.threshold == pytest.approx(costs.alarm / (costs.miss + costs.alarm))


MADE_UP = Metric(
    name="worst_recall",
    title="worst recall",
    short="worst",
    meaning="Recall of the class that is found least.",
    function=lambda p: (p.confusion.diagonal() / p.confusion.sum(1)).min(),
)


@pytest.fixture
def made_up(monkeypatch):
    monkeypatch.setitem(METRICS, MADE_UP.name, MADE_UP)
    return MADE_UP


def scored(positive, scores, **others):
    """Two classes, with the scores as probabilities of the second."""
    return Predictions(
        labels=torch.tensor(positive).long(),
        probabilities=torch.tensor([[1 - score, score] for score in scores]),
        **others,
    )


def test_binary_metrics_by_hand():
    labels, scores = [True, False, True, False, False], [0.9, 0.8, 0.7, 0.2, 0.1]
    known = scored([True, True, False] * 9, [0.85, 0.5, 0.1] * 9)
    case = scored(labels, scores, held_out=(known.labels, known.probabilities))
    calibrated = case.calibrator(torch.tensor([[0.5, 0.5], [0.2, 0.8]]))[:, 1].tolist()
    binary = {name: metric for name, metric in METRICS.items() if metric.binary}
    assert {name: float(one.function(case)) for name, one in binary.items()} == pytest.approx(
        {
            "positive_average_precision": 0.5 * 1 + 0.5 * 2 / 3,
            "precision_at_k": 0.5,
            "recall_at_1": 0.5,
            "recall_at_5": 0.5,
            "tuned_threshold": calibrated[0],
            "tuned_f1": 0.8,
        }
    )
    assert math.isnan(METRICS["tuned_f1"].function(scored(labels, scores)))


@pytest.mark.parametrize("name", METRICS)
def test_entries(name):
    metric = METRICS[name]
    assert metric.name == name
    assert metric.meaning.endswith(".")
    assert ". " not in metric.meaning
    assert len(metric.short) <= 16
    low, high = metric.range
    task = small_task(num_classes=2)
    graph_size = task.graph.num_nodes
    case = Predictions(
        labels=task.graph.y,
        probabilities=normal(graph_size, 2).softmax(1),
        held_out=(task.graph.y, normal(graph_size, 2).softmax(1)),
    )
    assert low <= float(metric.function(case)) <= high


def test_abbreviations_and_metrics_without_a_better_direction():
    assert not {"tuned_threshold", "brier"} & comparable_metrics().keys()
    assert next(iter(comparable_metrics())) == "balanced_accuracy"
    two = [METRICS[name] for name in ("precision_at_k", "auroc", "recall_at_1")]
    assert abbreviations(two) == "P@k is precision at k; R@1% is recall at 1% FPR"


def test_a_new_metric_reaches_comparisons_and_their_tables(made_up, tmp_path, capsys):
    task = small_task()
    result = evaluate(task, normal(task.graph.num_nodes, 3).softmax(1))
    assert result["worst_recall"] == min(result["per_class_recall"])
    words = ["compare", "toy", "--method", "gcn,mlp", "--splits", "2", "--set", "max_epochs=2"]
    assert call(*words, "--out", tmp_path) == 0
    heads = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert any(line[:1] == ["method"] and "worst" in line for line in heads)
    saved = json.loads((tmp_path / "comparison.json").read_text())
    assert "worst_recall" in saved["methods"][0]["figures"]
    assert "worst_recall_low" in (tmp_path / "comparison.csv").read_text()
    assert call(*words, "--metric", "worst_recall") == 0
    assert "worst recall" in capsys.readouterr().out


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


COARSE, FINE = 4, 10**6


def validated(*counts, extra=0):
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
    task = validated(*counts)
    assert selection.rare_class(task) == rare
    assert (selection.criterion(task) == "Macro-F1") == (rare is None)


def test_macro_f1_on_validation_nodes_alone():
    task = small_task()
    logits = normal(task.graph.num_nodes, 3)
    expected = sk.f1_score(task.graph.y[task.val], logits[task.val].argmax(1), average="macro")
    assert float(validation_score(logits, task)) == pytest.approx(expected, abs=1e-6)
    logits[~task.val] = 100.0
    assert float(validation_score(logits, task)) == pytest.approx(expected, abs=1e-6)


def test_the_likelihood_is_that_of_the_validation_labels():
    task = validated(8, 2, extra=3)
    logits = normal(13, 2)
    expected = -sk.log_loss(task.graph.y[task.val], logits[task.val].softmax(1), labels=[0, 1])
    assert float(validation_likelihood(logits, task)) == pytest.approx(expected)
    logits[~task.val] = 100.0
    assert float(validation_likelihood(logits, task)) == pytest.approx(expected)


@pytest.mark.parametrize("counts", [(90, 10), (10, 90)])
def test_a_rare_class_counts_by_rank_and_by_decision(counts):
    task = validated(*counts, extra=7)
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
    tasks = [validated(*counts) for counts in ((36, 4), (2, 38), (20, 20), (40, 0))]
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
    task = validated(*counts, extra=4)
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
    task = validated(*counts)
    assert suitable_metric(task) == metric
    validation = Validation.of(task)
    assert (validation.metric, validation.positive) == (metric, positive)
    assert validation.labels.bincount().tolist() == list(counts)
    assert Validation.of(task, "accuracy").metric == "accuracy"


def test_a_metric_of_two_classes_needs_two():
    message = "metric tuned_f1 is for two classes, got 3"
    with pytest.raises(ValueError, match=message):
        Validation.of(validated(5, 5, 5), "tuned_f1")
    assert Validation.of(validated(5, 5), "tuned_f1").metric == "tuned_f1"


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
    samples = validation.resamples(generator(1), 2000)
    scores = [validation.resampled(one, samples) for one in (first, second)]
    found = float((scores[0] - scores[1]).std())
    gaps = right[0].double() - right[1].double()
    variances = [gaps[labels == c].var(unbiased=False) / (labels == c).sum() for c in (0, 1)]
    assert found == pytest.approx(float(sum(variances)) ** 0.5 / 2, rel=0.08)


@pytest.mark.parametrize("at_once", [1, 130, 2**20])  # one sample, two, and all
def test_average_precision_of_resamples_is_that_of_each(monkeypatch, at_once):
    monkeypatch.setattr(binary, "AT_ONCE", at_once)
    validation = Validation(torch.tensor([0, 1, 1] * 20), RARE, positive=0)
    values = (3 * normal(60, 2, seed=4)).round().softmax(1)  # with ties
    samples = validation.resamples(generator(2), 20)
    expected = [validation.score(values, rows) for rows in samples]
    assert validation.resampled(values, samples).tolist() == pytest.approx(expected)
