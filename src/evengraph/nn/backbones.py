"""Backbones: kinds of graph convolution behind one signature, `conv(x, propagation)`.

They are made of two widths, and differ in what they make of the graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from evengraph.nn.layers import (
    Convolution,
    GraphConv,
    Init,
    glorot,
    uniform_by_inputs,
    uniform_by_outputs,
)
from evengraph.ops.attach import Propagation
from evengraph.ops.attention import attend, list_edges
from evengraph.ops.sparse import take

Backbone = Literal["gcn", "sage", "gat"]
BACKBONES: tuple[str, ...] = get_args(Backbone)

HEADS = 8  # of attention, as in its paper; fewer where they do not divide the width
SLOPE = 0.2


class SageConv(Convolution):
    """GraphSAGE with means: P x W + x W' + b, so that a node hears itself apart from the others.

    The product of the features, for others and for the node itself, is (N, 2 outputs).

    Args:
        inputs: Width of x.
        outputs: Width of what is returned.
        init: Initialisation of weight and bias.

    Departs:
        The mean is that of the propagation matrix, of a node and its neighbours.

    Reference:
        Hamilton, Ying and Leskovec, "Inductive Representation Learning on Large Graphs",
        NeurIPS 2017.
    """

    def __init__(self, inputs: int, outputs: int, init: Init = uniform_by_outputs) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, 2 * outputs))
        self.bias = nn.Parameter(torch.empty(outputs))
        init(self.weight, self.bias)

    def propagate(self, projected: Tensor, propagation: Propagation) -> Tensor:
        """The mean of the others' part, and the node's own."""
        others, own = projected.chunk(2, dim=-1)
        return propagation @ others.contiguous() + own + self.bias


class AttentionConv(Convolution):
    """GAT: a mean over a node and its neighbours, weighted by learnt attention, in several heads.

    Of the propagation matrix only the links count. Weights start as Glorot's, biases at zero.

    Args:
        inputs: Width of x.
        outputs: Width of what is returned.
        heads: At most so many; as many as divide the outputs evenly.

    Heads stand side by side in what is returned.

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

    def propagate(self, projected: Tensor, propagation: Propagation) -> Tensor:
        """The weighted mean over links."""
        edges = list_edges(propagation)
        values = projected.unflatten(1, (self.heads, -1))  # (N, H, d)
        hearing, heard = (values * self.attention.unsqueeze(1)).sum(-1)  # (N, H) each
        scores = take(hearing, edges.targets) + take(heard, edges.sources)
        return attend(edges, leaky_relu(scores, SLOPE), values).flatten(1) + self.bias


MakeConv = Callable[[int, int], Convolution]

CONVS: dict[str, MakeConv] = {"gcn": GraphConv, "sage": SageConv, "gat": AttentionConv}

PYG_CONVS: dict[str, MakeConv] = {
    "gcn": partial(GraphConv, init=glorot),
    "sage": partial(SageConv, init=uniform_by_inputs),
    "gat": AttentionConv,
}
"""The same, each with the start that PyG gives it."""

LAST_CONVS: dict[str, MakeConv] = {**PYG_CONVS, "gat": partial(AttentionConv, heads=1)}
"""Those for logits, which all heads of attention have to share."""
