"""Contributions of features to the logits of a node: what `explain` shows, method by method."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import singledispatch
from typing import NamedTuple, cast

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch_geometric.data import Data

from evengraph.methods import Auto, Boosting, LabelPropagation, Method, Unison
from evengraph.ops.context import PLACE_COLUMNS
from evengraph.ops.sparse import Sparse, neighbour_averages, propagation_matrix, weighted_adjacency
from evengraph.ops.trees import path_contributions

OWN, OTHERS, PLACE, LABELS = "own", "others", "place", "labels"
"""Where a contribution comes from: features of the node itself, those of other nodes, the place of
the node in the graph, the known labels around it. The last two have one column each."""
LEAST = 1e-30  # keeps the logarithm finite where a class does not reach a node


class Contributions(NamedTuple):
    """Contribution of each node's features to a weighted sum of one node's logits.

    A ReLU network is locally linear, so gradient times input decomposes its output exactly. Input
    is measured from the mean over all nodes: what remains is what a graph of average nodes gets,
    biases included, and an indicator of a common category does not count as a peculiarity.
    """

    value: Tensor  # (), the sum of logits
    total: Tensor  # (N,)
    # (F,) per origin; where the degree is one of a method's columns it is the last, (F + 1,)
    columns: Mapping[str, Tensor] = {}

    def on_cpu(self) -> Contributions:
        columns = {origin: values.cpu().double() for origin, values in self.columns.items()}
        return Contributions(self.value.cpu(), self.total.cpu().double(), columns)


@singledispatch
def contributions(method: Method, graph: Data, node: int, direction: Tensor) -> Contributions:
    """Attribute a weighted sum of a node's logits to nodes, by default by gradient times input.

    `direction` holds the weights, (C,), and the graph is what `model_input` returned. A method of
    another package may have a function `contributions(graph, node, direction)`.
    """
    own: Callable[..., Contributions] | None = getattr(method, "contributions", None)
    if own is not None:
        return own(graph, node, direction)
    return gradient_times_input(
        lambda x: method._logits(_with_features(graph, x))[node] @ direction, graph.x, node
    )


@contributions.register
def _unison(method: Unison, graph: Data, node: int, direction: Tensor) -> Contributions:
    """Exact parts of the logits, with the similar nodes of the semantic view held fixed."""

    def margin(x: Tensor) -> Tensor:
        logits = method.net_(_with_features(graph, x))[:, node]  # (M, C)
        margins = (logits @ direction).double()
        rows = logits.detach().double().softmax(1)
        shares = vote_shares(rows, margins.detach(), method.net_.votes, direction)
        return cast(Tensor, shares @ margins)

    return gradient_times_input(margin, graph.x, node)


@contributions.register
def _auto(
    method: Auto, graph: Data, node: int, direction: Tensor, known: dict[int, Tensor] | None = None
) -> Contributions:
    """Those of the selected methods, by what each counts in the average.

    `known` keeps what members predict for the explanation of further nodes.
    """
    members, weights = zip(*method.weighted_members(graph), strict=True)
    parts = [contributions(member, graph, node, direction) for member in members]
    if len(parts) == 1:
        return parts[0]
    known = {} if known is None else known
    for place, member in enumerate(members):
        if place not in known:
            known[place] = member.predict_proba(graph)
    rows = torch.stack([known[place][node] for place in range(len(members))])
    margins = torch.stack([part.value.to(rows) for part in parts])
    shares = vote_shares(rows, margins, rows.new_tensor(weights), direction)
    return weighted_sum(parts, shares.tolist())


@contributions.register
def _boosting(method: Boosting, graph: Data, node: int, direction: Tensor) -> Contributions:
    """What the splits on the paths through the trees add to the logits.

    A mean over neighbours counts as theirs, by their weight in it.
    """
    row = method._table(graph, torch.tensor([node], device=graph.x.device))[0]
    features, parts = path_contributions(method.trees_, row, method.learning_rate)
    outputs = direction.double() if method.outputs > 1 else direction[1:].double()
    weights = outputs.repeat(method.trees_.roots.numel() // method.outputs)
    sums = torch.zeros(row.numel(), dtype=torch.float64, device=row.device)
    sums.index_add_(0, features.flatten(), (weights * parts).flatten())
    size = method._parts(graph) * method._width(graph)
    by_part, others = sums[:size].view(method._parts(graph), -1), sums[size:]
    # the weight of each node in the means of the node; without neighbours it stands for them
    one = torch.zeros(graph.num_nodes, 1, dtype=torch.float64, device=graph.x.device)
    one[node] = 1
    columns = [one]
    for mean, steps in neighbour_averages(graph, method.hops, torch.float64):
        column = one
        for _ in range(steps):
            column = mean.transposed_product(column)
        columns.append(column if column.any() else one)
    total = (torch.cat(columns, dim=1).t() * by_part.sum(1).unsqueeze(1)).sum(0)
    total[node] += others.sum()  # its place in the graph, and the labels around it
    value = method.baseline_ @ outputs + sums.sum()
    found = {OWN: by_part[0], OTHERS: by_part[1:].sum(0)}
    if others.numel():
        place, labels = others[:PLACE_COLUMNS].sum(), others[PLACE_COLUMNS:].sum()
        found |= {PLACE: place.reshape(1), LABELS: labels.reshape(1)}
    return Contributions(value, total, found)


@contributions.register
def _labels(method: LabelPropagation, graph: Data, node: int, direction: Tensor) -> Contributions:
    """What the label of each training node adds to the logits; features add nothing."""
    propagation: Sparse = propagation_matrix(weighted_adjacency(graph), graph.x.device, how="row")
    walk = torch.zeros(graph.num_nodes, 1, device=graph.x.device)
    walk[node] = 1
    reach = torch.zeros_like(walk)  # how much of each node's start has reached the node
    for _ in range(int(method.steps_)):
        reach = reach + method.restart * walk
        walk = (1 - method.restart) * propagation.transposed_product(walk)
    reach = (reach + walk).squeeze(1)
    spread = (reach.unsqueeze(1) * method._start(graph)).double()  # (N, C)
    sums = spread.sum(0).clamp(min=LEAST)
    value, first = sums.log() @ direction.double(), int(direction.argmax())
    if direction.min() < 0:
        second = int(direction.argmin())
        slope = margin_slope(sums[first], sums[second])
        total = slope * (spread[:, first] - spread[:, second])
    else:
        total = value * spread[:, first] / sums[first]
    return Contributions(value, total, {LABELS: total.sum().reshape(1)})


def gradient_times_input(
    value_of: Callable[[Tensor], Tensor], x: Tensor, node: int
) -> Contributions:
    """Contributions in any network: a function from features, (N, F), to the value to explain."""
    with torch.enable_grad():
        leaf = x.detach().float().requires_grad_()
        value = value_of(leaf)
        (gradient,) = torch.autograd.grad(value, leaf)
    parts = gradient * (leaf.detach() - leaf.detach().mean(0))
    columns = {OWN: parts[node], OTHERS: parts.sum(0) - parts[node]}
    return Contributions(value.detach(), parts.sum(1), columns)


def _with_features(graph: Data, x: Tensor) -> Data:
    other = copy(graph)
    other.x = x
    return other


def margin_slope(first: Tensor, second: Tensor) -> Tensor:
    """(log a - log b) / (a - b), which makes a difference of logarithms linear in a and b."""
    gap, middle = first - second, (first + second) / 2
    close = gap.abs() <= 1e-6 * middle
    return torch.where(close, 1 / middle, (first.log() - second.log()) / gap)


def vote_shares(
    probabilities: Tensor, margins: Tensor, weights: Tensor, direction: Tensor
) -> Tensor:
    """What the margin of each member of a vote counts in the margin of the vote, (M,).

    The margin is the difference between the logarithms of two probabilities; that of the mean
    probability is exactly the sum of the members' margins times their shares. With one class in
    `direction` (1 for the first class, -1 for the second), the shares are those of the gradient.
    Probabilities, (M, C), are those of one node.
    """
    p, margins, weights = probabilities.double(), margins.double(), weights.double()
    first = p[:, int(direction.argmax())]
    if direction.min() >= 0:
        return weights * first / (weights @ first)
    second = p[:, int(direction.argmin())]
    least = torch.finfo(torch.float32).tiny  # which a probability that is zero counts as
    slope = margin_slope((weights @ first).clamp(min=least), (weights @ second).clamp(min=least))
    return weights * slope * torch.where(margins.abs() < 1e-6, first, (first - second) / margins)


def weighted_sum(parts: Sequence[Contributions], weights: Sequence[float]) -> Contributions:
    """Contributions to a weighted sum of values."""
    columns: dict[str, Tensor] = {}
    pairs = list(zip(parts, weights, strict=True))
    for part, weight in pairs:
        for origin, values in part.columns.items():  # the shorter is filled up with zeros
            one, other = columns.get(origin, values.new_zeros(0)), weight * values.double()
            width = max(len(one), len(other))
            columns[origin] = pad(one, (0, width - len(one))) + pad(other, (0, width - len(other)))
    value = torch.stack([weight * part.value.double() for part, weight in pairs]).sum()
    total = torch.stack([weight * part.total.double() for part, weight in pairs]).sum(0)
    return Contributions(value, total, columns)
