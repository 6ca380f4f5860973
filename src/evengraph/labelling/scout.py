"""Scout: a committee of softmax regressions that learns from a handful of labels in a second."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor
from torch.nn.functional import one_hot

from evengraph.core.rng import generator
from evengraph.methods.bases.committee import Committee

MEMBERS = 8
PENALTY = 0.1  # L2, per labelled node
ITERATIONS = 30  # of L-BFGS
PRECISION = 1e-6  # of the loss, relative; it is computed in 32 bits
LEVEL_PENALTY = 0.01  # L2 of the last change of the intercepts
BLOCK = 100_000  # rows predicted at a time
DISTANCES = 200_000_000  # between rows and labels at a time, 800 MB


def scout(rows: Tensor, labels: Tensor, num_classes: int, *, seed: int = 0) -> Committee | None:
    """Fit the committee to all labels and predict every node; None with fewer than two classes.

    Every member sees the labels with random weights of its own (the Bayesian bootstrap), so that
    members differ where the labels do not decide. Classes weigh the same, however many labels they
    have; a class without any gets the probability 0. Labels that were chosen crowd where classes
    meet, so a label weighs the square root of the number of nodes that it is the nearest one of;
    for the intercepts, which decide where one class ends and the next begins, the number itself.

    Args:
        rows: Of all nodes.
        labels: -1 for unlabelled.
        num_classes: Including those without labels.
        seed: Of the weights.

    Shapes:
        rows: (N, d), labels: int64, (N,)
    """
    nodes = (labels >= 0).nonzero().squeeze(1)
    classes, targets = labels[nodes].unique(return_inverse=True)
    if len(classes) < 2:
        return None
    draws = torch.rand(MEMBERS, len(nodes), generator=generator(seed)).clamp(min=1e-6)
    weights, nodes_each = -draws.log(), stood_for(rows, rows[nodes])
    model = fit_members(rows[nodes], targets, weights * nodes_each.sqrt())
    model = level(model, rows[nodes], targets, weights * nodes_each)
    result = rows.new_zeros(MEMBERS, len(rows), num_classes)
    for start in range(0, len(rows), BLOCK):
        part = slice(start, start + BLOCK)
        result[:, part, classes] = predict_members(rows[part], model)
    return Committee.even(result)


def stood_for(rows: Tensor, labelled: Tensor) -> Tensor:
    """The number of rows that each of the labelled ones is the nearest of, at least 1, (n,)."""
    parts = rows.split(min(BLOCK, max(1, DISTANCES // len(labelled))))
    nearest = torch.cat([torch.cdist(part, labelled).argmin(1) for part in parts])
    return torch.bincount(nearest, minlength=len(labelled)).clamp(min=1).to(rows)


def fit_members(rows: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Fit one softmax regression per row of weights; a label of weight 0 is not seen.

    All are one problem for the solver, since members share nothing.

    Shapes:
        rows: (n, d); targets: int64, (n,), every class at least once; weights: (M, n)
        returns: (M, d + 1, C)
    """
    weights, rows = _balanced(weights, targets), _with_bias(rows)
    shape = rows.shape[1], len(weights), int(targets.max()) + 1
    penalty = (PENALTY / (weights > 0).sum(1))[:, None].repeat(shape[0], 1, 1)
    penalty[-1] = 0  # intercepts are free

    def loss(model: Tensor) -> tuple[Tensor, Tensor]:
        logits = (rows @ model.flatten(1)).view(-1, *shape[1:])
        value, slope = _loss(logits, targets, weights)
        decay = penalty * model
        return value + (decay * model).sum(), (rows.T @ slope.flatten(1)).view(shape) + 2 * decay

    return _minimise(loss, rows.new_zeros(shape)).transpose(0, 1)


def level(model: Tensor, rows: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Fit the intercepts again, with other weights of the labels; the slopes stay.

    Shapes:
        As in `fit_members`.
    """
    weights, logits = _balanced(weights, targets), _logits(rows, model)

    def loss(change: Tensor) -> tuple[Tensor, Tensor]:
        value, slope = _loss(logits + change, targets, weights)
        decay = LEVEL_PENALTY * change
        return value + (decay * change).sum(), slope.sum(0) + 2 * decay

    change = _minimise(loss, torch.zeros_like(model[:, -1]))
    return torch.cat([model[:, :-1], (model[:, -1] + change).unsqueeze(1)], dim=1)


def _loss(logits: Tensor, targets: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Weighted cross-entropy, summed over members, and its gradient.

    Shapes:
        logits and gradient: (n, M, C)
    """
    aims = one_hot(targets, logits.shape[2]).to(logits).unsqueeze(1)
    logs, each = logits.log_softmax(2), weights.T.unsqueeze(2)
    return -(each * aims * logs).sum(), each * (logs.exp() - aims)


def _minimise(loss: Callable[[Tensor], tuple[Tensor, Tensor]], start: Tensor) -> Tensor:
    """By L-BFGS, of a function that gives its value and gradient."""

    def flat(values: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = loss(torch.from_numpy(values).to(start).view_as(start))
        return float(value), slope.double().numpy().ravel()

    options = {"maxiter": ITERATIONS, "ftol": PRECISION}
    first = start.double().numpy().ravel()
    found = minimize(flat, first, jac=True, method="L-BFGS-B", options=options)
    return torch.from_numpy(found.x).to(start).view_as(start)


def predict_members(rows: Tensor, model: Tensor) -> Tensor:
    """Probabilities by every member, (M, n, C)."""
    return _logits(rows, model).softmax(2).transpose(0, 1)


def _logits(rows: Tensor, model: Tensor) -> Tensor:
    """Of every member, (n, M, C), in one multiplication."""
    slopes = model[:, :-1].transpose(0, 1).flatten(1)
    return torch.addmm(model[:, -1].flatten(), rows, slopes).view(-1, len(model), model.shape[2])


def _balanced(weights: Tensor, targets: Tensor) -> Tensor:
    """Weights of labels that sum to the same in each class, and to one in all, (M, n)."""
    number = int(targets.max()) + 1
    sums = weights.new_zeros(len(weights), number).index_add_(1, targets, weights)
    present = (sums > 0).sum(1, keepdim=True)
    return weights / sums.clamp(min=1e-12)[:, targets] / present


def _with_bias(rows: Tensor) -> Tensor:
    return torch.cat([rows, rows.new_ones(len(rows), 1)], dim=1)
