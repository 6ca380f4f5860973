"""The table of metrics, and that one entry is all a new metric takes."""

import json
import math

import pytest
import torch

from evengraph.cli import main
from evengraph.metrics import METRICS, Metric, Predictions, comparable_metrics, evaluate
from evengraph.metrics.registry import abbreviations
from evengraph.report import render_page
from small_graphs import normal, small_task

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


def test_metrics_without_a_better_direction_rank_no_methods():
    assert "tuned_threshold" not in comparable_metrics()
    assert "brier" not in comparable_metrics()
    assert next(iter(comparable_metrics())) == "balanced_accuracy"


def test_abbreviations():
    two = [METRICS[name] for name in ("precision_at_k", "auroc", "recall_at_1")]
    assert abbreviations(two) == "P@k is precision at k; R@1% is recall at 1% FPR"


def test_a_new_metric_is_evaluated(made_up):
    task = small_task()
    result = evaluate(task, normal(task.graph.num_nodes, 3).softmax(1))
    assert result["worst_recall"] == min(result["per_class_recall"])


def test_a_new_metric_reaches_comparisons_and_their_tables(made_up, tmp_path, capsys):
    words = ["compare", "toy", "--method", "gcn,mlp", "--splits", "2", "--set", "max_epochs=2"]
    call(*words, "--out", str(tmp_path))
    heads = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert any(line[:1] == ["method"] and "worst" in line for line in heads)
    saved = json.loads((tmp_path / "comparison.json").read_text())
    assert "worst_recall" in saved["methods"][0]["figures"]
    assert "worst_recall_low" in (tmp_path / "comparison.csv").read_text()
    call(*words, "--metric", "worst_recall")
    assert "worst recall" in capsys.readouterr().out


def test_a_new_metric_is_among_the_choices(made_up, capsys):
    with pytest.raises(SystemExit):
        main(["compare", "toy", "--metric", "worst"])
    assert "worst_recall" in capsys.readouterr().err


def test_a_new_metric_is_on_the_page(made_up):
    mean = {"balanced_accuracy": 70.0, "macro_f1": 69.0, "g_mean": 80.0, "worst_recall": 41.25}
    run = {"seed": 1, "metrics": mean}
    page = render_page({"mean": mean, "std": mean, "runs": [run]})
    assert "Worst recall" in page
    assert "41.25" in page
    assert made_up.meaning in page


SCORES = ["balanced_accuracy", "macro_f1", "g_mean", "accuracy", "average_precision", "auroc"]
BINARY = ["positive_average_precision", "precision_at_k", "recall_at_k", "recall_at_1"]
BINARY += ["recall_at_5", "tuned_threshold", "tuned_f1"]
CALIBRATION = ["calibration_error", "calibrated_error", "shifted_error", "brier"]
CALIBRATION += ["calibrated_brier"]


@pytest.mark.parametrize(
    ("flag", "value", "names"),
    [
        ("headline", True, SCORES[:3]),
        ("ranking", True, ["auroc"]),
        ("binary", True, BINARY),
        ("is_probability", True, ["tuned_threshold"]),
        ("calibration", True, CALIBRATION),
        ("higher_is_better", False, CALIBRATION),
        ("higher_is_better", None, ["tuned_threshold"]),
        ("column", False, ["g_mean", "average_precision", *CALIBRATION[3:]]),
        ("range", (0.0, 2.0), CALIBRATION[3:]),
        ("range", (0.0, 1.0), SCORES + BINARY + CALIBRATION[:3]),
    ],
)
def test_who_is_what(flag, value, names):
    assert [name for name, one in METRICS.items() if getattr(one, flag) == value] == names


def test_all_metrics_are_there():
    assert list(METRICS) == SCORES + BINARY + CALIBRATION
