import json

import pytest
import torch

from evengraph.core.files import write_json
from evengraph.datasets import toy
from evengraph.experiment import Run, run
from evengraph.experiment.runner import changed_from_paper, run_seed
from evengraph.methods import GCN
from evengraph.metrics import evaluate
from evengraph.splits import Step

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def graph():
    return toy()


def test_a_record_holds_what_the_method_gives(graph):
    task = Step()(graph, seed=3)
    record = run_seed(task, GCN(max_epochs=5), seed=3)
    model = GCN(max_epochs=5).fit(task, seed=3)
    figures = evaluate(task, model.predict_proba(task.graph))
    assert record.metrics["macro_f1"] == pytest.approx(100 * figures["macro_f1"])
    assert record.per_class["recall"] == pytest.approx(
        [100 * r for r in figures["per_class_recall"]]
    )
    assert record.confusion_matrix == figures["confusion_matrix"]
    assert record.epochs == 5
    assert len(record.history["loss"]) == len(record.history["score"]) == 6
    assert record.validation == pytest.approx(max(record.history["score"]))
    assert not record.interrupted


def test_a_result_survives_json(graph, tmp_path):
    plan = Run(dataset="toy", method="gcn", method_fields={"max_epochs": 2}, seeds=[1, 2])
    seen = []
    result = run(plan, graph, CPU, on_record=lambda record: seen.append(record.seed))
    assert seen == [1, 2] == result["seeds"]
    write_json(result, tmp_path / "result.json")
    again = json.loads((tmp_path / "result.json").read_text())
    assert again["method"] == result["method"]
    assert again["runs"][1]["confusion_matrix"] == result["runs"][1]["confusion_matrix"]
    assert again["mean"]["g_mean"] == pytest.approx(result["mean"]["g_mean"], abs=1e-5)


def test_an_interrupted_run_ends_the_series(graph):
    def on_epoch(seed):
        def stop(history):
            if seed == 1 and history.epochs == 2:
                raise KeyboardInterrupt

        return stop

    plan = Run(dataset="toy", method="gcn", method_fields={"max_epochs": 4}, seeds=[0, 1, 2])
    result = run(plan, graph, CPU, on_epoch=on_epoch)
    assert result["seeds"] == [0, 1]
    assert [one["interrupted"] for one in result["runs"]] == [False, True]


def test_an_interrupt_outside_training_keeps_the_seeds_before(graph):
    def on_epoch(seed):
        if seed == 1:
            raise KeyboardInterrupt

    plan = Run(dataset="toy", method="gcn", method_fields={"max_epochs": 1}, seeds=[0, 1, 2])
    result = run(plan, graph, CPU, on_epoch=on_epoch)
    assert result["seeds"] == [0]
    assert not result["complete"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, set()),
        ({"method_fields": {"alpha": 1, "threshold": 0.7}}, set()),
        ({"method_fields": {"hidden": 64}}, set()),  # the default, written out
        ({"method_fields": {"pseudo_labels": "none"}}, {"pseudo_labels"}),
        ({"imbalance_fields": {"train_per_class": 40}}, {"train_per_class"}),
        ({"imbalance_fields": {"minority": 2}}, set()),  # another set-up, not another method
    ],
)
def test_the_papers_figures_stand_beside_the_papers_method_alone(changes, expected):
    plan = Run(dataset="cora", **changes)
    assert set(changed_from_paper(plan, plan.make_imbalance())) == expected


def test_figures_of_the_paper_are_left_out_with_a_reason(graph):
    for name, method, changed in (
        ("cora", "gcn", ["max_epochs"]),
        ("cora", "mlp", []),
        ("toy", "gcn", []),
    ):
        plan = Run(dataset=name, method=method, method_fields={"max_epochs": 1}, seeds=[0])
        result = run(plan, graph, CPU)
        assert result["paper"] is None
        assert result["changed_from_paper"] == changed
