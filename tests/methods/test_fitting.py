"""fit_many: the same as fitting each in turn."""

import dataclasses

import pytest
import torch

from evengraph.core.task import keep_edges
from evengraph.fast.replicas import train_batch
from evengraph.methods import GCN, Method, UniGNN
from evengraph.methods.bases.fitting import fit_many
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
    monkeypatch.setattr("evengraph.methods.bases.fitting.has_kernels", lambda device: True)


def runs(count, **fields):
    settings = {"max_epochs": 12, "dropout": 0.0, "clusters_per_class": 3, "recluster_every": 5}
    return [UniGNN(**settings | fields) for _ in range(count)]


def test_runs_of_a_kind_are_fitted_together(as_on_a_card, monkeypatch):
    sizes, home = [], "evengraph.methods.bases.fitting"
    monkeypatch.setattr(f"{home}.SLOTS", 2)
    train = lambda batch: sizes.append(len(batch.fits)) or train_batch(batch)  # noqa: E731
    monkeypatch.setattr(f"{home}.train_batch", train)
    task, told = small_task(), []
    methods = [*runs(3), GCN(max_epochs=2), *runs(1, hidden=8), *runs(1, threshold=0.7)]
    fit_many(methods, [task] * 6, seeds=range(6), on_fit=told.append)
    assert sorted(told) == [0, 1, 2, 3, 4, 5]
    assert sizes == [2]  # the third finds no room
    for seed, method in enumerate(methods):
        alone = dataclasses.replace(method).fit(task, seed=seed)
        found, expected = (one.predict_proba(task.graph) for one in (method, alone))
        torch.testing.assert_close(found, expected, rtol=0, atol=0.02)
        assert not method._callbacks


def test_fits_that_see_different_edges_are_not_fitted_together(as_on_a_card):
    task = small_task()
    some = torch.arange(task.graph.num_edges) % 2 == 0
    past = dataclasses.replace(task, past=keep_edges(task.graph, some))
    methods = runs(3)
    fit_many(methods, [task, past, past], seeds=[0, 0, 0])
    for method, one in zip(methods, [task, past, past], strict=True):
        alone = dataclasses.replace(method).fit(one, seed=0)
        found, expected = (m.predict_proba(task.graph) for m in (method, alone))
        torch.testing.assert_close(found, expected, rtol=0, atol=0.02)


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


def test_an_object_keeps_one_fit():
    method, task = GCN(max_epochs=1), small_task()
    with pytest.raises(ValueError, match="different objects"):
        fit_many([method, method], [task] * 2, seeds=[0, 1])


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


def test_ctrl_c_ends_the_group_that_has_begun(as_on_a_card):
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
    assert [method.is_fitted for method in methods] == [True, True, False, False, False, False]
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
