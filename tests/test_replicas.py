"""Runs side by side: each ends as it would have ended alone."""

import dataclasses

import pytest
import torch
from torch import nn

from evengraph.methods import UniGNN
from evengraph.methods.base import Fit
from evengraph.replicas import can_replicate, stacked
from small_graphs import small_task

# Without dropout, whose noise on the CPU comes from one stream for all.
COMMON = {"dropout": 0.0, "max_epochs": 30, "patience": 12, "hidden": 16}
SETTINGS = [
    {"clusters_per_class": 3, "threshold": 0.5, "recluster_every": 10},
    {"clusters_per_class": 5, "threshold": 0.4, "recluster_every": 20},
    {"clusters_per_class": 3, "threshold": 0.6, "recluster_every": 0},
    {"clusters_per_class": 4, "threshold": 0.5, "recluster_every": 10, "pseudo_weight": 0.5},
    {"clusters_per_class": 3, "threshold": 0.5, "recluster_every": 30, "class_weights": False},
]


def side_by_side(methods, tasks, seeds, slots):
    for method, task in zip(methods, tasks, strict=True):
        method._begin(task)
    hidden = [task.without_test_labels() for task in tasks]
    fits = [Fit(*parts) for parts in zip(methods, hidden, seeds, strict=True)]
    methods[0]._fit_together(fits, slots)
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
    tasks, seeds = [small_task()] * 5, [3, 4, 5, 6, 7]
    side_by_side(methods, tasks, seeds, slots)
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
    fewer = tasks[0].val.clone()
    fewer[fewer.nonzero()[:3]] = False
    tasks[0] = dataclasses.replace(tasks[0], val=fewer)  # the first decides nothing for the others
    side_by_side(methods, tasks, [0, 1, 2], 2)
    check_equal(methods, tasks, [0, 1, 2])


def test_callbacks_hear_of_every_epoch():
    method, task, heard = UniGNN(**COMMON, **SETTINGS[0]), small_task(), []
    method._begin(task)
    method._callbacks = [lambda history: heard.append(history.epochs)]
    method._fit_together([Fit(method, task.without_test_labels(), 3)], 1)
    assert heard == list(range(len(heard)))
    assert heard[-1] == method.history_[0].epochs


def test_networks_are_stacked():
    nets = [nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)) for _ in range(4)]
    together = stacked(nets)
    assert together[0].weight.shape == (4, 2, 3)
    assert together[1].running_mean.shape == (4, 2)
    for index, net in enumerate(nets):
        assert torch.equal(together[0].weight[index], net[0].weight)
    assert nets[0][0].weight.shape == (2, 3)


def test_a_cpu_trains_one_run_at_a_time():
    assert not can_replicate(torch.device("cpu"))


def test_ctrl_c_keeps_the_best_weights_so_far():
    method, task = UniGNN(**COMMON, **SETTINGS[0]), small_task()

    def stop(history):
        if history.epochs == 15:
            raise KeyboardInterrupt

    method._begin(task)
    method._callbacks = [stop]
    method._fit_together([Fit(method, task.without_test_labels(), 3)], 1)
    method.fitted_ = True
    history = method.history_[0]
    assert history.interrupted
    assert history.epochs == 15
    assert torch.isfinite(method.predict_proba(task.graph)).all()
