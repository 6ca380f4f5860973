"""Uni-GNN's epoch: a batch gives loss and gradients of each run alone, up to rounding."""

import dataclasses
from itertools import product

import pytest
import torch
from evengraph.methods.bases.batching import Fit

from evengraph.core.rng import seeded
from evengraph.fast.unignn import (
    Examples,
    UnifiedReplicas,
    labelled_weights,
    unified_epoch,
    unified_loss,
)
from evengraph.methods import UniGNN
from evengraph.metrics.multiclass import validation_score
from small_graphs import normal, small_task

COMMON = {"dropout": 0.0, "hidden": 16, "max_epochs": 5}
SETTINGS = [
    {"clusters_per_class": 3, "threshold": 0.34},
    {"clusters_per_class": 5, "threshold": 0.36, "pseudo_weight": 0.5},
    {"clusters_per_class": 4, "threshold": 0.0, "class_weights": False},
]


def batch_of(methods, tasks, inputs):
    """Replicas with a run of each method, ready for the first epoch."""
    runs = []
    for seed, (method, task) in enumerate(zip(methods, tasks, strict=True)):
        method.reset(task)
        runs.append(method._run(Fit(method, task.hide_test_labels(), seed), inputs))
    first = methods[0]
    replicas = UnifiedReplicas(
        inputs, runs, len(runs), first.pseudo_labels, **first._training_params()
    )
    for slot, run in enumerate(runs):
        replicas._start(slot, run)
    replicas.pause(dict.fromkeys(range(len(runs)), 0))
    return replicas


def single(method, task, seed, inputs):
    """Loss, score and gradients of a run's first epoch, by the code of a single run."""
    task = task.hide_test_labels()
    with seeded(seed):
        net = method._network(task.graph)
        net.init_clusters(inputs)
        loss, score = unified_epoch(
            net,
            inputs,
            net.stored,
            select=method._selection(task),
            score=lambda logits: validation_score(logits, task),
            recluster=net.recluster,
        )
    return loss, score, torch.autograd.grad(loss, list(net.parameters()))


def other_split(task):
    train, test = task.train.clone(), task.test.clone()
    moved = test.nonzero().flatten()[:4]
    train[moved], test[moved] = True, False
    return dataclasses.replace(task, train=train, test=test)


FEW = [("balanced", "both", True), ("none", "both", True)]  # logits of the examples alone


@pytest.mark.parametrize(
    ("kind", "encoders", "few"),
    [*product(["balanced", "all", "none"], ["both", "structural", "semantic"], [False]), *FEW],
)
def test_a_batch_has_the_losses_and_gradients_of_single_runs(kind, encoders, few):
    options = {**COMMON, "pseudo_labels": kind, "encoders": encoders}
    methods = [UniGNN(**options, **settings) for settings in SETTINGS]
    tasks = [small_task(), other_split(small_task()), small_task()]
    methods[0].reset(tasks[0])
    inputs = methods[0]._inputs(tasks[0].graph)
    replicas = batch_of(methods, tasks, inputs)
    if few:
        replicas.few, replicas.limits = True, (replicas.limits[0], replicas.labels.shape[1])
    losses, scores = replicas.epoch()
    gradients = torch.autograd.grad(losses.sum(), replicas.weights)
    assert len(set(losses.tolist())) == len(methods)
    for slot, (method, task) in enumerate(zip(methods, tasks, strict=True)):
        loss, score, expected = single(method, task, slot, inputs)
        torch.testing.assert_close(losses[slot], loss, rtol=1e-5, atol=1e-6)
        assert float(scores[slot]) == pytest.approx(float(score), abs=1e-6)
        for ours, theirs in zip(gradients, expected, strict=True):
            torch.testing.assert_close(ours[slot], theirs, rtol=1e-5, atol=1e-6)


def test_both_layouts_of_the_loss_by_hand():
    """Labelled nodes 0 and 1, pseudo-labels 2 to 4."""
    logits, targets = normal(5, 3), torch.tensor([0, 2, 1, 1, 0])
    weights = labelled_weights(torch.tensor([4, 1, 2]), balance=True).double()[targets[:2]]
    each = [-row.log_softmax(0)[label].item() for row, label in zip(logits, targets, strict=True)]
    expected = 0.25 * each[0] + 0.5 * each[1] + 0.7 * sum(each[2:]) / 3
    listed = Examples(targets, weights, pseudo_weight=0.7)
    assert unified_loss(logits, listed).item() == pytest.approx(expected)
    every = torch.cat([weights, torch.full((3,), 0.7 / 3, dtype=torch.float64)])
    batch = Examples(targets.unsqueeze(0), every.unsqueeze(0))
    assert unified_loss(logits.unsqueeze(0), batch).tolist() == pytest.approx([expected])
