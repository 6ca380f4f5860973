"""Backbones: graph convolutions with one signature, built from two widths."""

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
from evengraph.ops.attention import EdgeList, attend, list_edges
from evengraph.ops.sparse import take
from evengraph.ops.synthesis import Propagation

Backbone = Literal["gcn", "sage", "gat"]
BACKBONES: tuple[str, ...] = get_args(Backbone)

HEADS = 8  # as in the paper; fewer if they do not divide the width
SLOPE = 0.2  # of the leaky ReLU


class SageConv(Convolution):
    """GraphSAGE with means: P x W + x W' + b, so a node is weighted apart from its neighbours.

    The projection, for neighbours and for the node itself, is (N, 2 outputs).

    Departs:
        The mean is over a node and its neighbours, as in the propagation matrix.

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
        """The mean over neighbours plus the node's own part."""
        neighbours, itself = projected.chunk(2, dim=-1)
        return propagation @ neighbours.contiguous() + itself + self.bias


class AttentionConv(Convolution):
    """GAT: a mean over a node and its neighbours, weighted by learnt attention in several heads.

    Only the edges of the propagation matrix count, not its values. Glorot weights, zero biases.
    The outputs of the heads are concatenated.

    Args:
        heads: Maximum number of heads; the largest divisor in common with `outputs` is used.

    Departs:
        No dropout on attention.

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
        """The weighted mean over edges."""
        edges = list_edges(propagation)
        values = projected.unflatten(1, (self.heads, -1))  # (N, H, d)
        as_target, as_source = self.node_scores(projected)
        scores = edge_scores(as_target, as_source, edges)
        return attend(edges, scores, values).flatten(1) + self.bias

    def node_scores(self, projected: Tensor) -> Tensor:
        """What nodes add to the scores of their edges as targets and as sources, (2, N, H)."""
        values = projected.unflatten(1, (self.heads, -1))
        scores: Tensor = (values * self.attention.unsqueeze(1)).sum(-1)
        return scores


def edge_scores(as_target: Tensor, as_source: Tensor, edges: EdgeList) -> Tensor:
    """Scores of edges before the softmax, (K, H), from those of their nodes, (N, H)."""
    scores = take(as_target, edges.targets) + take(as_source, edges.sources)
    return leaky_relu(scores, SLOPE)


MakeConv = Callable[[int, int], Convolution]

CONVS: dict[str, MakeConv] = {"gcn": GraphConv, "sage": SageConv, "gat": AttentionConv}

PYG_CONVS: dict[str, MakeConv] = {
    "gcn": partial(GraphConv, init=glorot),
    "sage": partial(SageConv, init=uniform_by_inputs),
    "gat": AttentionConv,
}
"""The same with PyG's default initialisation."""

LAST_CONVS: dict[str, MakeConv] = {**PYG_CONVS, "gat": partial(AttentionConv, heads=1)}
"""The same for a last layer: attention has one head, as logits are not concatenated."""
