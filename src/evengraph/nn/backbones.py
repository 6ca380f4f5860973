"""Backbones: kinds of graph convolution behind one signature, `conv(x, propagation)`.

Each is `conv.spread(conv.project(x), propagation)`: a product with `conv.weight`, row by row, and
then all that takes the graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from evengraph.nn.layers import GlorotConv, GraphConv
from evengraph.ops.attach import Propagation
from evengraph.ops.links import attend, links_of
from evengraph.ops.propagate import Sparse, take

Backbone = Literal["gcn", "sage", "gat"]
BACKBONES: tuple[str, ...] = get_args(Backbone)

HEADS = 8  # of attention, as in its paper; fewer where they do not divide the width
SLOPE = 0.2


class SageConv(nn.Module):
    """GraphSAGE with means: P x W + x W' + b, so that a node hears itself apart from the others.

    Weights and bias start as those of `GraphConv`.

    Shapes:
        x: (N, inputs), dense or sparse
        propagation: (N, N), already normalised
        returns: (N, outputs)

    Departs:
        The mean is that of the propagation matrix, of a node and its neighbours.

    Reference:
        Hamilton, Ying and Leskovec, "Inductive Representation Learning on Large Graphs",
        NeurIPS 2017.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, 2 * outputs))
        self.bias = nn.Parameter(torch.empty(outputs))
        self.start()

    def start(self) -> None:
        """Draw the weights and the bias."""
        self._draw(self.bias.numel() ** -0.5)

    def _draw(self, bound: float) -> None:
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor | Sparse, propagation: Propagation) -> Tensor:
        """Convolve: project, then spread."""
        return self.spread(self.project(x), propagation)

    def project(self, x: Tensor | Sparse) -> Tensor:
        """For others and for the node itself, side by side, (N, 2 outputs)."""
        return x @ self.weight

    def spread(self, projected: Tensor, propagation: Propagation) -> Tensor:
        """What the graph makes of projected rows."""
        others, own = projected.chunk(2, dim=-1)
        return propagation @ others.contiguous() + own + self.bias


class LinearSageConv(SageConv):
    """The same with the start of linear layers, uniform in +- 1 / sqrt(inputs), as PyG's has it."""

    def start(self) -> None:
        """Draw the weights and the bias."""
        self._draw(self.weight.shape[0] ** -0.5)


class AttentionConv(nn.Module):
    """GAT: a mean over a node and its neighbours, weighted by learnt attention, in several heads.

    Of the propagation matrix only the links count. Weights start as Glorot's, biases at zero.

    Args:
        inputs: Width of x.
        outputs: Width of what is returned.
        heads: At most so many; as many as divide the outputs evenly.

    Shapes:
        x: (N, inputs), dense or sparse
        propagation: (N, N)
        returns: (N, outputs), heads side by side

    Departs:
        Attention itself is not dropped out.

    Reference:
        Velickovic, Cucurull, Casanova, Romero, Lio and Bengio, "Graph Attention Networks",
        ICLR 2018.
    """

    def __init__(self, inputs: int, outputs: int, heads: int = HEADS) -> None:
        super().__init__()
        self.heads = math.gcd(outputs, heads)
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(inputs, outputs)))
        per_head = 2, self.heads, outputs // self.heads
        self.attention = nn.Parameter(nn.init.xavier_uniform_(torch.empty(per_head)))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor | Sparse, propagation: Propagation) -> Tensor:
        """Convolve: project, then spread."""
        return self.spread(self.project(x), propagation)

    def project(self, x: Tensor | Sparse) -> Tensor:
        """x W, row by row."""
        return x @ self.weight

    def spread(self, projected: Tensor, propagation: Propagation) -> Tensor:
        """What the graph makes of projected rows."""
        links = links_of(propagation)
        values = projected.unflatten(1, (self.heads, -1))  # (N, H, d)
        hearing, heard = (values * self.attention.unsqueeze(1)).sum(-1)  # (N, H) each
        scores = take(hearing, links.hearers) + take(heard, links.heard)
        return attend(links, leaky_relu(scores, SLOPE), values).flatten(1) + self.bias


Conv = type[GraphConv] | type[SageConv] | type[AttentionConv]

CONVS: dict[str, Conv] = {"gcn": GraphConv, "sage": SageConv, "gat": AttentionConv}

PYG_CONVS: dict[str, Conv] = {**CONVS, "gcn": GlorotConv, "sage": LinearSageConv}
"""The same, each with the start that PyG gives it."""

LAST_CONVS: dict[str, Callable[[int, int], nn.Module]] = {
    **PYG_CONVS,
    "gat": partial(AttentionConv, heads=1),
}
"""Those for logits, which all heads of attention have to share."""
