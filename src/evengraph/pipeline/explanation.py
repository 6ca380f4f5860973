"""explain(): why a node has its probability of a class, in words, and checked; maps of nodes.

First what features contribute to logits, method by method; then what `explain` makes of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, fields
from functools import singledispatch
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad
from torch_geometric.data import Data

from evengraph.core.task import HIDDEN_LABEL
from evengraph.methods import Auto, Boosting, LabelPropagation, Method, Unison
from evengraph.methods.bases.method import model_input
from evengraph.ops.context import PLACE_COLUMNS
from evengraph.ops.features import feature_signatures
from evengraph.ops.sparse import (
    Sparse,
    neighbour_averages,
    propagation_matrix,
    undirected_adjacency,
    weighted_adjacency,
)
from evengraph.ops.trees import path_contributions
from evengraph.pipeline.model_info import NewNodes
from evengraph.tables import FeatureEncoder
from evengraph.tables.cells import Ints
from evengraph.tables.encoders import Category, Date, Number

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


MAX_NODES = 40  # more make a picture unreadable
MAX_PATH = 4  # edges of the longest path that is drawn


class Distances:
    """Distances from one node to all others, with edges read in both directions."""

    def __init__(self, edge_index: Tensor, num_nodes: int, node: int) -> None:
        self.node = node
        self.matrix = undirected_adjacency(edge_index, num_nodes)
        self.steps = np.full(num_nodes, -1)  # -1: no path
        self.steps[node] = 0
        frontier = np.array([node])
        while frontier.size:
            neighbours = np.unique(self.matrix[frontier].indices)
            unvisited = neighbours[self.steps[neighbours] < 0]
            self.steps[unvisited] = self.steps[frontier[0]] + 1
            frontier = unvisited

    def to(self, other: int) -> int | None:
        """The distance to another node; None without a path."""
        return int(self.steps[other]) if self.steps[other] >= 0 else None

    def path(self, other: int) -> list[int]:
        """The nodes of a shortest path from another node, which comes first."""
        nodes = [other]
        while self.steps[nodes[-1]] > 0:
            neighbours = self.matrix[[nodes[-1]]].indices
            closer = neighbours[self.steps[neighbours] < self.steps[nodes[-1]]]
            nodes.append(int(closer.min()))
        return nodes


def ego_graph(
    distances: Distances, required: Sequence[int], weight: Tensor, **values: Tensor
) -> Data:
    """The subgraph of a node, of required nodes with the paths to them, and of near nodes.

    Near nodes lie within two steps; those with the largest absolute weight come first. `values` of
    every node are carried over to the subgraph.
    """
    steps = distances.steps
    selected = dict.fromkeys([distances.node])  # a set in order
    for other in required:
        draw_path = 0 <= steps[other] <= MAX_PATH
        selected |= dict.fromkeys(reversed(distances.path(other)) if draw_path else [other])
    close = np.flatnonzero((steps >= 0) & (steps <= 2))
    by_weight = np.argsort(-weight.abs().numpy()[close], kind="stable")
    for other in close[by_weight].tolist():
        if len(selected) >= MAX_NODES:
            break
        selected[other] = None
    nodes = torch.tensor(list(selected))
    part = distances.matrix[nodes.numpy()][:, nodes.numpy()].tocoo()
    edges = np.stack([part.row, part.col]).astype(np.int64)
    return Data(
        node_id=nodes,
        edge_index=torch.from_numpy(edges),
        num_nodes=nodes.numel(),
        distance=torch.from_numpy(steps)[nodes],
        **{name: value[nodes] for name, value in values.items()},
    )


@dataclass(frozen=True, kw_only=True)
class Influence:
    """The contribution of one labelled node to a prediction."""

    node: int  # its index
    id: str  # in the user's table; the index as text if the graph has no ids
    label: int  # its class
    distance: int | None  # edges between it and the explained node; None without a path
    contribution: float  # to the margin; positive values support the explained class


@dataclass(frozen=True, kw_only=True)
class Reason:
    """What a column of the table contributes, with its value and the usual one in words."""

    name: str
    of: str  # `own`, `others` (nodes around it), `place` in the graph, or known `labels` around it
    value: str  # of the node; of others the median or share over its neighbours
    typical: str  # over all nodes
    contribution: float  # to the margin; positive values support the explained class
    features: tuple[int, ...]  # columns of x

    @property
    def title(self) -> str:
        """What it is about, in a few words."""
        return f"{self.name} of its neighbours" if self.of == OTHERS else self.name


@dataclass(frozen=True, kw_only=True)
class Check:
    """What became of the probability of the explained class without the largest reason."""

    reason: str
    stated: float  # by its contribution
    measured: float  # predicted again, with the usual value or without the labels


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation:
    """Why a node has its probability of a class: reasons, labelled nodes, and what they add up to.

    The margin, the logit of the class `about` minus that of the most probable other one, is the sum
    of the contributions of node features (`from_itself`, `from_labelled`, `from_unlabelled`) and of
    `bias`, up to rounding, and so it is of all reasons and `bias`. If no other class is possible,
    it is the logit itself.

    Labelled nodes count as evidence where they agree with their class: those of the explained class
    that support it, and others that oppose it. What the features of the rest add is part of
    `from_unlabelled`.

    `neighbourhood` is a small graph around the node, to draw: `node_id`, `edge_index`, `y` (-1:
    unlabelled), `predicted`, `contribution`, `distance` (-1: no path); its first node is the
    explained node.
    """

    node: int  # the index of the explained node; `id` is its id
    about: int  # the class that is explained
    predicted: int
    runner_up: int | None  # the second most probable class
    probability: float  # of the explained class
    probabilities: tuple[float, ...]
    threshold: float | None  # from which on the explained class is flagged
    label: int | None  # of the node, if it is a training node
    margin: float  # the value that is explained
    from_itself: float  # what the features of the node contribute
    from_labelled: float  # what other labelled nodes contribute that agree with their class
    from_unlabelled: float  # all other nodes
    bias: float  # what average nodes get: the biases, and the mean of the features
    labelled: tuple[Influence, ...]  # those with the largest contributions, for or against
    reasons: tuple[Reason, ...]  # the largest, for or against
    check: Check | None  # of the largest reason; None if it cannot be taken away
    neighbours: int
    neighbour_labels: tuple[int, ...]  # labelled neighbours per class
    class_names: tuple[str, ...]  # may be empty
    class_counts: tuple[int, ...]  # labelled nodes
    ids: tuple[str, ...]  # of every node of the graph; may be empty; not part of `as_dict`
    neighbourhood: Data

    @property
    def id(self) -> str:
        """The id of the explained node; its index as text if the graph has no ids."""
        return self.ids[self.node] if self.ids else str(self.node)

    def name(self, label: int) -> str:
        return self.class_names[label] if self.class_names else str(label)

    def _repr_html_(self) -> str:
        """The figure, for notebooks."""
        from evengraph.report.notebook import explanation_html

        return explanation_html(self.as_dict(), self.ids)

    def as_dict(self) -> dict[str, Any]:
        """All fields but `ids` as JSON can hold them."""
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        del plain["ids"]
        plain["id"] = self.id
        plain["labelled"] = [asdict(part) for part in self.labelled]
        plain["reasons"] = [{**asdict(one), "title": one.title} for one in self.reasons]
        plain["check"] = self.check and asdict(self.check)
        plain["neighbourhood"] = {
            name: value.tolist() if isinstance(value, Tensor) else value
            for name, value in self.neighbourhood.to_dict().items()
        }
        return plain


class _Column(NamedTuple):
    """A column of the table: its features, and how to read its numbers."""

    name: str
    features: tuple[int, ...]
    encoder: Number | None = None
    unit: str = ""


def _table_columns(names: Sequence[str], encoder: FeatureEncoder | None) -> list[_Column]:
    """The columns behind the features; those of a category are one column, as of a date."""
    found: list[_Column] = []
    for one in () if encoder is None else (*encoder.columns, *encoder.structural):
        first = sum(len(column.features) for column in found)
        features = tuple(range(first, first + len(one.names)))
        if isinstance(one, Category | Date):
            date = one if isinstance(one, Date) else None
            found.append(_Column(one.column, features, date, "date"))
        else:
            number = one if isinstance(one, Number) else None
            unit = "" if encoder is None else encoder.unit(one.column)
            found += [_Column(names[feature], (feature,), number, unit) for feature in features]
    start = sum(len(column.features) for column in found)
    return found + [_Column(names[feature], (feature,)) for feature in range(start, len(names))]


class Explainer:
    """Explains nodes of one graph; what the explanations share is computed once.

    Labelled nodes are the training nodes of the model that it finds in this graph.

    Args:
        model: A fitted method.
        graph: A graph that it can predict.
        ids: The id of every node, to be part of the explanation.
        feature_names: The names of the columns; numbers by default.
        encoder: What made the features, so that values are those of the table.
        transform: Calibration of probabilities, (N, C), as predictions have it.
    """

    def __init__(
        self,
        model: Method,
        graph: Data,
        *,
        ids: tuple[str, ...] = (),
        feature_names: Sequence[str] = (),
        encoder: FeatureEncoder | None = None,
        transform: Callable[[Tensor], Tensor] = lambda rows: rows,
    ) -> None:
        self.model, self.graph, self.ids, self.transform = model, graph, ids, transform
        self.bare = model_input(model, graph)
        self.known = torch.full((graph.num_nodes,), HIDDEN_LABEL)
        nodes, labels = model._known_labels(self.bare)
        self.known[nodes.cpu()] = labels.cpu()
        self.raw = model.predict_proba(graph).cpu()
        self.predicted = transform(self.raw)
        self.names = feature_names or [f"feature {n}" for n in range(self.bare.x.shape[1])]
        self.columns = _table_columns(self.names, encoder)
        self._members: dict[int, Tensor] = {}

    def explain(
        self,
        node: int,
        about: int | None = None,
        *,
        threshold: float | None = None,
        top: int = 10,
        check: bool = True,
    ) -> Explanation:
        """As `explain`; `threshold` is the probability from which on nodes are flagged.

        `check` takes the largest reason away and predicts again.
        """
        size, known, model = self.graph.num_nodes, self.known, self.model
        if isinstance(node, bool) or not isinstance(node, int) or not 0 <= node < size:
            raise ValueError(f"node must lie between 0 and {size - 1}, got {node!r}.")
        if top < 0:
            raise ValueError(f"top must be at least 0, got {top}.")
        ranked = self.raw[node].argsort(descending=True, stable=True).tolist()
        first = ranked[0] if about is None else about
        other = next((one for one in ranked if one != first and self.raw[node, one] > 0), None)
        direction = torch.zeros(len(ranked))  # whose product with logits is the margin
        direction[first] = 1
        if other is not None:
            direction[other] = -1
        more = {"known": self._members} if isinstance(model, Auto) else {}
        parts = contributions(model, self.bare, node, direction.to(self.bare.x.device), **more)
        parts = parts.on_cpu()
        distances = Distances(self.bare.edge_index, size, node)
        agrees = (known >= 0) & ((known == first) == (parts.total > 0)) & (parts.total != 0)
        agrees[node] = False
        order = parts.total[agrees].abs().argsort(descending=True, stable=True)
        listed: list[int] = agrees.nonzero().squeeze(1)[order[:top]].tolist()
        from_itself, total = float(parts.total[node]), float(parts.total.sum())
        from_labelled = float(parts.total[agrees].sum())
        reasons = self._reasons(parts, distances, top)
        known_reasons = [one for one in reasons if one.of == LABELS or one.features]
        checked = None
        if check and known_reasons:
            checked = self._check(known_reasons[0], distances, first, other, float(parts.value))
        near = known[self._near(distances)]
        counts = [torch.bincount(some[some >= 0], minlength=len(ranked)) for some in (near, known)]
        return Explanation(
            node=node,
            about=first,
            predicted=int(self.predicted[node].argmax()),
            runner_up=next((c for c in ranked[1:2] if self.raw[node, c] > 0), None),
            probability=float(self.predicted[node, first]),
            probabilities=tuple(self.predicted[node].tolist()),
            threshold=threshold,
            label=int(known[node]) if known[node] >= 0 else None,
            margin=float(parts.value),
            from_itself=from_itself,
            from_labelled=from_labelled,
            from_unlabelled=total - from_itself - from_labelled,
            bias=float(parts.value) - total,
            labelled=tuple(
                Influence(
                    node=one,
                    id=self.ids[one] if self.ids else str(one),
                    label=int(known[one]),
                    distance=distances.to(one),
                    contribution=float(parts.total[one]),
                )
                for one in listed
            ),
            reasons=reasons,
            check=checked,
            neighbours=len(near),
            neighbour_labels=tuple(counts[0].tolist()),
            class_names=model.class_names_,
            class_counts=tuple(counts[1].tolist()),
            ids=self.ids,
            neighbourhood=ego_graph(
                distances,
                listed,
                parts.total,
                y=known,
                predicted=self.predicted.argmax(1),
                contribution=parts.total,
            ),
        )

    def _near(self, distances: Distances) -> Ints:
        return np.flatnonzero(distances.steps == 1)

    def _reasons(self, parts: Contributions, distances: Distances, top: int) -> tuple[Reason, ...]:
        """The largest contributions by column of the table, of the node and of those around it."""
        width = len(self.names) + 1  # the degree may be one
        sums = {OWN: torch.zeros(width).double(), OTHERS: torch.zeros(width).double()}
        found: list[tuple[float, str, str, tuple[str, ...], tuple[int, ...]]] = []
        for origin, values in parts.columns.items():
            if origin in REST:
                words = self._labels_near(distances) if origin == LABELS else ("", "")
                found.append((float(values), REST[origin], origin, words, ()))
            else:
                sums[OWN if origin == OWN else OTHERS][: len(values)] += values
        columns = [*self.columns, _Column("number of neighbours", (len(self.names),))]
        group = torch.empty(width, dtype=torch.long)
        for place, column in enumerate(columns):
            group[list(column.features)] = place
        for of, values in sums.items():
            totals = torch.zeros(len(columns)).double().index_add_(0, group, values)
            for place in totals.abs().topk(min(top, len(totals))).indices.tolist():
                column = columns[place]
                features = torch.tensor(column.features)
                key = column.features[int(values[features].abs().argmax())]
                name, *said = self._words(column, key, of, distances)
                found.append((float(totals[place]), name, of, tuple(said), column.features))
        found.sort(key=lambda one: -abs(one[0]))
        return tuple(
            Reason(
                name=name,
                of=of,
                value=words[0],
                typical=words[1],
                contribution=value,
                features=() if len(self.names) in features else features,
            )
            for value, name, of, words, features in found[:top]
            if value
        )

    def _words(self, column: _Column, key: int, of: str, distances: Distances) -> tuple[str, ...]:
        """A column, its value at the node or around it, and the usual value, in words."""
        rows = np.array([distances.node]) if of == OWN else self._near(distances)
        if key == len(self.names):
            degrees = np.diff(distances.matrix.indptr)
            return column.name, _median(degrees[rows]), _median(degrees)
        name = column.name
        if isinstance(column.encoder, Date):  # its cycles are read with it
            key = column.features[0]
        elif len(column.features) > 1:  # a category: its value, or the neighbours' that counts
            if of == OWN:
                own = self.bare.x[distances.node, list(column.features)].cpu()
                key = column.features[int(own.argmax())] if own.max() > 0 else -1
                value = self.names[key].removeprefix(f"{name}=") if key >= 0 else "–"
                share = f"{float((self.bare.x[:, key] > 0).float().mean()):.0%} of all"
                return name, value, share if key >= 0 else ""
            name = self.names[key]
        values = self.bare.x[:, key].double().cpu().numpy()
        if column.encoder is not None:
            read = column.encoder.decode(values)
            return name, _median(read[rows], column.unit), _median(read, column.unit)
        if np.isin(values, (-1, 0, 1)).all():
            words = ("false", "–", "true") if column.unit == "flag" else ("no", "no", "yes")
            value = words[int(values[rows[0]]) + 1] if len(rows) else ""
            if of == OTHERS:
                value = f"{(values[rows] > 0).mean():.0%}" if len(rows) else "none"
            return name, value, f"{(values > 0).mean():.0%} of all"
        return name, _median(values[rows]), _median(values)

    def _labels_near(self, distances: Distances) -> tuple[str, str]:
        """The classes of labelled nodes within two steps, and their shares of all, in words."""
        names, size = self.model.class_names_, self.raw.shape[1]
        within = (distances.steps > 0) & (distances.steps <= NEAR)
        near, known = (
            torch.bincount(labels[labels >= 0], minlength=size)
            for labels in (self.known[within], self.known)
        )
        found = near.nonzero().flatten().tolist()
        title = {c: names[c] if names else str(c) for c in found}
        shares = ", ".join(f"{known[c] / known.sum():.0%} {title[c]}" for c in found)
        return ", ".join(f"{near[c]:,} {title[c]}" for c in found) or "none", shares

    def _check(
        self, reason: Reason, distances: Distances, first: int, other: int | None, margin: float
    ) -> Check:
        """Predict again without a reason: at the mean of its columns, or without labels nearby."""
        node, x, row = distances.node, self.bare.x.clone(), self.raw[distances.node].double()
        hidden = np.zeros(len(x), dtype=bool)
        if reason.of == LABELS:
            hidden = (distances.steps > 0) & (distances.steps <= NEAR)
        else:
            rows = torch.arange(len(x), device=x.device) == node
            rows = rows if reason.of == OWN else ~rows
            columns = torch.tensor(reason.features, device=x.device)
            x[rows.nonzero(), columns] = x[:, columns].mean(0)
        changed = copy(self.bare)
        changed.x = x
        model = _relabelled(self.model, x, torch.from_numpy(hidden))
        measured = model.predict_proba(changed)[[node]].cpu()
        stated = row.clone()
        if other is not None:
            odds = math.exp(min(max(margin - reason.contribution, -50), 50))
            both = row[first] + row[other]
            stated[first], stated[other] = both * odds / (1 + odds), both / (1 + odds)
        before = self.transform(stated.unsqueeze(0).to(self.raw))
        return Check(
            reason=reason.title,
            stated=float(before[0, first]),
            measured=float(self.transform(measured)[0, first]),
        )


REST = {LABELS: "known labels around it", PLACE: "its place in the graph"}
NEAR = 2  # steps within which labels are hidden to see what they do


SPANS = {"days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}


def _median(values: Any, unit: str = "") -> str:
    """The middle of some numbers, in words."""
    if not len(values):
        return "none"
    value = float(np.median(values))
    if unit == "date":
        return str(np.datetime64(round(value), "s").astype("datetime64[D]"))
    if unit == "flag":  # the mean of -1 and 1
        return {-1.0: "false", 1.0: "true"}.get(value, f"{(value + 1) / 2:.0%} true")
    if unit == "age":
        size = next((name for name in SPANS if abs(value) >= 2 * SPANS[name]), "seconds")
        return f"{value / SPANS[size]:,.3g} {size}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _relabelled(model: Method, x: Tensor, hidden: Tensor) -> Method:
    """A method that finds its labelled nodes in changed features, some of them hidden."""
    nodes, labels, _ = model.labelled_
    kept = (nodes < len(x)) & ~hidden.to(nodes.device)[nodes.clamp(max=len(x) - 1)]
    nodes, labels = nodes[kept], labels[kept]
    signatures = feature_signatures(x[nodes.to(x.device)]).to(model.labelled_.signatures)
    other = copy(model)
    if isinstance(other, Auto):
        other.members_ = [_relabelled(member, x, hidden) for member in other.members_]
        other._predicted = None
    else:
        other.labelled_ = model.labelled_._replace(
            nodes=nodes, labels=labels, signatures=signatures
        )
    return other


def explain(
    model: Method,
    graph: Data,
    node: int,
    *,
    about: int | None = None,
    top: int = 10,
    **options: Any,
) -> Explanation:
    """Attribute the probability of a class to columns and labelled nodes.

    Computes gradient times input, summed over the features of each node. The networks here are
    piecewise linear, so this decomposes the margin between the class and the most probable other
    one exactly, into what the features of nodes add to that of average nodes, the bias. Trees give
    what each split on a node's paths adds, label propagation what each label adds, an average what
    its members give. The largest reason is taken away to see whether the probability changes as
    stated. The cost is that of a few predictions.

    The influence of labels on the weights during training is not part of it: it explains what the
    fitted network takes from the features of nodes.

    Args:
        model: A fitted method.
        graph: A graph that it can predict.
        node: The index of the node to explain.
        about: The class to explain, by default the most probable one.
        top: The number of labelled nodes, reasons and columns to list.
        options: Those of `Explainer`: ids, feature_names, encoder.
    """
    return Explainer(model, graph, **options).explain(node, about, top=top)


@dataclass(frozen=True, kw_only=True)
class Suspect:
    """A node with a high probability of the positive class."""

    id: str
    probability: float
    reasons: tuple[str, ...]


def suspects(
    method: Method,
    nodes: NewNodes,
    probabilities: np.ndarray,
    *,
    positive: int,
    count: int,
    graph: Data | None = None,
) -> list[Suspect]:
    """Rank nodes by their probability of a class and explain the first."""
    if count < 1:
        raise ValueError(f"top must be at least 1, got {count}.")
    tables = nodes.tables
    graph = tables.graph if graph is None else graph
    indices = np.arange(graph.num_nodes)[nodes.rows]
    ids, encoder = tuple(map(str, tables.ids.tolist())), tables.encoder
    names, found = encoder.names, []
    explainer = Explainer(method, graph, ids=ids, feature_names=names, encoder=encoder)
    for place in np.argsort(-probabilities, kind="stable")[:count].tolist():
        node = int(indices[place])
        reasons = tuple(reasons_for(explainer.explain(node, positive, check=False)))
        found.append(Suspect(id=ids[node], probability=probabilities[place], reasons=reasons))
    return found


def reasons_for(explanation: Explanation) -> list[str]:
    """What supports a class, in a few words each: columns, then a labelled node of the class."""
    largest = max((one.contribution for one in explanation.reasons), default=0.0)
    # of those that are worth the room the three largest
    least = max(0.05 * largest, 0.0)
    strong = [one for one in explanation.reasons if one.contribution > least]
    words = [
        f"{one.title} {one.value}" + (f" (usually {one.typical})" if one.typical else "")
        for one in strong
        if one.value and one.value != one.typical  # a usual value tells a reader nothing
    ][:3]
    near = [one for one in explanation.labelled if one.contribution > 0 and one.distance]
    if near:
        steps = "neighbour" if near[0].distance == 1 else f"{near[0].distance} steps away"
        words.append(f"{near[0].id} ({explanation.name(explanation.about)}, {steps})")
    return words
