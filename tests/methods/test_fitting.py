"""fit_many: the same as fitting each in turn."""

import dataclasses
from itertools import pairwise

import pytest
import torch

from evengraph.core.task import keep_edges
from evengraph.methods import GCN, METHODS, Auto, Method, UniGNN, portfolio
from evengraph.methods.bases.fitting import fit_many, train_groups
from small_graphs import small_task


def test_many_fits_equal_single_ones():
    task = small_task()
    methods = [GCN(max_epochs=5), UniGNN(max_epochs=5, clusters_per_class=3), GCN(max_epochs=3)]
    told = []
    fit_many(methods, [task] * 3, seeds=[1, 2, 3], on_fit=told.append)
    assert told == [0, 1, 2]
    for method, seed in zip(methods, [1, 2, 3], strict=True):
        alone = dataclasses.replace(method).fit(task, seed=seed)
        assert torch.equal(method.predict_proba(task.graph), alone.predict_proba(task.graph))


@pytest.fixture
def as_on_a_card(monkeypatch):
    """Let runs share the CPU, as they would share a card."""
    monkeypatch.setattr("evengraph.methods.bases.fitting.can_replicate", lambda device: True)


def runs(count, **fields):
    settings = {"max_epochs": 12, "dropout": 0.0, "clusters_per_class": 3, "recluster_every": 5}
    return [UniGNN(**settings | fields) for _ in range(count)]


def test_runs_of_a_kind_are_fitted_together(as_on_a_card):
    task, told = small_task(), []
    methods = [*runs(2), GCN(max_epochs=2), *runs(1, hidden=8), *runs(1, threshold=0.7)]
    fit_many(methods, [task] * 5, seeds=range(5), slots=2, on_fit=told.append)
    assert sorted(told) == [0, 1, 2, 3, 4]
    for seed, method in enumerate(methods):
        alone = dataclasses.replace(method).fit(task, seed=seed)
        found, expected = (one.predict_proba(task.graph) for one in (method, alone))
        torch.testing.assert_close(found, expected, rtol=0, atol=0.02)
        assert not method._callbacks


def test_fits_that_see_different_edges_are_not_fitted_together(as_on_a_card):
    task = small_task()
    some = torch.arange(task.graph.num_edges) % 2 == 0
    past = dataclasses.replace(task, past=keep_edges(task.graph, some))
    methods = runs(2)
    fit_many(methods, [task, past], seeds=[0, 0])
    for method, one in zip(methods, [task, past], strict=True):
        alone = dataclasses.replace(method)
        fit_many([alone], [one], seeds=[0])
        assert torch.equal(method.predict_proba(task.graph), alone.predict_proba(task.graph))


@pytest.mark.parametrize("network", ["comparison", "plain"])
def test_either_network_is_fitted_together(as_on_a_card, network):
    fields = {"max_epochs": 30, "dropout": 0.0, "weight_decay": 0.1, "network": network}
    task, methods = small_task(), [GCN(**fields) for _ in range(3)]
    fit_many(methods, [task] * 3, seeds=range(3), slots=2)
    for seed, method in enumerate(methods):
        alone = GCN(**fields).fit(task, seed=seed)
        assert method.history_[0].loss == pytest.approx(alone.history_[0].loss, rel=1e-4)


def test_test_labels_are_out_of_reach_of_a_group(as_on_a_card):
    task = small_task()
    labels = torch.where(task.train | task.val, task.graph.y, (task.graph.y + 1) % 3)
    scrambled = dataclasses.replace(task, graph=task.graph.clone())
    scrambled.graph.y = labels
    first, second = runs(2), runs(2)
    fit_many(first, [task] * 2, seeds=[0, 1])
    fit_many(second, [scrambled] * 2, seeds=[0, 1])
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one.predict_proba(task.graph), other.predict_proba(task.graph))


def test_a_bad_task_is_found_before_anything_is_trained(as_on_a_card):
    task = small_task()
    bad = dataclasses.replace(task, val=torch.zeros_like(task.val))
    methods = [*runs(2), GCN()]
    with pytest.raises(ValueError, match="val set is empty"):
        fit_many(methods, [task, task, bad], seeds=range(3))
    assert not any(method.is_fitted for method in methods)


def test_a_failing_caller_leaves_nothing_behind(as_on_a_card):
    def fail(place):
        raise OSError("disk full")

    methods = runs(2)
    with pytest.raises(OSError, match="disk full"):
        fit_many(methods, [small_task()] * 2, seeds=range(2), on_fit=fail)
    assert not any(method._callbacks for method in methods)


def test_an_object_keeps_one_fit_and_there_is_room_for_one():
    method, task = GCN(max_epochs=1), small_task()
    with pytest.raises(ValueError, match="different objects"):
        fit_many([method, method], [task] * 2, seeds=[0, 1])
    with pytest.raises(ValueError, match="slots must be at least 1, got 0"):
        fit_many([method], [task], seeds=[0], slots=0)


def test_groups_take_turns_and_end_as_they_would_alone(as_on_a_card):
    task, order = small_task(), []
    first, second, third = runs(3), runs(4, hidden=8), runs(2, alpha=1)
    methods = [*first, *second, *third]
    on_epoch = Method._report_epoch

    def tell(self, history):
        order.append(next(n for n, group in enumerate((first, second, third)) if self in group))
        on_epoch(self, history)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Method, "_report_epoch", tell)
        fit_many(methods, [task] * 9, seeds=range(9))
    changes = [one for one, other in pairwise(order) if one != other]
    assert changes[:4] == [1, 2, 1, 2]  # two at a time, the heaviest beside the lightest
    assert 0 in order
    for seed, method in enumerate(methods):
        alone = dataclasses.replace(method).fit(task, seed=seed)
        found, expected = (one.predict_proba(task.graph) for one in (method, alone))
        torch.testing.assert_close(found, expected, rtol=0, atol=0.02)


@pytest.mark.parametrize(
    ("fields", "error"),
    [({"learning_rate": 1e30}, FloatingPointError), ({"clusters_per_class": 900}, ValueError)],
)
def test_a_group_that_fails_does_not_stop_the_others(as_on_a_card, fields, error):
    bad, good = runs(2, **fields), runs(2, hidden=8)
    with pytest.raises(error, match=next(iter(fields))):
        fit_many([*bad, *good], [small_task()] * 4, seeds=range(4))
    assert [method.is_fitted for method in (*bad, *good)] == [False, False, True, True]
    assert not any(method._callbacks for method in (*bad, *good))


class FakeGroup:
    """A group of which one run was lost, and another ended by Ctrl-C."""

    work, methods, interrupted = 1, [None, None], True

    def __init__(self, *ends):
        self.ends, self.closed = list(ends), False

    def step(self):
        raise self.ends.pop(0)

    def interrupt(self):
        raise FloatingPointError

    def close(self):
        self.closed = True


def test_ctrl_c_is_heard_where_a_run_was_lost():
    groups = [FakeGroup(FloatingPointError()), FakeGroup()]
    with pytest.raises(KeyboardInterrupt):
        train_groups(groups, lambda: False)
    assert all(group.closed for group in groups)


def test_ctrl_c_ends_every_group_that_has_begun(as_on_a_card):
    task = small_task()
    groups = runs(2, max_epochs=100), runs(2, alpha=1), runs(2, hidden=8, max_epochs=100)
    methods = [method for group in groups for method in group]
    seen = []
    on_epoch = Method._report_epoch

    def stop(self, history):
        on_epoch(self, history)
        seen.append(self)
        if len(seen) > 40:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Method, "_report_epoch", stop)
        with pytest.raises(KeyboardInterrupt):
            fit_many(methods, [task] * 6, seeds=range(6))
    assert [method.is_fitted for method in methods] == [True, True, False, False, True, True]
    begun = [method for method in methods if method.is_fitted]
    assert all(method.history_[0].interrupted for method in begun)
    for method in begun:
        assert method.predict_proba(task.graph).isfinite().all()


def test_an_interrupt_of_an_earlier_fit_is_forgotten():
    task, told = small_task(), []
    first, second = GCN(max_epochs=2), UniGNN(max_epochs=2, clusters_per_class=3)
    second.fit(task, seed=0)
    second.history_[0].interrupted = True
    fit_many([first, second], [task] * 2, seeds=[1, 2], on_fit=told.append)
    assert told == [0, 1]
    assert not second.history_[0].interrupted


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


def test_given_parameters_replace_those_of_the_portfolio():
    graph = small_task().graph
    found = portfolio(graph, {"boosting": {"columns": 3}})
    assert {found[f"boosting hops={hops}"].columns for hops in (0, 2)} == {3}
    equal = portfolio(graph, {"boosting": {"hops": 1}})
    assert [name for name in equal if name.startswith("boosting")] == ["boosting"]
