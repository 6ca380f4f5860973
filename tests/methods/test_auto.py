"""Auto: honest folds, what is averaged and what is said about it, and what a saved model holds."""

import pickle
from dataclasses import dataclass, replace
from itertools import count
from math import exp
from types import SimpleNamespace

import pytest
import torch
from torch.nn.functional import one_hot

from evengraph.core.rng import generator
from evengraph.core.task import folds
from evengraph.methods import METHODS, Auto, DoubleBalancing
from evengraph.methods import auto as module
from evengraph.methods.auto import Race, portfolio
from evengraph.methods.bases.method import Committee, Method
from evengraph.metrics.multiclass import validation_score
from evengraph.pipeline.model_info import load_model
from evengraph.testing import small_task
from evengraph.testing.contract import task_with, with_graph

TASK = small_task()  # of a published protocol
OPEN = replace(TASK, published=False)
MANY = task_with(45, 45, 40)
SHORT = {"max_epochs": 6, "patience": 6}


def fitted(names, task=TASK, **params):
    return Auto(candidates=names, **SHORT, **params).fit(task, seed=0)


def average(names, weights):
    """A fitted method that averages two or more of its candidates."""
    method = fitted(names)
    kinds = [METHODS[name] for name in names.split(",")]
    method.members_ = [kind(**SHORT).fit(TASK, seed=index) for index, kind in enumerate(kinds)]
    method.weights_, method._predicted = weights, None
    return method


@pytest.mark.parametrize("names", ["logistic", "gcn", "labelpropagation,logistic"])
def test_every_label_is_held_out_once_and_predicted_by_a_model_that_did_not_learn_it(names):
    method = fitted(names, OPEN, folds=3)
    nodes, rows, known = method.held_out_
    assert torch.equal(known, TASK.train | TASK.val)
    assert nodes.sort().values.tolist() == known.nonzero().squeeze(1).tolist()
    weight_of_unseen, expected = torch.zeros(len(nodes)), torch.zeros_like(rows)
    for member, weight in zip(method.members_, method.weights_, strict=True):
        unseen = ~torch.isin(nodes, member.labelled_.nodes)
        weight_of_unseen += weight * unseen
        expected[unseen] += 3 * weight * member.predict_proba(TASK.graph)[nodes[unseen]]
    assert weight_of_unseen.tolist() == pytest.approx([1 / 3] * len(nodes))  # one fold of each
    torch.testing.assert_close(rows, expected)
    found = method.predict_task(OPEN)
    torch.testing.assert_close(found[nodes], rows)
    plain = method.predict_proba(TASK.graph)
    torch.testing.assert_close(found[~known], plain[~known])
    assert torch.equal(method.held_out(OPEN), known)


def test_a_published_task_never_learns_from_validation_labels():
    method = fitted("logistic,gcn,boosting,unison", folds=5)
    assert all(torch.equal(one.labelled_.nodes, TASK.train_nodes) for one in method.members_)
    assert method.held_out_ is None
    assert torch.equal(method.held_out(TASK), TASK.val)


@pytest.mark.parametrize(("given", "many", "number"), [(0, 99, 5), (0, 7, 3), (2, 7, 2)])
def test_folds_follow_the_labels_or_are_given(given, many, number, monkeypatch):
    monkeypatch.setattr(module, "MANY", many)  # the rarest class has 7
    assert len(Auto(folds=given)._race(OPEN, 0).tasks) == number


def test_a_task_is_predicted_once_and_another_as_it_is():
    method = fitted("logistic", OPEN, folds=2)
    other = replace(with_graph(OPEN), train=TASK.test, test=TASK.train)
    torch.testing.assert_close(method.predict_task(other), method.predict_proba(TASK.graph))
    assert torch.equal(method.held_out(other), TASK.val)
    rows = method.predict_task(OPEN)
    method.members_[0] = method.members_[1]
    assert torch.equal(method.predict_task(OPEN), rows)
    changed = replace(OPEN, graph=OPEN.graph.clone())
    for task in (changed, OPEN):
        task.graph.x.add_(0)  # may have changed
        assert not torch.equal(method.predict_task(task), rows)
    assert pickle.loads(pickle.dumps(method))._predicted is None


def test_a_fold_takes_the_step_that_is_best_on_the_others():
    members = Auto(candidates="labelpropagation", folds=3).fit(OPEN, seed=0).members_
    scores = [one.history_[-1].score for one in members]
    for index, one in enumerate(members):
        others = scores[:index] + scores[index + 1 :]
        total = [sum(step) for step in zip(*others, strict=False)][: min(map(len, scores))]
        assert int(one.steps_) == total.index(max(total))
    assert [int(one.steps_) for one in members] != [one.history_[-1].best_epoch for one in members]


def test_refitting_keeps_what_was_selected(monkeypatch):
    method = average("gcn,logistic", [0.75, 0.25])
    method.summary_ = ["Chose both."]
    full = replace(TASK, train=TASK.train | TASK.test, test=TASK.test & False)
    again = method.set_params(folds=2).refitted(full, seed=4)
    assert [member.title for member in again.members_] == ["GCN"] * 2 + ["Logistic"] * 2
    assert again.weights_ == [0.375, 0.375, 0.125, 0.125]
    assert again.summary_ == ["Chose both."]
    assert torch.equal(again.held_out(full), full.train | full.val)  # no published protocol now
    monkeypatch.setattr(type(method.members_[0]), "_fit", lambda self, task: 1 / 0)
    with pytest.raises(ValueError, match="GCN could not be fitted again"):
        method.refitted(full, seed=4)


def test_an_average_is_that_of_probabilities_and_saved_with_its_members_alone(tmp_path):
    method = average("gcn,logistic,boosting", [0.5, 0.3, 0.2])
    parts = [member.predict_proba(TASK.graph) for member in method.members_]
    expected = 0.5 * parts[0] + 0.3 * parts[1] + 0.2 * parts[2]
    torch.testing.assert_close(method.predict_proba(TASK.graph), expected)
    for name in ("model", "again"):
        method.save(tmp_path / name)
        assert len(list((tmp_path / name).iterdir())) == 3  # description, tensors, card
        loaded = load_model(tmp_path / name)
        assert torch.equal(loaded.predict_proba(TASK.graph), method.predict_proba(TASK.graph))
        assert loaded.summary_ == method.summary_
        method = loaded


def test_where_no_label_is_known_members_that_need_labels_are_left_out():
    method = average("labelpropagation,logistic,gcn", [0.5, 0.3, 0.2])
    assert len(method.weighted_members(TASK.graph)) == 3
    other = with_graph(TASK, x=TASK.graph.x + 1).graph
    (logistic, first), (gcn, second) = method.weighted_members(other)
    assert (first, second) == pytest.approx((0.6, 0.4))
    expected = 0.6 * logistic.predict_proba(other) + 0.4 * gcn.predict_proba(other)
    torch.testing.assert_close(method.predict_proba(other), expected)
    method.members_, method.weights_ = method.members_[:1], [1.0]
    assert len(method.weighted_members(other)) == 1  # there is nothing else


def test_the_committee_is_that_of_the_members(monkeypatch):
    method = average("gcn,logistic", [0.75, 0.25])
    two = torch.stack([method.members_[0].predict_proba(TASK.graph)] * 2)
    monkeypatch.setattr(method.members_[0], "predict_members", lambda graph: Committee.even(two))
    found = method.predict_members(TASK.graph)
    assert found.weights.tolist() == [0.375, 0.375, 0.25]
    mean = torch.einsum("m,mnc->nc", found.weights, found.probabilities)
    torch.testing.assert_close(mean, method.predict_proba(TASK.graph))


def test_seeds_decide_and_the_clock_only_with_a_limit(monkeypatch):
    one = fitted("iceberg,gcn,logistic", OPEN, folds=2)
    monkeypatch.setattr(module, "perf_counter", count(0, 1_000).__next__)  # as slow as can be
    other = fitted("iceberg,gcn,logistic", OPEN, folds=2)
    assert one.weights_ == other.weights_
    assert torch.equal(one.predict_task(OPEN), other.predict_task(OPEN))
    late = fitted("iceberg,gcn,logistic", OPEN, folds=2, time_limit=500)
    assert {member.full_title for member in late.members_} == {"GCN"}
    assert "Not reached: IceBerg; Logistic over 2 hops; Logistic." in " ".join(late.summary_)


def test_without_edges_only_models_without_the_graph_are_tried():
    bare = with_graph(TASK, edge_index=TASK.graph.edge_index[:, :0])
    method = fitted("gcn,logistic", bare)
    assert [stage.stage for stage in method.history_] == ["Logistic"]
    assert method.summary_[0].startswith("Chose Logistic")
    assert not any("graph" in line for line in method.summary_)
    assert [stage.stage for stage in fitted("gcn", bare).history_] == ["GCN"]


@dataclass(kw_only=True)
class Fake(Method):
    """Is right on a share of the nodes, after so many epochs of so many seconds."""

    clock = SimpleNamespace(now=100.0)

    name: str = "Fake"
    right: float = 0.5
    shift: int = 0  # which nodes it is right on
    graph: bool = True
    labels: bool = False
    error: str = ""
    seconds: float = 0.0
    hops: int = 0

    full_title = property(lambda self: self.name)
    uses_graph = property(lambda self: self.graph)
    uses_labels = property(lambda self: self.labels)

    def _fit(self, task):
        if self.error:
            raise ValueError(self.error)
        self._train_in_steps(self._steps(task))

    def _steps(self, task):
        for _ in range(3):
            self.clock.now += self.seconds
            yield torch.tensor(1.0), validation_score(self._logits(task.graph), task)

    def _logits(self, graph):
        nodes, truth = torch.arange(graph.num_nodes), TRUTH[graph.num_nodes]
        hit = (nodes * 7 + self.shift) % 100 < 100 * self.right
        return 5.0 * one_hot(torch.where(hit, truth, (truth + 1) % (truth.max() + 1)))


class Unison(Fake):
    """By its name one of the cheap ones."""


TRUTH = {150: TASK.graph.y}


def race_of(*methods, task=TASK, limit=0.0, metric="accuracy", on_epoch=lambda _: None, **options):
    TRUTH[task.graph.num_nodes] = task.graph.y
    tasks = [task] if task.published else folds(task, 3, generator(0))
    race = Race(tasks, limit, metric, 0)
    race.run(methods, on_epoch, **options)
    return race


def titles(trials):
    return [trial.title for trial in trials]


def test_what_cannot_be_told_apart_is_averaged():
    assert race_of(Fake(), Fake(), task=MANY).weights() == {0: 0.5, 1: 0.5}
    race = race_of(Fake(right=0.5), Fake(right=0.55, shift=20), task=MANY)
    first, second = race.fitted
    ratio = exp(-(second.score - first.score) / race.noise(second, first))
    assert race.weights() == pytest.approx({0: ratio / (1 + ratio), 1: 1 / (1 + ratio)})
    assert 0.2 < ratio < 0.9


def test_tables_over_hops_are_trusted_more_where_a_class_is_rare():
    rare, tables = task_with(60, 6), (Fake(), Fake(hops=2))
    race = race_of(*tables, task=rare, metric="positive_average_precision")
    assert race.weights() == pytest.approx({0: 1 / 7, 1: 6 / 7})
    assert race_of(*tables, task=rare).weights() == {0: 0.5, 1: 0.5}


def test_the_cheap_come_first_and_where_a_class_is_rare_tables_over_hops_early():
    def order(metric):
        tried = []
        race_of(
            *(Fake(name="net"), Fake(name="table", hops=2), Unison(name="cheap")),
            **{"task": task_with(60, 6), "metric": metric},
            on_epoch=lambda history: tried.append(history.stage.split(":")[1].split(",")[0]),
        )
        return list(dict.fromkeys(name.strip() for name in tried))

    assert order("accuracy") == ["cheap", "net", "table"]
    assert order("positive_average_precision") == ["table", "cheap", "net"]


def test_what_is_far_behind_or_hardly_counts_is_rejected(monkeypatch):
    race = race_of(Fake(right=0.5), Fake(right=0.9), Fake(right=0.3))
    assert race.weights() == {1: 1.0}
    race = race_of(Fake(right=0.9, labels=True), Fake(right=0.3), Fake(right=0.1))
    assert race.weights() == pytest.approx({0: 1 / 1.05, 1: 0.05 / 1.05})  # for other graphs
    race = race_of(Fake(right=0.5), Fake(right=0.55, shift=20), task=MANY)
    monkeypatch.setattr(module, "MIN_SHARE", 0.5)
    assert len(race.weights()) == 1


@pytest.mark.parametrize("task", [OPEN, MANY])
def test_a_handful_of_held_out_nodes_never_ends_a_candidate(task, monkeypatch):
    good, bad = Fake(name="good", right=0.95), Fake(name="bad", right=0.1)
    race = race_of(good, bad, task=task)
    assert titles(race.behind) == ([] if task is OPEN else ["bad"])
    if task is MANY:
        assert "Rejected: bad (" in (line := race.summary(race.weights())[1])
        assert "after 1 fold)" in line
        assert titles(race_of(good, bad, task=task, drop=False).fitted) == ["good", "bad"]
    monkeypatch.setattr(module, "ENOUGH", 1)
    assert titles(race_of(good, bad, task=task).behind) == ["bad"]
    assert not race_of(good, Fake(right=0.85), task=task).behind  # not surely


def test_the_metric_is_that_of_all_labels_or_named():
    few = task_with(60, 4)  # the first of five folds has none of the four
    few = replace(few, val=few.val & False)
    race = Auto()._race(few, 0)
    assert race.tasks[0].val_counts[1] == 0
    assert (race.validation.metric, race.validation.positive) == ("positive_average_precision", 1)
    assert Auto()._race(task_with(20, 20), 0).validation.metric == "balanced_accuracy"
    assert Auto(metric="macro_f1")._race(OPEN, 0).validation.metric == "macro_f1"


def test_what_hardly_grows_comes_first_and_a_perfect_one_ends_the_race(monkeypatch):
    calls = []
    methods = Fake(name="A"), Unison(name="B", right=0.9)
    race = race_of(*methods, on_epoch=lambda history: calls.append(history.stage))
    assert calls == ["1 of 2: B"] * 3 + ["2 of 2: A"] * 3
    assert titles(race.fitted) == ["A", "B"]
    methods = Fake(name="A"), Unison(name="B", right=1.0)
    assert titles(race_of(*methods).fitted) == ["A", "B"]  # a handful of nodes ends nothing
    monkeypatch.setattr(module, "ENOUGH", 1)
    assert race_of(*methods).summary({0: 1.0})[1] == "Not needed: A."


def test_a_failure_is_reported_and_the_others_go_on():
    race = race_of(Fake(name="A", error="no luck."), Fake(name="B"))
    assert titles(race.fitted) == ["B"]
    assert "Failed: A (no luck)." in " ".join(race.summary({0: 1.0}))
    with pytest.raises(ValueError, match=r"^No candidate could be fitted: no luck\.$"):
        race_of(Fake(error="no luck."))


def test_with_a_limit_the_first_is_always_fitted_and_the_last_ended(monkeypatch):
    monkeypatch.setattr(module, "perf_counter", lambda: Fake.clock.now)
    slow, quick = Fake(name="A", seconds=30), Fake(name="B", seconds=1)
    race = race_of(slow, quick, limit=60)  # 90 seconds
    assert (titles(race.fitted), race.seconds) == (["A"], 90)
    assert race.summary({0: 1.0})[1] == "Not reached: B."
    race = race_of(quick, slow, Fake(name="C"), limit=60)  # ends in the second epoch
    assert (titles(race.fitted), race.seconds, race.interrupted) == (["B"], 63, False)
    assert race.summary({0: 1.0})[1] == "Not reached: A; C."


@pytest.mark.parametrize(("at", "number"), [(1, 1), (5, 2), (14, 3)])
def test_ctrl_c_ends_with_what_there_is(at, number):
    calls = []

    def stop(history):
        calls.append(history.stage)
        if len(calls) == at:
            raise KeyboardInterrupt

    race = race_of(Fake(name="A"), Fake(name="B"), Fake(name="C"), task=OPEN, on_epoch=stop)
    assert len(calls) == at
    assert titles(race.fitted) == ["A"]
    assert len(race.tasks) == len(race.fitted[0].parts) == number
    assert [method.name for method in race.not_reached] == ["B", "C"]
    stages = race.history(race.fitted[0])
    assert [stage.main for stage in stages] == [stage is stages[-1] for stage in stages]
    assert stages[-1].interrupted
    method = Auto()
    method._take(race, race.weights())
    assert method.held_out(OPEN).sum() == sum(task.val.sum() for task in race.tasks)


@pytest.mark.parametrize(
    ("graph", "alone", "sentence"),
    [
        (0.9, 0.4, "The graph helps: the best model without it, B, reaches "),
        (0.52, 0.5, "Whether the graph helps is unclear: "),
        (0.4, 0.9, "Rejected: Fake"),
    ],
)
def test_it_says_whether_the_graph_helps(graph, alone, sentence):
    race = race_of(Fake(right=graph), Fake(name="B", right=alone, graph=False, shift=30))
    first, *_, last = race.summary({1: 1.0})
    assert first.endswith(" out of 2 candidates in 0 s.")
    assert last.startswith(sentence)
    assert last.endswith(" 15 validation nodes cannot tell apart.") == ("unclear" in sentence)
    scores = [f"{100 * trial.score:.1f}" for trial in race.fitted]
    useless = f"The graph does not help, the best models reach {scores[0]} with it and {scores[1]}"
    assert first.startswith(f"{useless} without it: chose B (validation ") == (alone > graph)


def test_every_declared_setting_is_a_candidate_with_and_without_the_graph():
    task = small_task()
    candidates = list(portfolio(task.graph).values())
    declared = [(kind, entry) for kind in METHODS.values() for entry in kind.portfolio]
    assert [type(candidate) for candidate in candidates] == [kind for kind, _ in declared]
    for candidate, (kind, entry) in zip(candidates, declared, strict=True):
        assert candidate == kind(**{**kind.graph_defaults(task.graph), **entry})
    assert {candidate.uses_graph for candidate in candidates} == {True, False}
    names = [candidate.full_title for candidate in candidates]
    assert len(set(names)) == len(names)
    method = Auto(max_epochs=6, patience=6).fit(task, seed=0)
    assert {stage.stage for stage in method.history_} == set(names)
    assert all(stage.max_epochs <= 6 and stage.patience <= 6 for stage in method.history_)


def test_networks_of_whole_graphs_are_tried_where_no_class_is_rare_and_the_graph_is_small(
    monkeypatch,
):
    tried = []
    monkeypatch.setattr(Auto, "choose", lambda self, task, methods: tried.append(methods))
    rare = task_with(60, 6)
    for task, largest, found in ((MANY, 2**20, True), (MANY, 9, False), (rare, 2**20, False)):
        monkeypatch.setattr(module, "LARGEST", largest)
        Auto()._fit(task)
        assert any(isinstance(one, DoubleBalancing) for one in tried.pop()) == found


def test_given_parameters_replace_those_of_the_portfolio():
    graph = small_task().graph
    found = portfolio(graph, {"boosting": {"columns": 3}})
    assert {found[f"boosting hops={hops}"].columns for hops in (0, 2)} == {3}
    equal = portfolio(graph, {"boosting": {"hops": 1}})
    assert [name for name in equal if name.startswith("boosting")] == ["boosting"]
