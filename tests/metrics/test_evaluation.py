"""evaluate against scikit-learn and imbalanced-learn."""

import math
from dataclasses import replace

import pytest
import torch
from imblearn.metrics import geometric_mean_score
from sklearn import metrics as sk

from evengraph import metrics
from evengraph.metrics.calibration import (
    Calibrator,
    brier_score,
    expected_calibration_error,
)
from small_graphs import normal, small_task


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
        metrics.evaluate(task.hide_test_labels(), torch.zeros(nodes, 3))
    task.test.zero_()
    with pytest.raises(ValueError, match="no test nodes"):
        metrics.evaluate(task, torch.zeros(nodes, 3))


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


def test_calibrators_add_calibration_metrics():
    task = small_task()
    probabilities = normal(task.graph.num_nodes, 3).softmax(1)
    plain, shifted = Calibrator(temperature=2.0), Calibrator(shift=(0.5, 0.0, 0.0))
    result = metrics.evaluate(task, probabilities, calibrators=(plain, shifted))
    labels, raw = task.graph.y[task.test], probabilities[task.test]
    assert {name: result[name] for name, one in metrics.METRICS.items() if one.calibration} == {
        "calibration_error": expected_calibration_error(labels, raw),
        "calibrated_error": expected_calibration_error(labels, plain(raw)),
        "shifted_error": expected_calibration_error(labels, shifted(raw)),
        "brier": brier_score(labels, raw),
        "calibrated_brier": brier_score(labels, plain(raw)),
    }
    without = metrics.evaluate(task, probabilities)
    assert without == {name: value for name, value in result.items() if name in without}


def test_metrics_are_reported_in_percent():
    task = small_task()
    scores = metrics.evaluate(task, normal(task.graph.num_nodes, 3).softmax(1))
    values = metrics.reported(scores)
    assert list(values) == [name for name, value in scores.items() if isinstance(value, float)]
    assert values["macro_f1"] == 100 * scores["macro_f1"]
