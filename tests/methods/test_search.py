"""Search: what is fitted in the time there is, what is selected, and what is said about it."""

from dataclasses import asdict, dataclass, replace
from math import exp

import pytest
import torch

from evengraph.core.rng import generator
from evengraph.methods import METHODS, portfolio
from evengraph.methods import auto as module
from evengraph.methods.auto import Search
from evengraph.methods.bases.method import Method
from evengraph.metrics.multiclass import validation_score
from evengraph.testing import small_task

TASK = small_task()
NUM_VAL = int(TASK.val.sum())


class Clock:
    """Seconds that pass only when someone says so."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr(module, "perf_counter", lambda: self.now)


@dataclass(kw_only=True)
class Fake(Method):
    """Is right on a share of the nodes, after so many epochs of so many seconds."""

    clock = None

    name: str = "Fake"
    right: float = 0.5
    shift: int = 0  # which nodes it is right on
    graph: bool = True
    error: str = ""
    needed: int = 3
    seconds: float = 0.0

    @property
    def full_title(self):
        return self.name

    @property
    def uses_graph(self):
        return self.graph

    def _fit(self, task):
        if self.error:
            raise ValueError(self.error)
        self._train_in_steps(self._steps(task))

    def _steps(self, task):
        for _ in range(self.needed):
            if self.clock:
                self.clock.now += self.seconds
            yield torch.tensor(1.0), validation_score(self._logits(task.graph), task)

    def _logits(self, graph):
        nodes = torch.arange(graph.num_nodes)
        labels = TASK.graph.y
        hit = (nodes * 7 + self.shift) % 100 < 100 * self.right
        return 5.0 * torch.nn.functional.one_hot(torch.where(hit, labels, (labels + 1) % 3), 3)


def search_of(*methods, time_limit=100.0, metric=None, on_epoch=lambda history: None):
    search = Search([TASK], time_limit, metric)
    search.run(methods, 0, on_epoch)
    return search


def test_the_best_on_validation_is_selected():
    search = search_of(Fake(right=0.5), Fake(right=0.9), Fake(right=0.3))
    assert search.weights(0) == {1: 1.0}
    scores = [float(trial.score) for trial in search.fitted]
    assert scores[1] == max(scores)
    assert search_of(Fake(), Fake()).weights(0) == {0: 0.5, 1: 0.5}


def right_on(search, *nodes):
    """Let each candidate be right on its nodes only."""
    labels = search.validation.labels
    for trial, hits in zip(search.fitted, nodes, strict=True):
        hit = torch.zeros(NUM_VAL, dtype=torch.bool)
        hit[list(hits)] = True
        trial.probabilities = torch.nn.functional.one_hot(
            torch.where(hit, labels, (labels + 1) % 3), 3
        ).float()
        trial.score = search.validation.score(trial.probabilities)
    return search.fitted[1].score - search.fitted[0].score


def test_one_standard_error_behind_counts_an_eth_of_the_best():
    search = search_of(Fake(), Fake(), metric="accuracy")
    half = NUM_VAL // 2
    lead = right_on(search, range(half - 1), range(half - 1, NUM_VAL - half % 2))
    first, second = (trial.probabilities for trial in search.fitted)
    samples = search.validation.resamples(generator(0))
    ratio = exp(-lead / search.validation.noise(second, first, samples))
    assert 0.1 < ratio < 1  # all nodes differ, and the second is right on one or two more
    assert search.weights(0) == pytest.approx({0: ratio / (1 + ratio), 1: 1 / (1 + ratio)})


def test_what_is_far_behind_is_rejected():
    search = search_of(Fake(), Fake(), metric="accuracy")
    assert right_on(search, range(2), range(NUM_VAL - 1)) > 0.5
    assert search.weights(0) == {1: 1.0}
    assert right_on(search, range(NUM_VAL), range(2)) < -0.5
    assert search.weights(0) == {0: 1.0}


class Twice(Fake):
    """Another class, so that it may count more."""


def test_some_methods_count_as_several_and_small_shares_are_left_out(monkeypatch):
    monkeypatch.setitem(module.VOTES, "Twice", 3)
    search = search_of(Twice(), Fake())
    assert search.weights(0) == {0: 0.75, 1: 0.25}
    monkeypatch.setattr(module, "MIN_SHARE", 0.25)
    assert set(search.weights(0)) == {0, 1}
    monkeypatch.setattr(module, "MIN_SHARE", 0.26)
    assert search.weights(0) == {0: 1.0}


@pytest.mark.parametrize("graph", [True, False])
def test_where_the_graph_shows_no_use_it_is_no_part_of_the_average(graph, monkeypatch):
    monkeypatch.setattr(module, "FAR", 100.0)
    search = search_of(Fake(graph=graph), Fake(graph=False), metric="accuracy")
    half = NUM_VAL // 2
    assert right_on(search, range(half), range(half + 5)) > 0
    assert (0 in search.weights(0)) == (not graph)
    monkeypatch.setattr(module, "USELESS", 100.0)  # the same lead is no proof
    assert 0 in search.weights(0)
    assert right_on(search, range(half + 5), range(half)) < 0
    assert set(search.weights(0)) == {0, 1}


def test_a_failure_is_reported_and_the_others_go_on():
    search = search_of(Fake(name="A", error="no luck."), Fake(name="B"))
    assert [trial.title for trial in search.fitted] == ["B"]
    assert "Failed: A (no luck)." in " ".join(search.summary({0: 1.0}, 0))
    with pytest.raises(ValueError, match=r"^No candidate could be fitted: no luck\.$"):
        search_of(Fake(error="no luck."))


def timed(monkeypatch, *candidates, time_limit):
    clock = Clock(monkeypatch)
    methods = []
    for name, seconds in candidates:
        method = Fake(name=name, needed=10, seconds=seconds)
        method.clock = clock
        methods.append(method)
    search = search_of(*methods, time_limit=time_limit)
    epochs = {trial.title: len(trial.method.history_[0].loss) for trial in search.fitted}
    return search, epochs, clock.now - 100


def test_a_candidate_may_take_half_of_what_is_left_and_the_last_all(monkeypatch):
    search, epochs, took = timed(monkeypatch, ("A", 10), ("B", 10), ("C", 10), time_limit=80)
    # A ends at 40, B after 20 of the 40 left, C after the 20 left
    assert epochs == {"A": 4, "B": 2, "C": 2}
    assert took == 80
    assert all(trial.late for trial in search.fitted)
    assert "a quick one a tenth): A; B; C." in search.summary({0: 1.0}, 0)[1]
    assert not any(stage.interrupted for stage in search.history(search.fitted[0]))


def test_what_ignores_the_graph_comes_first_and_may_take_a_tenth(monkeypatch):
    clock = Clock(monkeypatch)
    methods = [Fake(name="A", needed=10, seconds=10), Fake(name="B", needed=10, seconds=10)]
    methods.append(Fake(name="C", needed=10, seconds=4, graph=False))
    for method in methods:
        method.clock = clock
    calls = []
    search = search_of(*methods, time_limit=100, on_epoch=lambda h: calls.append(h.stage))
    # C ends at 12, after a tenth; A after half of the 88 left; B after the 38 that are left then
    assert calls == ["C"] * 3 + ["A"] * 5 + ["B"] * 4
    assert [trial.title for trial in search.fitted] == ["A", "B", "C"]
    assert search.seconds == 102


def test_quick_candidates_come_first(monkeypatch):
    monkeypatch.setattr(module, "QUICK", {"Twice"})
    calls = []
    search = search_of(Fake(name="A"), Twice(name="B"), on_epoch=lambda h: calls.append(h.stage))
    assert calls[0] == "B"
    assert [trial.title for trial in search.fitted] == ["A", "B"]


def test_time_that_one_leaves_is_there_for_the_next(monkeypatch):
    search, epochs, took = timed(monkeypatch, ("A", 1), ("B", 3), time_limit=60)
    assert epochs == {"A": 10, "B": 10}
    assert took == search.seconds == 40
    assert "time limit" not in " ".join(search.summary({0: 1.0}, 0))


def test_what_there_is_no_time_for_is_named(monkeypatch):
    search, epochs, _ = timed(monkeypatch, ("A", 90), ("B", 1), ("C", 1), time_limit=60)
    assert epochs == {"A": 1}
    assert "Not reached: B; C." in search.summary({0: 1.0}, 0)[1]


def test_a_real_interrupt_ends_the_search_with_what_there_is():
    calls = []

    def stop(history):
        calls.append(history.stage)
        if calls.count("B") == 2:
            raise KeyboardInterrupt

    search = search_of(Fake(name="A"), Fake(name="B"), Fake(name="C"), on_epoch=stop)
    assert calls == ["A", "A", "A", "B", "B"]
    assert [trial.title for trial in search.fitted] == ["A", "B"]
    assert [method.full_title for method in search.not_reached] == ["C"]
    assert [stage.interrupted for stage in search.history(search.fitted[0])] == [False, True]


@pytest.mark.parametrize("where", ["_fit", "predict_proba"])
def test_an_interrupt_between_epochs_or_after_the_time_limit_counts_as_well(where, monkeypatch):
    second = Fake(name="B", needed=10, seconds=40)
    second.clock = Clock(monkeypatch)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(second, where, interrupted)
    search = search_of(Fake(name="A"), second, Fake(name="C"), time_limit=100)
    assert [trial.title for trial in search.fitted] == ["A"]
    assert not search.failed
    assert [method.full_title for method in search.not_reached] == ["B", "C"]
    assert search.history(search.fitted[0])[-1].interrupted
    with pytest.raises(KeyboardInterrupt):
        search_of(second)


def test_one_stage_is_the_main_one():
    search = search_of(Fake(name="A"), Fake(name="B"))
    stages = search.history(search.fitted[1])
    assert [(stage.stage, stage.main) for stage in stages] == [("A", False), ("B", True)]
    assert all(trial.method.history_[0].main for trial in search.fitted)  # these stay as they are


ALONE = {"graph": False, "shift": 30}


@pytest.mark.parametrize(
    ("methods", "weights", "words"),  # with the scores of both
    [
        ([Fake(), Fake()], {0: 0.6, 1: 0.4}, ["average of Fake (60%) and Fake (40%)"]),
        ([Fake(right=0.4), Fake(right=0.9)], {0: 1.0}, ["{}, not clearly behind the best", "({})"]),
        ([Fake(right=0.9), Fake(right=0.4)], {0: 1.0}, ["accuracy {}) out of 2", "Fake ({})"]),
        ([Fake(right=0.9), Fake(right=0.4, **ALONE)], {0: 1.0}, ["Chose", "Re", "graph helps"]),
        ([Fake(right=0.52), Fake(**ALONE)], {0: 1.0}, ["Chose", "Rejected", "nodes cannot tell"]),
        ([Fake(right=1.0), Fake(right=1.0, **ALONE)], {0: 1.0}, ["Chose", "Rej", "is unclear"]),
        (
            [Fake(right=0.4), Fake(name="B", right=0.9, **ALONE)],
            {1: 1.0},
            ["does not help, the best models reach {0} with it and {1} without it", "Rejected: F"],
        ),
    ],
)
def test_what_is_said(methods, weights, words):
    search = search_of(*methods)
    scores = [f"{100 * trial.score:.1f}" for trial in search.fitted]
    for place, (line, word) in enumerate(zip(search.summary(weights, 0), words, strict=True)):
        assert word.format(*(scores if "{0}" in word else scores[place:])) in line


def test_without_edges_the_graph_does_not_help():
    search = search_of(Fake(right=0.4), Fake(name="B", right=0.9, **ALONE))
    search.task = replace(TASK, graph=TASK.graph.clone())
    search.task.graph.edge_index = torch.tensor([[3, 4], [3, 4]])
    assert "it has no edges: chose B (validation " in search.summary({1: 1.0}, 0)[0]


@pytest.mark.parametrize(("graph", "alone"), [(0.9, 0.4), (0.4, 0.9)])
def test_where_time_ran_out_it_does_not_say_whether_the_graph_helps(graph, alone):
    search = search_of(Fake(right=graph), Fake(right=alone, graph=False))
    better, worse = search.fitted if graph > alone else reversed(search.fitted)
    better.late = True
    assert "unclear" not in search.summary({0: 1.0}, 0)[-1]
    worse.late = True
    assert "is unclear" in search.summary({0: 1.0}, 0)[-1]
    better.late = worse.late = False
    search.not_reached.append(Fake(name="C"))  # might have helped
    unclear = "some models were not trained to the end" in search.summary({0: 1.0}, 0)[-1]
    assert unclear == (graph < alone)


def test_the_metric_can_be_named():
    search = search_of(Fake(), metric="macro_f1")
    assert search.validation.metric == "macro_f1"
    expected = validation_score(search.fitted[0].method.predict_proba(TASK.graph), TASK)
    assert search.fitted[0].score == pytest.approx(float(expected))


def three_folds():
    held = [TASK.val_nodes, *TASK.train_nodes.chunk(2)]
    masks = [torch.zeros_like(TASK.val).index_fill(0, nodes, True) for nodes in held]
    return [replace(TASK, train=(TASK.train | TASK.val) & ~mask, val=mask) for mask in masks]


FOLDS = three_folds()


def raced(*methods, tasks=FOLDS, **options):
    search = Search(tasks, options.pop("time_limit", 100.0), "accuracy", **options)
    search.run(methods, 0, lambda history: None)
    return search


def test_folds_are_scored_together():
    search = raced(Fake(right=0.9), Fake(right=0.8, shift=3))
    nodes = torch.cat([task.val_nodes for task in FOLDS])
    assert search.done == 3
    assert torch.equal(search.validation.labels, TASK.graph.y[nodes])
    for trial in search.fitted:
        rows = trial.method.predict_proba(TASK.graph)[nodes]
        assert torch.equal(trial.probabilities, rows)
        assert trial.score == search.validation.score(rows)
        assert len(trial.methods) == 3


def test_what_is_far_behind_runs_in_no_further_fold():
    good, bad = Fake(right=0.95), Fake(right=0.1)
    search = raced(good, bad)
    assert [trial.method for trial in search.fitted] == [good]
    assert [trial.method for trial in search.behind] == [bad]
    assert "after 1 fold)" in search.summary(search.weights(0), 0)[1]
    assert len(raced(good, bad, race=False).fitted) == 2


def test_the_best_without_the_graph_stays_to_compare_with():
    search = raced(Fake(right=0.95), Fake(right=0.4, graph=False), Fake(right=0.05, graph=False))
    assert [len(trial.methods) for trial in search.fitted] == [3, 3]
    assert [trial.method.right for trial in search.behind] == [0.05]


def test_a_fold_that_time_does_not_allow_for_is_not_begun(monkeypatch):
    monkeypatch.setattr(Fake, "clock", Clock(monkeypatch))
    search = raced(Fake(right=0.9, seconds=1.0), time_limit=7.0)  # three per fold
    assert (search.done, len(search.fitted[0].methods)) == (2, 2)


def test_a_fold_that_fails_does_not_count(monkeypatch):
    fit = Fake._fit

    def fail(self, task):
        if torch.equal(task.val, FOLDS[2].val):
            raise ValueError("no")
        fit(self, task)

    monkeypatch.setattr(Fake, "_fit", fail)
    search = raced(Fake(right=0.9))
    assert search.done == 2
    assert search.validation.labels.numel() == sum(len(task.val_nodes) for task in FOLDS[:2])


def test_one_fold_does_not_decide_that_the_graph_is_useless(monkeypatch):
    monkeypatch.setattr(Search, "_graph_is_useless", lambda *_: True)
    equal = [Fake(right=0.8, graph=False), Fake(right=0.8), Fake(right=0.8)]
    search = raced(*equal)
    assert [len(trial.methods) for trial in search.fitted] == [3, 3, 3]
    assert search.weights(0) == {0: 1.0}


def test_ctrl_c_in_a_later_fold_ends_the_search_without_that_fold():
    def interrupt(history):
        seen.append(history.stage)
        if len(seen) == 8:  # the first candidate in the second fold; three epochs each
            raise KeyboardInterrupt

    seen = []
    search = Search(FOLDS, 100.0, "accuracy")
    search.run([Fake(name="a", right=0.9), Fake(name="b", right=0.9)], 0, interrupt)
    assert seen == ["a"] * 3 + ["b"] * 3 + ["a"] * 2
    assert (search.done, search.interrupted) == (1, True)
    assert any(stage.interrupted for stage in search.history(search.fitted[0]))


def test_every_declared_setting_is_a_candidate_in_the_order_of_the_table():
    candidates = list(portfolio(TASK.graph).values())
    declared = [(kind, entry) for kind in METHODS.values() for entry in kind.portfolio]
    assert [type(candidate) for candidate in candidates] == [kind for kind, _ in declared]
    for candidate, (kind, entry) in zip(candidates, declared, strict=True):
        assert asdict(candidate) == asdict(kind(**{**kind.graph_defaults(TASK.graph), **entry}))


def test_it_has_models_with_and_without_the_graph_and_no_title_twice():
    candidates = portfolio(TASK.graph).values()
    assert {candidate.uses_graph for candidate in candidates} == {True, False}
    titles = [candidate.full_title for candidate in candidates]
    assert len(set(titles)) == len(titles)


def test_given_parameters_replace_those_of_the_portfolio():
    found = portfolio(TASK.graph, {"boosting": {"columns": 3}})
    assert {found[f"boosting hops={hops}"].columns for hops in (0, 2)} == {3}
    assert found["unison"] == portfolio(TASK.graph)["unison"]


def test_candidates_that_parameters_make_equal_are_one():
    found = portfolio(TASK.graph, {"boosting": {"hops": 1}})
    assert [name for name in found if name.startswith("boosting")] == ["boosting"]
    assert found["boosting"].hops == 1
