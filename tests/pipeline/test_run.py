"""run() and compare(): the same splits, the same budget, and what is left when something fails."""

import json
from dataclasses import asdict, dataclass
from functools import partial
from statistics import fmean

import pytest
import torch

from evengraph.datasets import toy
from evengraph.methods import (
    GCN,
    METHODS,
    MLP,
    Boosting,
    Logistic,
    Method,
    Reweight,
    UniGNN,
    portfolio,
)
from evengraph.methods.bases.method import SHARED_SEARCH_SPACE
from evengraph.ops import sparse
from evengraph.pipeline.executor import Executor, Failure
from evengraph.pipeline.run import (
    RunPlan,
    candidates,
    changed_from_paper,
    compare,
    compare_results,
    default_entries,
    run,
)
from evengraph.report.run_page import render_page
from evengraph.splits import Natural, Step

SMALL_STEP = Step(minority=1, ratio=0.5, train_per_class=8, val_per_class=8, test_per_class=8)


@pytest.fixture(scope="module")
def graph():
    return toy(300, 1200, 40, 3, size_ratio=0.4)


@pytest.fixture(scope="module")
def two_classes():
    graph = toy(400, 1600, 40, 2, size_ratio=0.2)
    graph.class_names = ["honest", "fraud"]
    return graph


def quick(**fields):
    return {"gcn": GCN(max_epochs=8, **fields), "reweight": Reweight(max_epochs=8, **fields)}


def keep(seen):
    return lambda job, result: seen.append((job, result))


def plan_of(graph, *methods, **fields):
    options = {"dataset": "toy", "protocol": Natural(), "seeds": (0, 1, 2)} | fields
    named = {type(method).__name__.lower(): method for method in methods}
    return RunPlan(graph=graph, methods=named, **options)


def fail(self, task):
    raise FloatingPointError("The loss became nan.")


def test_every_step_happens_once(graph, monkeypatch):
    """A split per seed, a prediction per fit, an adjacency per graph."""
    counts = {"split": 0, "predict": 0, "adjacency": 0}

    def counted(name, function):
        def count(*arguments, **options):
            counts[name] += 1
            return function(*arguments, **options)

        return count

    monkeypatch.setattr(Natural, "__call__", counted("split", Natural.__call__))
    monkeypatch.setattr(GCN, "predict_task", counted("predict", GCN.predict_task))
    monkeypatch.setattr(sparse, "adjacency", counted("adjacency", sparse.adjacency))
    own = graph.clone()
    plan = plan_of(own, GCN(max_epochs=2))
    plan.task(0)  # as commands look at the first split before they train
    found = run(plan, keep_best=True)
    assert found.seeds == [0, 1, 2]
    assert counts == {"split": 3, "predict": 3, "adjacency": 1}
    own.edge_index[:, 0] = own.edge_index[:, 1]
    run(plan_of(own, GCN(max_epochs=2), seeds=[0]))
    assert counts["adjacency"] == 2  # the edges have changed


def test_an_interrupted_run_ends_the_series(graph):
    def on_start(job):
        def stop(history):
            if job.seed == 1 and history.epochs == 2:
                raise KeyboardInterrupt

        return stop

    executor = Executor(keep_interrupted=True, on_start=on_start)
    found = run(plan_of(graph, GCN(max_epochs=4)), executor)
    (result,) = found.results
    assert result["seeds"] == [0, 1]
    assert [one["interrupted"] for one in result["runs"]] == [False, True]
    assert not result["complete"]
    assert found.stopped


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


def test_values_of_the_paper_are_left_out_with_a_reason():
    for name, method, changed in (
        ("cora", GCN(max_epochs=1), ["max_epochs", "patience"]),
        ("cora", MLP(max_epochs=1), []),
        ("toy", GCN(max_epochs=1), []),
    ):
        plan = plan_of(toy(), method, dataset=name, seeds=[0], protocol=Step())
        (result,) = run(plan).results
        assert result["paper"] is None
        assert result["changed_from_paper"] == changed


def test_only_splits_that_all_methods_have_are_compared(graph):
    plan = plan_of(graph, GCN(max_epochs=3), Reweight(max_epochs=3))
    found = run(plan, on_end=lambda job, result: stop(job))
    comparison = compare_results(plan, found)
    assert comparison.seeds == found.seeds == [0]
    assert comparison.stopped
    assert found.interrupted
    assert not comparison.as_dict()["complete"]
    found.failed["mlp"] = Failure(reason="no luck")
    assert compare_results(plan, found).failed == {"mlp": "no luck"}


def stop(job):
    if (job.label, job.seed) == ("gcn", 1):
        raise KeyboardInterrupt


def test_the_dictionary_of_a_comparison_holds_every_run(graph):
    found = compare(graph, quick(), Natural(), seeds=[2, 5])
    content = json.loads(json.dumps(found.as_dict()))
    assert (content["schema"], content["kind"], content["seeds"]) == (1, "comparison", [2, 5])
    assert content["complete"]
    assert not content["conclusive"]  # two splits are too few
    assert sum(content["class_counts"]) == 300
    for method, standing in zip(content["methods"], found.standings, strict=True):
        assert [one["seed"] for one in method["runs"]] == [2, 5]
        for one, record in zip(method["runs"], standing.records, strict=True):
            assert one["metrics"]["macro_f1"] == record.metrics["macro_f1"]
        mean = standing.summary("macro_f1").mean
        assert method["figures"]["macro_f1"]["mean"] == pytest.approx(mean)
    frame, lines = found.frame, str(found).splitlines()
    assert list(frame.index) == [standing.label for standing in found.standings]
    assert "macro_f1_paper" not in frame
    titles = [standing.title for standing in found.standings]
    assert [line.split("  ")[0] for line in lines[1:3]] == titles
    assert tuple(lines[4:]) == tuple(found.verdict.sentences)


def set_clock(monkeypatch):
    """A clock that counts how often it is looked at."""
    clock = iter(range(10_000))
    for module in ("run", "executor"):
        monkeypatch.setattr(f"evengraph.pipeline.{module}.time", lambda: next(clock))


def test_methods_are_compared_on_the_same_splits(graph):
    seen = []
    protocol = Natural(train=0.2, val=0.2)
    found = compare(graph, quick(), protocol, seeds=[3, 4, 5], on_end=keep(seen))
    assert len(seen) == 6
    assert found.seeds == [3, 4, 5]
    assert found.overlap == pytest.approx(0.6 / 0.4, rel=0.02)
    assert found.protocol == {"name": "natural", "train": 0.2, "val": 0.2}
    assert {one.label for one in found.standings} == {"gcn", "reweight"}
    means = [fmean(one.values("balanced_accuracy")) for one in found.standings]
    assert means == sorted(means, reverse=True)
    (pair,) = found.pairs
    assert pair.difference == pytest.approx(means[0] - means[1])
    assert found.best.label == found.verdict.best
    assert not found.stopped
    assert found.positive is None


def test_the_budget_is_the_same_and_validation_chooses(graph):
    seen = []
    found = compare(graph, quick(), Natural(), seeds=[0, 1], budget=3, on_end=keep(seen))
    assert len(seen) == 2 * 2 * 3
    for one in found.standings:
        for record in one.records:
            tried = [
                (job, result)
                for job, result in seen
                if (job.label, job.seed) == (one.label, record.seed)
            ]
            assert {job.candidate for job, _ in tried} == {0, 1, 2}
            assert record.validation == max(result.validation for _, result in tried)
            assert record.settings in [asdict(job.method) for job, _ in tried]
    assert found.budget == 3
    settings = {(job.label, job.seed, job.candidate): asdict(job.method) for job, _ in seen}
    for method in found.as_dict()["methods"]:
        for one in method["runs"]:
            assert one["settings"] == settings[one["label"], one["seed"], one["place"]]


def test_two_classes_have_their_own_figures(two_classes):
    found = compare(two_classes, quick(), Natural(train=0.3, val=0.3), seeds=range(3))
    assert found.positive == 1
    assert found.classes[1] == "fraud"
    metrics = found.best.records[0].all_metrics
    for name in ("positive_average_precision", "recall_at_1", "tuned_f1", "calibrated_error"):
        assert 0 <= metrics[name] <= 100
    other = compare(two_classes, {"gcn": GCN(max_epochs=8)}, Natural(), seeds=[0], positive=0)
    assert other.positive == 0
    by_name = compare(
        two_classes, quick(), Natural(), seeds=range(3), metric="positive_average_precision"
    )
    values = by_name.best.values("positive_average_precision")
    assert fmean(values) == max(
        fmean(one.values("positive_average_precision")) for one in by_name.standings
    )


def test_classes_have_the_names_of_the_split(two_classes):
    """Step sorts classes by size: recall, counts and the positive class are in that order."""
    swapped = two_classes.clone()
    swapped.y, swapped.class_names = 1 - two_classes.y, ["fraud", "honest"]
    found = compare(swapped, quick(), SMALL_STEP, seeds=[0])
    assert found.classes == ["honest", "fraud"]
    assert found.class_counts[0] > found.class_counts[1]
    assert found.classes[found.positive] == "fraud"
    named = compare(swapped, quick(), SMALL_STEP, seeds=[0], positive="honest")
    assert named.positive == 0


def test_a_method_that_fails_is_left_out(graph, monkeypatch):
    monkeypatch.setattr(METHODS["reweight"], "_fit", fail)
    seen = []
    found = compare(graph, quick(), Natural(), seeds=range(3), on_end=keep(seen))
    assert found.failed == {"reweight": "The loss became nan."}
    assert [one.label for one in found.standings] == ["gcn"]
    assert len(found.seeds) == 3
    assert not found.stopped
    assert sum(isinstance(result, Failure) for _, result in seen) == 1
    assert not found.as_dict()["complete"]
    bad = {"reweight": Reweight(), "unignn": UniGNN(clusters_per_class=900)}
    with pytest.raises(ValueError, match=r"ran\. Re-weight: The loss became nan\. Uni-GNN: clus"):
        compare(graph, bad, Natural(), seeds=[0])


@dataclass(kw_only=True, eq=False)
class Shares(Method):
    """Predicts the class shares of training, and has no history of it."""

    def _fit(self, task):
        self.shares_ = task.class_counts / task.class_counts.sum()

    def _logits(self, graph):
        return self.shares_.log().expand(graph.num_nodes, -1)


def test_a_method_needs_no_history(graph):
    (result,) = run(plan_of(graph, Shares(), seeds=[0])).results
    (one,) = result["runs"]
    assert (one["stages"], one["epochs"], one["history"]) == (0, 0, {"loss": [], "score": []})
    assert "Results per seed" in render_page(result)


def test_when_time_runs_out_whole_splits_count(graph, monkeypatch):
    set_clock(monkeypatch)
    found = compare(graph, quick(), Natural(), seeds=range(50), time_limit=60)
    assert found.stopped
    assert 0 < len(found.seeds) < 50
    assert all(len(one.records) == len(found.seeds) for one in found.standings)
    with pytest.raises(ValueError, match="allow more"):
        compare(graph, quick(), Natural(), seeds=range(3), time_limit=2)


def test_a_method_that_is_too_slow_is_left_out(graph, monkeypatch):
    set_clock(monkeypatch)
    entries = {"gcn": GCN(max_epochs=5), "slow": GCN(max_epochs=500, patience=500)}
    found = compare(graph, entries, Natural(), seeds=range(3), time_limit=30)
    assert found.seeds == [0]
    assert "finished no split in time" in found.failed["slow"]
    assert found.stopped


def test_no_better_than_guessing_is_said(graph):
    bare = graph.clone()
    bare.x = torch.zeros_like(bare.x)
    bare.edge_index = bare.edge_index[:, :0]
    found = compare(bare, quick(), Natural(), seeds=range(3))
    assert "No method is better than guessing" in found.verdict.sentences[0]


def test_two_settings_of_one_method_are_told_apart(graph):
    entries = {"narrow": GCN(hidden=4, max_epochs=4), "wide": GCN(hidden=32, max_epochs=4)}
    found = compare(graph, entries, Natural(), seeds=[0])
    assert {one.title for one in found.standings} == {"narrow", "wide"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": []}, "at least one method"),
        ({"methods": ["gnc"]}, "Did you mean gcn"),
        ({"seeds": []}, "at least one seed"),
        ({"metric": "f1"}, "Unknown metric 'f1'"),
        ({"metric": "ap"}, "Unknown metric 'ap'. Did you mean positive_average_precision"),
        ({"metric": "recall_at_1"}, "metric recall_at_1 is for two classes, this graph has 3"),
        ({"positive": 1}, "positive is for two classes"),
        ({"budget": 0}, "budget must be at least 1"),
        ({"jobs": 0}, "jobs must be at least 1"),
        ({"time_limit": 0}, "time_limit must be above 0"),
    ],
)
def test_mistakes(graph, options, message):
    arguments = {"methods": ["gcn"], "seeds": [0], **options}
    methods = arguments.pop("methods")
    with pytest.raises(ValueError, match=message):
        compare(graph, methods, Natural(), **arguments)


def test_mistakes_of_two_classes(two_classes):
    with pytest.raises(ValueError, match="positive must be class 0 or 1, got 2"):
        compare(two_classes, ["gcn"], Natural(), positive=2)
    unlabelled = two_classes.clone()
    unlabelled.y = torch.full_like(unlabelled.y, -1)
    with pytest.raises(ValueError, match="this graph has none"):
        compare(unlabelled, ["gcn"], Natural())
    unlabelled.y[:50] = 0
    with pytest.raises(ValueError, match="at least two classes, got one"):
        compare(unlabelled, ["gcn"], Natural())


def test_by_default_the_baseline_and_the_portfolio_are_compared(graph, monkeypatch):
    entries = default_entries(graph, {"gcn": {"hidden": 3}, "logistic": {"patience": 4}})
    assert list(entries) == ["gcn", *portfolio(graph)]
    assert (entries["gcn"].hidden, entries["logistic hops=0"].patience) == (3, 4)
    short = partial(default_entries, params={name: {"max_epochs": 1} for name in METHODS})
    monkeypatch.setattr("evengraph.pipeline.run.default_entries", short)
    found = compare(graph, None, Natural(), seeds=[3])
    assert {one.label for one in found.standings} == set(entries)
    titles = [one.title for one in found.standings]
    assert len(set(titles)) == len(titles)


def test_tables_are_compared_without_a_protocol():
    import pandas

    kinds = ["rare" if index % 4 == 0 else "common" for index in range(80)]
    nodes = pandas.DataFrame({"id": range(80), "size": range(80), "kind": kinds})
    edges = pandas.DataFrame({"source": range(79), "target": range(1, 80)})
    with pytest.raises(ValueError, match="label is for tables of your own, and toy is a data set"):
        compare("toy", label="kind")
    found = compare(nodes, "labelpropagation", edges=edges, label="kind", positive="common")
    assert found.protocol == {"name": "natural", "train": 0.6, "val": 0.2}
    assert found.as_dict()["positive"] == "common"
    with pytest.raises(ValueError, match="Unknown class 'odd'"):
        compare(nodes, "labelpropagation", edges=edges, label="kind", positive="odd")


@pytest.mark.parametrize("name", [name for name in METHODS if not METHODS[name].selects_itself])
def test_every_method_has_the_same_number_of_settings(name):
    method = METHODS[name](patience=7)
    found = candidates(method, 12)
    assert asdict(found[0]) == asdict(method)
    assert len({repr(one) for one in found}) == 12
    assert all(type(one) is type(method) and one.patience == 7 for one in found)
    assert len({id(one) for one in found} | {id(method)}) == 13
    assert [repr(one) for one in found] == [repr(one) for one in candidates(method, 12)]
    allowed = {**SHARED_SEARCH_SPACE, **method.search_space}
    for field in {key for one in found for key in asdict(one)}:
        values = {getattr(one, field) for one in found}
        assert values <= {getattr(method, field), *allowed.get(field, ())}


def test_settings_that_are_given_stay_and_a_small_search_space_is_tried_completely():
    assert candidates(Logistic(patience=7), 12) == [Logistic(patience=7)]  # it selects by itself
    found = candidates(UniGNN(alpha=3, dropout=0.1), 40)
    assert {(one.alpha, one.dropout) for one in found} == {(3, 0.1)}
    assert len({one.threshold for one in found}) == 2
    method = Boosting(learning_rate=0.2, hops=2)
    found = candidates(method, 99)
    assert found[0] == method
    assert len(found) == len({str(one) for one in found}) == 12
