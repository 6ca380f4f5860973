"""Networks of two layers that are trained side by side as one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch_geometric.data import Data

from evengraph.fast.dropout import Share, relu_dropout
from evengraph.ops.context import keep_of_graph, known_of_graph
from evengraph.ops.features import principal_components
from evengraph.ops.sparse import (
    Average,
    LinearMap,
    Sparse,
    diffuse,
    neighbour_averages,
    propagation_matrix,
    sparsify,
    weighted_adjacency,
)

ROWS = 2**16  # rows that all members classify at a time


class Members(nn.Module):
    """Independent networks, several on each view: one product per layer computes all of them.

    Rows are (V, n, inputs), logits (M, n, C), view by view; `count` networks per view.
    """

    decays = False  # each member has a weight decay of its own

    def __init__(
        self, views: int, count: int, inputs: int, hidden: int, num_classes: int, dropout: float
    ) -> None:
        super().__init__()
        self.count, self.dropout = count, dropout
        first, second = 1 / math.sqrt(max(inputs, 1)), 1 / math.sqrt(hidden)
        members, units = views * count, count * hidden
        self.first = nn.Parameter(torch.empty(views, inputs, units).uniform_(-first, first))
        self.bias = nn.Parameter(torch.empty(views, 1, units).uniform_(-first, first))
        shape = members, hidden, num_classes
        self.second = nn.Parameter(torch.empty(shape).uniform_(-second, second))
        self.second_bias = nn.Parameter(torch.zeros(members, 1, num_classes))

    def hidden(self, rows: Tensor) -> Tensor:
        """The first layer before its activation, (V, n, M / V h)."""
        return torch.baddbmm(self.bias, rows, self.first)

    def classify(
        self, hidden: Tensor, *, dropout: bool = False, share: Share | None = None
    ) -> Tensor:
        """Logits from the first layer, (M, n, C); `share` as in `relu_dropout`."""
        active = relu_dropout(hidden, self.dropout, training=dropout, share=share)
        by_member = active.unflatten(2, (self.count, -1)).transpose(1, 2).flatten(0, 1)
        return torch.baddbmm(self.second_bias, by_member, self.second)

    def forward(self, rows: Tensor) -> Tensor:
        """Logits of every member, some rows at a time: the first layer is wider than its input."""
        parts = [self.classify(self.hidden(part)) for part in rows.split(ROWS, dim=1)]
        return torch.cat(parts, dim=1)

    def networks(self) -> list[list[tuple[Tensor, Tensor]]]:
        """The two layers of every member, each a weight, (inputs, outputs), and a bias."""
        first, bias = (
            layer.unflatten(2, (self.count, -1)).transpose(1, 2).flatten(0, 1)
            for layer in (self.first, self.bias)
        )
        layers = zip(first, bias, self.second, self.second_bias, strict=True)
        return [[(one, shift[0]), (two, shift_two[0])] for one, shift, two, shift_two in layers]

    def penalty(self, decay: Tensor) -> Tensor:
        """Half the squared first layer of each member times its weight decay, (M,), added up."""
        squares = (self.first.square().sum(1) + self.bias.square().squeeze(1)).flatten()
        per_member: Tensor = squares.unflatten(0, (len(decay), -1)).sum(1)
        return (per_member * decay).sum() / 2

    @torch.no_grad()
    def take(self, other: Members, which: Tensor) -> None:
        """Copy the weights of some members of another network, given as a mask, (M,)."""
        units = which.repeat_interleave(self.first.shape[2] // self.count)
        units = units.view(self.first.shape[0], 1, -1)
        members = which[:, None, None]
        masks = {"first": units, "bias": units, "second": members, "second_bias": members}
        for name, mask in masks.items():
            mine, theirs = getattr(self, name), getattr(other, name)
            mine.copy_(torch.where(mask, theirs, mine))


LARGEST_KEPT = 2**26  # numbers in the views of a graph that are kept for other fits
LENGTH = 0.5  # root mean square length of a view's rows, so that one learning rate suits all graphs
HOPS = 2  # of the ego view
SMALLEST_PART = 32  # components of a part of the ego view, however many relations there are


class Diffusion(NamedTuple):
    """How far features travel: steps over the graph, and the share that starts again."""

    steps: int
    teleport: float


class Components(nn.Module):
    """Principal components of propagated features, centred and scaled."""

    # the propagation is given with every call: it belongs to a graph, components to the fitted one

    basis: Tensor
    centre: Tensor
    scale: Tensor

    def __init__(self, num_features: int, count: int) -> None:
        super().__init__()
        width = min(count, num_features)
        self.register_buffer("basis", torch.zeros(num_features, width))
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("scale", torch.ones(()))

    @property
    def width(self) -> int:
        return self.centre.numel()

    def forward(
        self, x: Tensor | Sparse, propagate: LinearMap, transposed: LinearMap | None = None
    ) -> Tensor:
        """The components of features, (N, width), found in these if `transposed` is given."""
        if transposed is None:
            rows = propagate(x @ self.basis)
        else:
            self.basis, rows = principal_components(x, propagate, transposed, self.width)
            self.centre = rows.mean(0)
            self.scale = scale_of(rows - self.centre)
        return (rows - self.centre) * self.scale


def ego_share(components: int, parts: int) -> int:
    """Components of each part of the ego view."""
    return max(-(-components // parts), min(components, SMALLEST_PART))


class Views(nn.Module):
    """Two views of a graph, each a table of rows that networks learn from.

    Structural: personalised PageRank of the features, what lies near at all distances. Ego: a
    node's own features beside the means of its neighbours, one and two steps away, and those of
    each relation.
    """

    def __init__(
        self,
        names: Sequence[str],
        num_features: int,
        components: int,
        diffusion: Diffusion,
        relations: int = 0,
    ) -> None:
        super().__init__()
        self.names, self.diffusion = names, diffusion
        widths = {}
        if "structural" in names:
            self.structural = Components(num_features, components)
            widths["structural"] = self.structural.width
            self.register_buffer("semantic_scale", torch.ones(()))  # in saved models
        if "ego" in names:
            count = HOPS + 1 + relations
            share = ego_share(components, count)
            parts = [Components(num_features, share) for _ in range(count)]
            self.ego, widths["ego"] = nn.ModuleList(parts), sum(part.width for part in parts)
        self.widths = {name: widths[name] for name in names}
        self.width = max(widths.values(), default=0)

    def forward(self, graph: Data, *, fit: bool = False) -> Tensor:
        """The views, (V, N, width), filled up with zeros; `fit` finds components first.

        The views of a graph are computed once for all that find the same components.
        """
        size = len(self.names) * graph.num_nodes * self.width
        if graph.x.requires_grad or size > LARGEST_KEPT:  # an explanation asks for gradients
            return self._rows(graph, fit=fit)
        key = "views", *self.names  # of each kind, those of the last parameters are kept
        params, state, rows = known_of_graph(graph, key) or (None, {}, None)
        if params == self._params and (fit or self._equals(state)):
            self.load_state_dict(state)
            return cast(Tensor, rows)
        rows = self._rows(graph, fit=fit)
        if fit:
            state = {name: part.clone() for name, part in self.state_dict().items()}
            keep_of_graph(graph, key, (self._params, state, rows))
        return rows

    @property
    def _params(self) -> tuple[Any, ...]:
        return *self.widths.items(), *self.diffusion

    def _equals(self, state: Mapping[str, Tensor]) -> bool:
        mine = self.state_dict()
        return all(
            part.shape == state[name].shape and torch.equal(part, state[name].to(part.device))
            for name, part in mine.items()
        )

    def _rows(self, graph: Data, *, fit: bool) -> Tensor:
        x = sparsify(graph.x.float())
        matrix = weighted_adjacency(graph)
        views = {}
        if "structural" in self.names:
            propagation = propagation_matrix(matrix, graph.x.device)
            spread = partial(diffuse, propagation, **self.diffusion._asdict())
            views["structural"] = self.structural(x, spread, spread if fit else None)  # symmetric
        if "ego" in self.names:
            views["ego"] = self._ego(x, neighbour_averages(graph, HOPS, union=matrix), fit)
        return self.side_by_side(views)

    def side_by_side(self, views: Mapping[str, Tensor]) -> Tensor:
        """Views by name as one tensor, filled up with zeros."""
        return torch.stack(
            [pad(views[name], (0, self.width - views[name].shape[1])) for name in self.names]
        )

    def _ego(self, x: Tensor | Sparse, averages: Sequence[Average], fit: bool) -> Tensor:
        own = Average(averages[0].matrix, 0)
        rows = []
        for (matrix, steps), part in zip([own, *averages], self.ego, strict=True):
            propagate = partial(_repeat, matrix.__matmul__, steps)
            transposed = partial(_repeat, matrix.transposed_product, steps) if fit else None
            rows.append(part(x, propagate, transposed))
        return torch.cat(rows, dim=1) / math.sqrt(len(rows))


def scale_of(rows: Tensor) -> Tensor:
    """The factor that makes the root mean square length of rows `LENGTH`; 1 if all are zero."""
    length = rows.square().sum(1).mean().sqrt()
    if torch.isinf(length):  # squares of huge features leave single precision
        length = rows.double().square().sum(1).mean().sqrt().to(rows.dtype)
    return torch.where(length > 0, LENGTH / length, 1.0)


def _repeat(step: LinearMap, times: int, x: Tensor) -> Tensor:
    """Apply a step several times."""
    for _ in range(times):
        x = step(x)
    return x
