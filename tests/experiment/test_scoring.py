import pytest
import torch

from evengraph.datasets import toy
from evengraph.methods import GCN, UniGNN
from evengraph.methods.bases.search import Committee
from evengraph.metrics.calibration import Calibrator
from evengraph.metrics.evaluation import evaluate
from evengraph.pipeline.executor import Job, LoadedGraph, score
from evengraph.splits import Natural, Step


@pytest.fixture(scope="module")
def graph():
    return toy()


def fitted(graph, **options):
    job = Job(
        label="gcn",
        graph=LoadedGraph(graph),
        method=GCN(max_epochs=5),
        seed=3,
        **{"protocol": Step()} | options,
    )
    task = job.make_task("cpu")
    return job, task, GCN(max_epochs=5).fit(task, seed=3)


def test_a_record_holds_what_the_method_gives(graph):
    job, task, model = fitted(graph)
    record = score(job, task, model, seconds=2.5, together=4)
    values = evaluate(task, model.predict_proba(task.graph))
    assert record.metrics["macro_f1"] == pytest.approx(100 * values["macro_f1"])
    assert record.per_class["recall"] == pytest.approx(
        [100 * r for r in values["per_class_recall"]]
    )
    assert record.confusion_matrix == values["confusion_matrix"]
    assert record.epochs == record.total_epochs == 5
    assert len(record.history["loss"]) == len(record.history["score"]) == 6
    assert record.validation == pytest.approx(max(record.history["score"]))
    assert record.criterion == "Macro-F1"
    assert record.class_counts == task.class_counts.tolist()
    assert (record.seconds, record.together, record.seed) == (2.5, 4, 3)
    assert not record.interrupted
    optional = {"calibration", "settings", "memory", "summary", "agreement"}
    assert optional.isdisjoint(record.as_dict())


def test_a_record_of_a_committee_counts_how_often_agreement_is_right(graph, monkeypatch):
    job, task, model = fitted(graph)
    sure = model.predict_proba(task.graph)
    members = torch.stack([sure, sure, sure.roll(1, dims=1)])
    monkeypatch.setattr(model, "predict_members", lambda graph: Committee.even(members))
    model.summary_ = ["Chose it."]
    record = score(job, task, model)
    correct = (sure.argmax(1) == task.graph.y)[task.test]
    assert record.agreement == [{"from": 0.5, "nodes": len(correct), "correct": int(correct.sum())}]
    assert record.summary == ["Chose it."]


def test_calibration_is_a_part_of_its_own(graph):
    job, task, model = fitted(graph, calibrate=True)
    record = score(job, task, model)
    plain = score(*fitted(graph))
    assert record.metrics == plain.metrics
    probabilities = model.predict_proba(task.graph)
    calibrator = Calibrator.fit(probabilities[task.val], task.graph.y[task.val])
    assert record.calibration["calibrator"] == calibrator.as_dict()
    assert 0 <= record.calibration["metrics"]["calibrated_error"] <= 100
    assert record.all_metrics == {**record.metrics, **record.calibration["metrics"]}
    assert record.settings["max_epochs"] == 5


def test_a_record_names_the_criterion():
    job, task, model = fitted(toy(400, 1600, 64, 2, size_ratio=0.1), protocol=Natural(train=0.3))
    record = score(job, task, model)
    assert record.criterion == "mean of average precision and balanced accuracy"
    assert record.validation == pytest.approx(max(record.history["score"]), abs=1e-3)


def test_a_record_holds_what_auto_stood_for(graph):
    job, task, _ = fitted(graph)
    model = UniGNN(max_epochs=1).fit(task, seed=3)
    assert score(job, task, model).resolved == {"alpha": model.alpha_}
    model = UniGNN(alpha=1, max_epochs=1).fit(task, seed=3)
    assert "resolved" not in score(job, task, model).as_dict()
