"""evaluate against scikit-learn and imbalanced-learn."""

import json
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from imblearn.metrics import geometric_mean_score
from sklearn import metrics as sk

from evengraph import metrics
from evengraph.cli import main
from evengraph.metrics.calibration import Calibrator, brier_score, expected_calibration_error
from evengraph.metrics.decisions import Costs
from evengraph.metrics.evaluation import EDGES, Predictions, agreement_bands, evaluate
from evengraph.metrics.registry import METRICS, Metric, abbreviations, comparable_metrics
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
    values = metrics.reported(without)  # in percent
    assert list(values) == [name for name, value in without.items() if isinstance(value, float)]
    assert values["macro_f1"] == 100 * without["macro_f1"]


LABELS = torch.tensor([0, 0, 1, 1, 0])
HIGH = torch.tensor([0.1, 0.6, 0.7, 0.4, 0.2])
BOTH = torch.stack([1 - HIGH, HIGH], 1)


@pytest.mark.parametrize(("k", "top"), [(None, 2), (1, 1), (4, 4), (99, 5)])
def test_the_highest_scores_are_as_many_as_there_are_positive_nodes(k, top):
    assert Predictions(labels=LABELS, probabilities=BOTH, k=k).top == top
    assert Predictions(labels=LABELS * 0, probabilities=BOTH).top == 1


def test_the_threshold_comes_from_validation_alone():
    assert math.isnan(Predictions(labels=LABELS, probabilities=BOTH).threshold)
    validation = (torch.tensor([0, 1, 0, 1]), torch.tensor([[0.8, 0.2], [0.7, 0.3]] * 2))
    case = Predictions(labels=LABELS, probabilities=BOTH, validation=validation)
    assert case.threshold == pytest.approx(0.3)
    dear = Costs(miss=1.0, alarm=100.0)
    careful = Predictions(
        labels=LABELS, probabilities=BOTH, validation=validation, costs=dear, positive=0
    )
    assert careful.threshold > case.threshold


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


def predictions(positive, scores, **others):
    """Two classes, with the scores as probabilities of the second."""
    return Predictions(
        labels=torch.tensor(positive).long(),
        probabilities=torch.tensor([[1 - score, score] for score in scores]),
        **others,
    )


def call(*arguments):
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    assert stop.value.code == 0


def test_binary_metrics_by_hand():
    labels, scores = [True, False, True, False, False], [0.9, 0.8, 0.7, 0.2, 0.1]
    held_out = predictions([True, True, False], [0.85, 0.5, 0.1])
    validation = held_out.labels, held_out.probabilities
    case = predictions(labels, scores, validation=validation)
    binary = {name: metric for name, metric in METRICS.items() if metric.binary}
    assert {name: float(one.function(case)) for name, one in binary.items()} == pytest.approx(
        {
            "positive_average_precision": 0.5 * 1 + 0.5 * 2 / 3,
            "precision_at_k": 0.5,
            "recall_at_k": 0.5,
            "recall_at_1": 0.5,
            "recall_at_5": 0.5,
            "tuned_threshold": 0.5,
            "tuned_f1": 0.8,
        }
    )
    at_k = METRICS["precision_at_k"].function
    assert at_k(predictions(labels, scores, k=3)) == pytest.approx(2 / 3)
    assert at_k(predictions(labels, scores, k=99)) == pytest.approx(2 / 5)
    assert METRICS["recall_at_k"].function(predictions(labels, scores, k=3)) == pytest.approx(1)
    assert math.isnan(METRICS["tuned_f1"].function(predictions(labels, scores)))


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
        validation=(task.graph.y, normal(graph_size, 2).softmax(1)),
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
    call(*words, "--out", str(tmp_path))
    heads = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert any(line[:1] == ["method"] and "worst" in line for line in heads)
    saved = json.loads((tmp_path / "comparison.json").read_text())
    assert "worst_recall" in saved["methods"][0]["figures"]
    assert "worst_recall_low" in (tmp_path / "comparison.csv").read_text()
    call(*words, "--metric", "worst_recall")
    assert "worst recall" in capsys.readouterr().out


def test_nodes_are_counted_in_their_bands():
    agreement = torch.tensor([1.0, 0.96, 0.95, 0.8, 0.75, 0.6, 0.2])
    correct = torch.tensor([True, True, False, True, False, False, False])
    assert agreement_bands(agreement, correct) == [
        {"from": 0.0, "nodes": 1, "correct": 0},
        {"from": 0.5, "nodes": 1, "correct": 0},
        {"from": 0.75, "nodes": 2, "correct": 1},
        {"from": 0.95, "nodes": 3, "correct": 2},
    ]
    thirds = torch.full((3,), 1 / 3).sum()  # of rounded weights, not below its band
    assert agreement_bands(thirds.unsqueeze(0) * 0.75, torch.tensor([True]))[0]["from"] == 0.75


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans())))
def test_every_node_is_in_one_band(nodes):
    agreement = torch.tensor([value for value, _ in nodes], dtype=torch.float64)
    correct = torch.tensor([hit for _, hit in nodes], dtype=torch.bool)
    bands = agreement_bands(agreement, correct)
    assert sum(band["nodes"] for band in bands) == len(nodes)
    assert sum(band["correct"] for band in bands) == int(correct.sum())
    assert [band["from"] for band in bands] == sorted({band["from"] for band in bands})
    assert {band["from"] for band in bands} <= set(EDGES)
