"""Runs side by side: each ends as it would have ended alone."""

import dataclasses
import os
import signal

import pytest
import torch

from evengraph.fast import replicas
from evengraph.fast.replicas import (
    Fit,
    batching,
    can_replicate,
    fit_as_batch,
    fit_batch,
    share_batch,
)
from evengraph.fast.supervised import SupervisedReplicas
from evengraph.fast.unignn import UnifiedReplicas
from evengraph.methods import (
    GCN,
    METHODS,
    BalancedSoftmax,
    ClassBalanced,
    LogitAdjustment,
    PCSoftmax,
    Reweight,
    UniGNN,
)
from evengraph.methods.bases.method import reset
from evengraph.metrics.multiclass import rare_class, validation_score
from small_graphs import rare_task, small_task

# Without dropout, whose noise on the CPU comes from one stream for all.
COMMON = {"dropout": 0.0, "max_epochs": 30, "patience": 12, "hidden": 16}
SETTINGS = [
    {"clusters_per_class": 3, "threshold": 0.5, "recluster_every": 10},
    {"clusters_per_class": 5, "threshold": 0.4, "recluster_every": 20},
    {"clusters_per_class": 3, "threshold": 0.6, "recluster_every": 0},
    {"clusters_per_class": 4, "threshold": 0.5, "recluster_every": 10, "pseudo_weight": 0.5},
    {"clusters_per_class": 3, "threshold": 0.5, "recluster_every": 30, "class_weights": False},
]


def exhaust(steps):
    for _ in steps:
        pass


def side_by_side(methods, tasks, seeds, slots):
    for method, task in zip(methods, tasks, strict=True):
        reset(method, task)
    hidden = [task.hide_test_labels() for task in tasks]
    fits = [Fit(*parts) for parts in zip(methods, hidden, seeds, strict=True)]
    exhaust(fit_batch(fits, slots))
    for method in methods:
        method.fitted_ = True


def check_equal(methods, tasks, seeds):
    for method, task, seed in zip(methods, tasks, seeds, strict=True):
        alone = dataclasses.replace(method).fit(task, seed=seed)
        ours, theirs = method.history_[0], alone.history_[0]
        assert (ours.epochs, ours.best_epoch) == (theirs.epochs, theirs.best_epoch)
        assert ours.loss == pytest.approx(theirs.loss, rel=2e-3, abs=2e-3)
        assert ours.score == pytest.approx(theirs.score, abs=1e-6)
        torch.testing.assert_close(
            method.predict_proba(task.graph), alone.predict_proba(task.graph), rtol=0, atol=0.02
        )


@pytest.mark.parametrize("slots", [1, 2, 5])
def test_settings_and_seeds_side_by_side(slots):
    methods = [UniGNN(**COMMON, **settings) for settings in SETTINGS]
    task, seeds = small_task(), [3, 4, 5, 6, 7]
    swapped = dataclasses.replace(task, train=task.val, val=task.train)
    tasks = [task, swapped, task, task, swapped]  # a slot forgets the run before
    side_by_side(methods, tasks, seeds, slots)
    check_equal(methods, tasks, seeds)


@pytest.mark.parametrize("make", [lambda: GCN(**COMMON), lambda: UniGNN(**COMMON, **SETTINGS[0])])
def test_a_rare_class_selects_the_epoch(make):
    balanced = small_task(2, num_nodes=300)
    tasks = [rare_task(0), balanced, rare_task(1), balanced]
    for task in tasks[1:]:
        task.graph.x, task.graph.edge_index = tasks[0].graph.x, tasks[0].graph.edge_index
    methods, seeds = [make() for _ in tasks], [3, 4, 5, 6]
    assert [rare_class(task) for task in tasks] == [1, None, 1, None]
    side_by_side(methods, tasks, seeds, 2)
    check_equal(methods, tasks, seeds)


@pytest.mark.parametrize("kind", [UnifiedReplicas, SupervisedReplicas])
def test_free_slots_are_given_up(monkeypatch, kind):
    monkeypatch.setattr(replicas, "MIN_SLOTS", 1)
    monkeypatch.setattr(replicas, "SYNC_EVERY", 3 if kind is UnifiedReplicas else 1)
    left, shrink = [], kind._shrink
    monkeypatch.setattr(kind, "_shrink", lambda self, on: left.append([*on]) or shrink(self, on))
    common, task = COMMON | {"max_epochs": 90, "patience": 5}, small_task()
    if kind is UnifiedReplicas:
        tasks, seeds = [task] * 5, [3, 4, 5, 6, 7]
        methods = [UniGNN(**common, **settings) for settings in SETTINGS]
    else:
        swapped = dataclasses.replace(task, train=task.val, val=task.train)
        tasks, seeds = [task, other_split(task), swapped, task], [7, 6, 5, 4]
        methods = [Reweight(**common) for _ in tasks]
    side_by_side(methods, tasks, seeds, len(tasks))
    assert any(slots != list(range(len(slots))) for slots in left)  # runs had to move
    check_equal(methods, tasks, seeds)


def test_ctrl_c_waits_until_runs_have_moved(monkeypatch):
    whole = UnifiedReplicas.on_shrink

    def interrupted(self, slots):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(100):  # the interrupt would come in one of these lines
            pass
        whole(self, slots)

    monkeypatch.setattr(replicas, "MIN_SLOTS", 1)
    monkeypatch.setattr(replicas, "SYNC_EVERY", 3)
    monkeypatch.setattr(UnifiedReplicas, "on_shrink", interrupted)
    common = COMMON | {"max_epochs": 90, "patience": 5}
    methods = [UniGNN(**common, **settings) for settings in SETTINGS]
    task = small_task()
    side_by_side(methods, [task] * 5, [3, 4, 5, 6, 7], 5)  # all had begun: it is not passed on
    assert any(method.history_[0].interrupted for method in methods)
    for method in methods:
        assert method.predict_proba(task.graph).isfinite().all()


@pytest.mark.parametrize("kind", ["balanced", "none"])
def test_the_examples_alone_give_the_same(monkeypatch, kind):
    def few(self, *args, **options):
        begin(self, *args, **options)
        self.few, self.limits = True, (self.limits[0], self.labels.shape[1])

    begin = UnifiedReplicas.__init__
    monkeypatch.setattr(UnifiedReplicas, "__init__", few)
    settings = [
        {**one, "pseudo_labels": kind, "layers": 2 + i % 2} for i, one in enumerate(SETTINGS)
    ]
    for chosen in (settings[::2], settings[1::2]):
        methods = [UniGNN(**COMMON, **one) for one in chosen]
        tasks, seeds = [small_task()] * len(methods), range(3, 3 + len(methods))
        side_by_side(methods, tasks, seeds, 2)
        check_equal(methods, tasks, seeds)


def other_split(task):
    """The same graph with training and test nodes exchanged for some classes."""
    train, test = task.train.clone(), task.test.clone()
    moved = test.nonzero().flatten()[:4]
    train[moved], test[moved] = True, False
    return dataclasses.replace(task, train=train, test=test)


@pytest.mark.parametrize("kind", ["balanced", "all", "none"])
@pytest.mark.parametrize("encoders", ["both", "structural", "semantic"])
def test_splits_and_ablations(kind, encoders):
    settings = COMMON | {"pseudo_labels": kind, "encoders": encoders, "clusters_per_class": 4}
    methods = [UniGNN(recluster_every=10, **settings) for _ in range(3)]
    tasks = [small_task(), other_split(small_task()), small_task()]
    tasks[0] = smaller_validation(tasks[0])  # the first decides nothing for the others
    side_by_side(methods, tasks, [0, 1, 2], 2)
    check_equal(methods, tasks, [0, 1, 2])


def test_a_cpu_trains_one_run_at_a_time():
    assert not can_replicate(torch.device("cpu"))
    assert not fit_as_batch(GCN(), small_task(), seed=0)


@pytest.mark.parametrize("last", [15, None])
def test_callbacks_hear_of_every_epoch_and_ctrl_c_keeps_the_best_weights(last):
    method, task, heard = UniGNN(**COMMON, **SETTINGS[0]), small_task(), []

    def stop(history):
        heard.append(history.epochs)
        if history.epochs == last:
            raise KeyboardInterrupt

    reset(method, task)
    method._callbacks = [stop]
    exhaust(fit_batch([Fit(method, task.hide_test_labels(), 3)], 1))
    method.fitted_ = True
    history = method.history_[0]
    assert history.interrupted == (last is not None)
    assert heard == list(range((last or history.epochs) + 1))
    assert 15 <= history.epochs <= 30  # the GPU may have been some epochs ahead
    score = validation_score(method.predict_proba(task.graph), task)
    assert float(score) == pytest.approx(history.best_score, abs=1e-6)


def test_an_interrupt_before_the_first_epoch_is_passed_on(monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("evengraph.fast.unignn.kmeans", stop)
    method, task = UniGNN(**COMMON, **SETTINGS[0]), small_task()
    reset(method, task)
    with pytest.raises(KeyboardInterrupt):
        exhaust(fit_batch([Fit(method, task.hide_test_labels(), 3)], 1))


SHORT = [{"max_epochs": 0}, {"max_epochs": 1}, {"max_epochs": 9, "patience": 0}]


@pytest.mark.parametrize(
    ("every", "limits"), [(1, {}), (7, {}), (10**6, {}), *((1, s) for s in SHORT)]
)
def test_any_interval_of_clustering_and_short_runs(every, limits):
    settings = COMMON | {"clusters_per_class": 3} | limits
    methods = [UniGNN(**settings, recluster_every=number) for number in (every, 0, 10)]
    side_by_side(methods, [small_task()] * 3, [3, 4, 5], 2)
    check_equal(methods, [small_task()] * 3, [3, 4, 5])


def test_a_run_that_diverges_is_said_so_and_spoils_no_other(monkeypatch):
    start = UnifiedReplicas._start

    def broken(self, slot, run):
        if run.method.threshold == 0.45:
            run.net.weights[0]["structural"].data.fill_(torch.nan)
        start(self, slot, run)

    monkeypatch.setattr(UnifiedReplicas, "_start", broken)
    task, settings = small_task(), {"clusters_per_class": 3, "recluster_every": 10}
    methods = [UniGNN(**COMMON, **settings, threshold=t) for t in (0.5, 0.45, 0.5)]
    with pytest.raises(FloatingPointError, match="nan in epoch 0; try a smaller learning_rate"):
        side_by_side(methods, [task] * 3, [3, 4, 5], 3)
    methods[0].fitted_ = methods[2].fitted_ = True
    check_equal([methods[0], methods[2]], [task, task], [3, 5])
    assert not methods[1].history_


def smaller_validation(task):
    """The same task with three validation nodes fewer."""
    fewer = task.val.clone()
    fewer[fewer.nonzero()[:3]] = False
    return dataclasses.replace(task, val=fewer)


LABELLED = {
    "gcn": GCN,
    "reweight": Reweight,
    "balance": lambda **settings: Reweight(balance=True, **settings),
    "scale": lambda **settings: Reweight(scale=4.0, minority=2, **settings),
    "balancedsoftmax": BalancedSoftmax,
    "logitadjustment": lambda **settings: LogitAdjustment(tau=0.5, **settings),
    "pcsoftmax": PCSoftmax,
    "classbalanced": ClassBalanced,
    "plain": lambda **settings: GCN(network="plain", **settings),
}


@pytest.mark.parametrize("slots", [1, 2, 4])
@pytest.mark.parametrize("name", LABELLED)
def test_methods_of_labelled_nodes(name, slots):
    task = small_task()
    tasks = [smaller_validation(task), other_split(task), task, task]
    methods, seeds = [LABELLED[name](**COMMON) for _ in tasks], [0, 1, 2, 3]
    side_by_side(methods, tasks, seeds, slots)
    check_equal(methods, tasks, seeds)
    losses = [tuple(method.history_[0].loss) for method in methods]
    assert len(set(losses)) == len(losses)


BATCHED = {"gcn", "reweight", "balancedsoftmax", "logitadjustment", "pcsoftmax", "classbalanced"}


def test_which_methods_share_a_batch():
    assert {name for name, kind in METHODS.items() if batching(kind())} == BATCHED | {"unignn"}
    assert batching(GCN(backbone="sage")) is None
    assert batching(BalancedSoftmax(margin="tam")) is None
    assert share_batch(GCN(), GCN())
    assert share_batch(UniGNN(), UniGNN(threshold=0.7, clusters_per_class=3))
    assert not share_batch(METHODS["mlp"](), METHODS["mlp"]())
    method = Reweight()
    others = [Reweight(balance=True), Reweight(scale=2.0), Reweight(hidden=8), GCN()]
    pairs = [*((method, other) for other in others), (UniGNN(), UniGNN(alpha=1))]
    pairs += [(UniGNN(), UniGNN(mean_loss=True)), (UniGNN(), UniGNN(cluster_starts=2))]
    for one, other in pairs:
        assert not share_batch(one, other)
        assert not share_batch(other, one)


def test_a_recording_that_fails_leaves_runs_to_plain_steps(monkeypatch):
    class Fails:
        def __init__(self, *parts):
            raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(torch.cuda, "CUDAGraph", object)
    monkeypatch.setattr(torch.cuda, "graph", Fails)
    advance, recordable = UnifiedReplicas._advance, []

    def recorded(self, epochs):
        if self.recordable:
            self._record()
            recordable.append(self.recordable)
        advance(self, epochs)

    monkeypatch.setattr(UnifiedReplicas, "_advance", recorded)
    methods = [UniGNN(**COMMON, **SETTINGS[0]) for _ in range(2)]
    side_by_side(methods, [small_task()] * 2, [3, 4], 2)
    assert recordable == [False]
    check_equal(methods, [small_task()] * 2, [3, 4])
