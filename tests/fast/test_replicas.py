"""Runs side by side: each ends as it would have ended alone."""

import dataclasses

import pytest
import torch

from evengraph.fast.replicas import (
    Fit,
    batching,
    fit_as_batch,
    runs_in_memory,
    share_batch,
    train_batch,
)
from evengraph.fast.supervised import SupervisedBatch
from evengraph.fast.unignn import UnifiedBatch
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
from evengraph.training import loop
from small_graphs import rare_task, small_task

# Without dropout, whose noise on the CPU comes from one stream for all.
COMMON = {"dropout": 0.0, "max_epochs": 30, "patience": 12, "hidden": 16}
CLUSTERED = COMMON | {"clusters_per_class": 3, "threshold": 0.5, "recluster_every": 10}


def side_by_side(methods, tasks, seeds):
    for method, task in zip(methods, tasks, strict=True):
        reset(method, task)
    hidden = [task.hide_test_labels() for task in tasks]
    train_batch(
        batching(methods[0])([Fit(*parts) for parts in zip(methods, hidden, seeds, strict=True)])
    )
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


@pytest.mark.parametrize(
    "make", [lambda: GCN(**COMMON), lambda: UniGNN(**COMMON, clusters_per_class=3)]
)
def test_a_rare_class_selects_the_epoch(make):
    task = rare_task()
    assert rare_class(task) is not None
    methods, tasks = [make(), make()], [task, small_task(2)]
    tasks[1] = dataclasses.replace(task, train=task.val, val=task.train)
    side_by_side(methods, tasks, [1, 2])
    check_equal(methods, tasks, [1, 2])


def other_split(task):
    """The same graph with training and test nodes exchanged for some classes."""
    train, test = task.train.clone(), task.test.clone()
    moved = test.nonzero().flatten()[:4]
    train[moved], test[moved] = True, False
    return dataclasses.replace(task, train=train, test=test)


def smaller_validation(task):
    """The same task with three validation nodes fewer."""
    fewer = task.val.clone()
    fewer[fewer.nonzero()[:3]] = False
    return dataclasses.replace(task, val=fewer)


def three_tasks():
    return [smaller_validation(small_task()), other_split(small_task()), small_task()]


SETTINGS = [
    *({"pseudo_labels": kind} for kind in ("balanced", "all", "none")),
    *({"encoders": name, "layers": 3} for name in ("both", "structural", "semantic")),
    *({"recluster_every": every} for every in (0, 1, 7, 10**6)),
    *({"max_epochs": most, "patience": patience} for most, patience in ((0, 9), (1, 9), (9, 0))),
    {"unit_rows": True, "mean_loss": True, "cluster_starts": 3},
    {"stop_on": "loss"},
    {"stop_on": "accuracy", "class_weights": False, "share_embeddings": False},
    {"ranked_by": "log_odds", "class_weights": False, "keep_total": True},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_splits_and_settings_of_unignn(settings):
    methods, seeds = [UniGNN(**CLUSTERED | settings) for _ in range(3)], [3, 4, 5]
    side_by_side(methods, three_tasks(), seeds)
    check_equal(methods, three_tasks(), seeds)


LABELLED = {
    "gcn": GCN,
    "reweight": Reweight,
    "balance": lambda **settings: Reweight(balance=True, **settings),
    "scale": lambda **settings: Reweight(scale=4.0, minority=2, **settings),
    "balancedsoftmax": BalancedSoftmax,
    "logitadjustment": lambda **settings: LogitAdjustment(tau=0.5, **settings),
    "pcsoftmax": PCSoftmax,
    "classbalanced": ClassBalanced,
    "plain": lambda **settings: GCN(network="plain", weight_decay=0.1, **settings),
}


@pytest.mark.parametrize("name", LABELLED)
def test_methods_of_labelled_nodes(name):
    methods, seeds = [LABELLED[name](**COMMON) for _ in range(3)], [0, 1, 2]
    side_by_side(methods, three_tasks(), seeds)
    check_equal(methods, three_tasks(), seeds)
    losses = [tuple(method.history_[0].loss) for method in methods]
    assert len(set(losses)) == len(losses)


@pytest.mark.parametrize("make", [lambda: UniGNN(**CLUSTERED | {"dropout": 0.5}), GCN])
def test_noise_and_what_follows_do_not_depend_on_company(make, monkeypatch):
    kept = []
    for kind in (UnifiedBatch, SupervisedBatch):
        keep = kind.keep
        monkeypatch.setattr(
            kind, "keep", lambda self, rows, keep=keep: kept.append(rows) or keep(self, rows)
        )
    tasks = [small_task(), *three_tasks()]
    together = [dataclasses.replace(make(), max_epochs=40, patience=8) for _ in tasks]
    side_by_side(together, tasks, [0, 1, 2, 3])
    assert kept  # some had stopped
    for method, task, seed in zip(together, tasks, range(4), strict=True):
        alone = dataclasses.replace(method)
        side_by_side([alone], [task], [seed])
        assert method.history_[0].loss == pytest.approx(alone.history_[0].loss, rel=1e-3, abs=1e-3)
        found, expected = (one.predict_proba(task.graph) for one in (method, alone))
        torch.testing.assert_close(found, expected, rtol=0, atol=0.02)


def test_a_cpu_trains_one_run_at_a_time():
    assert not fit_as_batch(GCN(), small_task(), seed=0)


@pytest.mark.parametrize("last", [15, None])
def test_callbacks_hear_of_every_epoch_and_ctrl_c_keeps_the_best_weights(last):
    methods, task, heard = [UniGNN(**CLUSTERED) for _ in range(2)], small_task(), []

    def stop(history):
        heard.append(history.epochs)
        if history.epochs == last:
            raise KeyboardInterrupt

    for method in methods:
        reset(method, task)
    methods[0]._callbacks = [stop]
    train_batch(UnifiedBatch([Fit(one, task.hide_test_labels(), 3) for one in methods]))
    for method in methods:
        method.fitted_ = True
        history = method.history_[0]
        assert history.interrupted == (last is not None)
        score = validation_score(method.predict_proba(task.graph), task)
        assert float(score) == pytest.approx(history.best_score, abs=1e-6)
    assert heard == list(range((last or methods[0].history_[0].epochs) + 1))


def test_an_interrupt_before_the_first_epoch_is_passed_on(monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("evengraph.fast.unignn.batched_kmeans", stop)
    method, task = UniGNN(**CLUSTERED), small_task()
    reset(method, task)
    with pytest.raises(KeyboardInterrupt):
        train_batch(UnifiedBatch([Fit(method, task.hide_test_labels(), 3)]))
    assert not method.history_


def test_a_run_that_diverges_is_said_so_and_spoils_no_other(monkeypatch):
    network, made = UnifiedBatch.network, []

    def broken(self, method):
        made.append(network(self, method))
        if len(made) == 2:
            made[1].weights[0]["structural"].data.fill_(torch.nan)
        return made[-1]

    monkeypatch.setattr(UnifiedBatch, "network", broken)
    task, methods = small_task(), [UniGNN(**CLUSTERED) for _ in range(3)]
    with pytest.raises(FloatingPointError, match="nan in epoch 0; try a smaller learning_rate"):
        side_by_side(methods, [task] * 3, [3, 4, 5])
    methods[0].fitted_ = methods[2].fitted_ = True
    check_equal([methods[0], methods[2]], [task, task], [3, 5])
    assert not methods[1].history_


BATCHED = {"gcn", "reweight", "balancedsoftmax", "logitadjustment", "pcsoftmax", "classbalanced"}


def test_which_methods_share_a_batch():
    assert {name for name, kind in METHODS.items() if batching(kind())} == BATCHED | {"unignn"}
    assert batching(GCN(backbone="sage")) is None
    assert batching(BalancedSoftmax(margin="tam")) is None
    assert share_batch(GCN(), GCN())
    assert not share_batch(METHODS["mlp"](), METHODS["mlp"]())
    for other in (Reweight(balance=True), Reweight(hidden=8), GCN()):
        assert not share_batch(Reweight(), other)


def test_as_many_runs_as_fit_into_memory(monkeypatch):
    rooms = []
    for free in (0, 10**9):
        monkeypatch.setattr("evengraph.fast.replicas.free_memory", lambda device, free=free: free)
        rooms.append(runs_in_memory(Fit(UniGNN(), small_task(), 0)))
    assert rooms[0] == 1 < rooms[1]


def test_a_recording_that_fails_leaves_runs_to_plain_steps(monkeypatch):
    class Fails:
        def __init__(self, *parts, **options):
            raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(torch.cuda, "CUDAGraph", object)
    monkeypatch.setattr(torch.cuda, "graph", Fails)
    optimizer = torch.optim.Adam([torch.zeros(1, requires_grad=True)])
    assert isinstance(loop.recorded(lambda: None, optimizer, None), loop.Step)


@pytest.mark.parametrize("make", [GCN, UniGNN, lambda: GCN(network="plain")])
def test_gradients_of_a_recorded_epoch_have_the_strides_of_weights(make):
    method, task = make(), small_task()
    reset(method, task)
    batch = batching(method)([Fit(method, task.hide_test_labels(), seed) for seed in (1, 2)])
    batch.before(0)
    weights = list(batch.net.parameters())
    loss = batch.epoch()[0].sum()
    for found, weight in zip(loop.gradients_like(loss, weights), weights, strict=True):
        assert found.stride() == weight.stride()
        assert found.is_contiguous()
