"""Tasks with class sizes of one's choice, and the comparison's network as dense formulas."""

import copy
import dataclasses
import math

import pytest
import torch
from torch.nn.functional import leaky_relu

from evengraph.metrics.multiclass import validation_score
from evengraph.nn.networks import AttentionConv, SageConv
from evengraph.testing import task_with as task_with
from evengraph.training import train
from small_graphs import dense_adjacency, dense_row, dense_symmetric

DENSE = {"row": dense_row, "symmetric": dense_symmetric}


def by_conflict(task):
    """What ReNode's defaults weigh the labelled nodes with, by the whole inverse matrix."""
    (nodes, labels), counts = labelled(task), task.class_counts.tolist()
    matrix = dense_propagation(task.graph, "symmetric")
    walks = 0.15 * torch.linalg.inv(torch.eye(matrix.shape[0]).double() - 0.85 * matrix)
    between = walks[nodes] @ walks[nodes].t()
    met = [
        sum(between[i, j].item() / counts[labels[j]] for j in others.nonzero().flatten())
        for i, others in enumerate(labels.unsqueeze(1) != labels)
    ]
    angles = [math.pi * sorted(met).index(value) / (len(met) - 1) for value in met]
    return torch.tensor([0.5 + (1 + math.cos(angle)) / 2 for angle in angles])


def dense_graph(graph):
    return dense_adjacency(graph.edge_index, graph.num_nodes, undirected=True)


def dense_propagation(graph, how="row"):
    return DENSE[how](dense_graph(graph))


def labelled(task):
    """The labelled nodes and their classes."""
    return task.train.nonzero().flatten(), task.graph.y[task.train]


def dense_conv(conv, x, matrix, links=None):
    """A convolution of any kind, then ReLU; attention goes by links, weighted, if they are given.

    P x W + b; P x W + x W' + b; or P replaced by a softmax over links.
    """
    x, weight, bias = x.double(), conv.weight.double(), conv.bias.double()
    if isinstance(conv, AttentionConv):
        heard = dense_attention(conv, x @ weight, matrix > 0 if links is None else links)
    elif isinstance(conv, SageConv):
        others, own = weight.split(bias.numel(), dim=1)
        heard = matrix @ x @ others + x @ own
    else:
        heard = matrix @ x @ weight
    return (heard + bias).relu()


def dense_attention(conv, values, links):
    """Head after head: shares of a node's links, each by weight times exp(score)."""
    heads = []
    parts = values.chunk(conv.heads, dim=1)
    for part, hearing, heard in zip(parts, *conv.attention.double(), strict=True):
        scores = leaky_relu((part @ hearing).unsqueeze(1) + part @ heard, 0.2)
        shares = links.double() * (scores - scores.detach().max()).exp()
        total = shares.sum(1, keepdim=True)
        heads.append(shares / torch.where(total > 0, total, 1.0) @ part)
    return torch.cat(heads, dim=1)


def dense_linear(linear, x):
    return x @ linear.weight.double().t() + linear.bias.double()


def dense_classify(classifier, x, matrix, links=None):
    return dense_linear(classifier.linear, dense_conv(classifier.conv, x, matrix, links))


def dense_logits(net, x, matrix):
    """The whole network, without dropout."""
    return dense_classify(net.classifier, dense_conv(net.encoder, x, matrix), matrix)


def first_loss(method, task):
    """The loss of the first weights, which are those that no steps leave."""
    method = dataclasses.replace(method, dropout=0, max_epochs=0).fit(task, seed=0)
    return method, method.history_[-1].loss[0]


def check_losses(method, task, module, loss, rel=1e-4):
    """The method's losses, and so its gradients, are those of a formula that is trained alike.

    The module holds the first weights in single precision; the formula is given a copy.
    """
    module = copy.deepcopy(module).double()
    method.fit(task, seed=0)
    history = train(
        module,
        lambda: (loss(module), torch.zeros(())),
        learning_rate=method.learning_rate,
        weight_decay=method.weight_decay,
        max_epochs=method.max_epochs,
        patience=method.patience,
    )
    assert len(history.loss) > 1
    assert method.history_[-1].loss == pytest.approx(history.loss, rel=rel)


def check_chosen(method, task):
    """The score that the weights were chosen by is that of the answer."""
    values = method.predict_proba(task.graph)
    score = float(validation_score(values, task))
    assert score > 0.4  # not by guessing
    assert method.history_[-1].best_score == pytest.approx(score, abs=1e-6)


def nearest(rows):
    """For each row the nearest other; alone, itself."""
    return (torch.cdist(rows, rows) + torch.eye(rows.shape[0]) * 1e9).argmin(1)


def as_dense(propagation):
    """A propagation matrix that is never built, built."""
    return propagation @ torch.eye(propagation.shape[0])
