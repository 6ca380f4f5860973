import json

import pytest

from evengraph.core.files import write_json
from evengraph.datasets import toy
from evengraph.methods import GCN, METHODS, MLP, Reweight, UniGNN
from evengraph.pipeline.run import RunPlan, changed_from_paper, run
from evengraph.splits import Step


@pytest.fixture(scope="module")
def graph():
    return toy()


def plan(graph, *methods, dataset="toy", seeds=(0, 1, 2)):
    return RunPlan(
        dataset=dataset,
        graph=graph,
        imbalance="step",
        protocol=Step(),
        methods={type(method).__name__.lower(): method for method in methods},
        seeds=seeds,
    )


def test_a_result_survives_json(graph, tmp_path):
    seen = []
    found = run(
        plan(graph, GCN(max_epochs=2), seeds=[1, 2]),
        on_fit=lambda job, method, task, record: seen.append(record.seed),
    )
    (result,) = found.results
    assert seen == [1, 2] == result["seeds"]
    write_json(result, tmp_path / "result.json")
    again = json.loads((tmp_path / "result.json").read_text())
    assert again["method"] == result["method"]
    assert again["runs"][1]["confusion_matrix"] == result["runs"][1]["confusion_matrix"]
    assert again["mean"]["g_mean"] == pytest.approx(result["mean"]["g_mean"], abs=1e-5)


def test_an_interrupted_run_ends_the_series(graph):
    def on_start(job):
        def stop(history):
            if job.seed == 1 and history.epochs == 2:
                raise KeyboardInterrupt

        return stop

    fitted = []
    found = run(
        plan(graph, GCN(max_epochs=4), Reweight(max_epochs=4)),
        on_start=on_start,
        on_fit=lambda job, method, task, record: fitted.append((job.seed, method.fitted_)),
    )
    (result,) = found.results
    assert result["seeds"] == [0, 1]
    assert [one["interrupted"] for one in result["runs"]] == [False, True]
    assert not result["complete"]
    assert fitted == [(0, True), (1, True)]


def test_an_interrupt_outside_training_keeps_the_seeds_before(graph):
    def on_start(job):
        if job.seed == 1:
            raise KeyboardInterrupt

    (result,) = run(plan(graph, GCN(max_epochs=1)), on_start=on_start).results
    assert result["seeds"] == [0]
    assert not result["complete"]
    with pytest.raises(KeyboardInterrupt):
        run(plan(graph, GCN(max_epochs=1), seeds=[1]), on_start=on_start)


def test_a_method_that_fails_with_one_seed_is_left_out(graph, monkeypatch):
    original = METHODS["gcn"]._fit

    def fail(self, task):
        if self.max_epochs == 1 and len(seen) == 1:
            raise FloatingPointError("The loss became nan.")
        return original(self, task)

    seen, results = [], []
    monkeypatch.setattr(METHODS["gcn"], "_fit", fail)
    found = run(
        plan(graph, GCN(max_epochs=1), Reweight(max_epochs=2)),
        on_fit=lambda job, method, task, record: seen.append(record.seed),
        on_result=lambda name, result: results.append((name, result)),
    )
    assert found.failed["gcn"].reason == "The loss became nan."
    assert seen == [0, 0, 1, 2]  # the failed method is not tried further
    assert results == [("reweight", found.results[0])]


@pytest.mark.parametrize(
    ("method", "protocol", "expected"),
    [
        (UniGNN(patience=1000), Step(), []),
        (UniGNN(), Step(), ["patience"]),
        (UniGNN(patience=1000, alpha=1, threshold=0.7), Step(), []),
        (UniGNN(patience=1000, hidden=64), Step(), []),  # the default, written out
        (UniGNN(patience=1000, pseudo_labels="none"), Step(), ["pseudo_labels"]),
        (UniGNN(patience=1000), Step(train_per_class=40), ["train_per_class"]),
        (UniGNN(patience=1000), Step(minority=2), []),  # another setting, not another method
    ],
)
def test_the_papers_values_stand_beside_the_papers_method_alone(method, protocol, expected):
    assert changed_from_paper(method, protocol) == expected


def test_values_of_the_paper_are_left_out_with_a_reason(graph):
    for name, method, changed in (
        ("cora", GCN(max_epochs=1), ["max_epochs", "patience"]),
        ("cora", MLP(max_epochs=1), []),
        ("toy", GCN(max_epochs=1), []),
    ):
        (result,) = run(plan(graph, method, dataset=name, seeds=[0])).results
        assert result["paper"] is None
        assert result["changed_from_paper"] == changed
