"""Supervised runs: a batch gives loss and gradients of each run alone, up to rounding."""

import dataclasses

import pytest
import torch
from evengraph.methods.bases.batching import Fit

from evengraph.core.rng import seeded
from evengraph.fast.supervised import SupervisedReplicas
from evengraph.methods import (
    GCN,
    BalancedSoftmax,
    ClassBalanced,
    LogitAdjustment,
    PCSoftmax,
    Reweight,
)
from small_graphs import small_task

COMMON = {"dropout": 0.0, "hidden": 16, "max_epochs": 0}
METHODS = {
    "gcn": GCN(**COMMON),
    "plain": GCN(**COMMON, network="plain"),
    "reweight": Reweight(**COMMON),
    "balance": Reweight(**COMMON, balance=True),
    "scale": Reweight(**COMMON, scale=4.0, minority=2),
    "balancedsoftmax": BalancedSoftmax(**COMMON),
    "logitadjustment": LogitAdjustment(**COMMON, tau=0.5),
    "pcsoftmax": PCSoftmax(**COMMON),
    "classbalanced": ClassBalanced(**COMMON),
}


def tasks():
    task = small_task()
    train, test = task.train.clone(), task.test.clone()
    moved = test.nonzero().flatten()[:4]
    train[moved], test[moved] = True, False
    fewer = task.val.clone()
    fewer[fewer.nonzero()[:3]] = False
    return [
        dataclasses.replace(task, val=fewer),
        dataclasses.replace(task, train=train, test=test),
        task,
    ]


def batch_of(method, tasks):
    runs = []
    for seed, task in enumerate(tasks):
        copy = dataclasses.replace(method)
        copy.reset(task)
        runs.append(copy._run(Fit(copy, task.hide_test_labels(), seed)))
    inputs = method._inputs(tasks[0].graph)
    replicas = SupervisedReplicas(inputs, runs, len(runs), 16, **method._training_params())
    for slot, run in enumerate(runs):
        replicas._start(slot, run)
    return replicas


@pytest.mark.parametrize("name", METHODS)
def test_a_batch_has_the_losses_and_gradients_of_single_runs(name):
    method = METHODS[name]
    replicas = batch_of(method, tasks())
    losses, scores = replicas.epoch()
    gradients = torch.autograd.grad(losses.sum(), replicas.weights)
    assert len(set(losses.tolist())) == 3
    for slot, task in enumerate(tasks()):
        single = dataclasses.replace(method)
        single.reset(task)
        with seeded(slot):
            net = single._new_network()
        loss = single._loss(task)(net(*single._inputs(task.graph)))
        torch.testing.assert_close(losses[slot], loss, rtol=1e-6, atol=1e-6)
        for ours, theirs in zip(
            gradients, torch.autograd.grad(loss, list(net.parameters())), strict=True
        ):
            torch.testing.assert_close(ours[slot], theirs, rtol=1e-5, atol=1e-6)
        history = dataclasses.replace(method).fit(task, seed=slot).history_[0]
        assert losses[slot].item() == pytest.approx(history.loss[0], rel=1e-6)
        assert scores[slot].item() == pytest.approx(history.score[0], abs=1e-6)


@pytest.mark.parametrize("name", METHODS)
def test_weights_of_a_run_sum_to_one(name):
    replicas = batch_of(METHODS[name], tasks())
    torch.testing.assert_close(replicas.weight.sum(1), torch.ones(3))
