"""Graph convolutions with one signature, and the networks that methods build of them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from evengraph.fast.dropout import Noise, Share
from evengraph.fast.dropout import relu_dropout as relu_dropout
from evengraph.ops.sparse import Sparse, scatter_sum, take
from evengraph.ops.synthesis import AttachedGraph, GraphWithCopies, Propagation

Init = Callable[[Tensor, Tensor], None]
"""Initialises a weight, (inputs, outputs), and a bias, (outputs,), in place."""


def uniform_by_outputs(weight: Tensor, bias: Tensor) -> None:
    """Uniform in +- 1 / sqrt(outputs), as in the public code of the comparison methods."""
    _uniform(weight, bias, bias.numel() ** -0.5)


def uniform_by_inputs(weight: Tensor, bias: Tensor) -> None:
    """Uniform in +- 1 / sqrt(inputs), the default of torch's linear layers."""
    _uniform(weight, bias, weight.shape[0] ** -0.5)


def glorot(weight: Tensor, bias: Tensor) -> None:
    """Glorot uniform weights and a zero bias, the default of PyG's convolutions."""
    nn.init.xavier_uniform_(weight)
    nn.init.zeros_(bias)


def _uniform(weight: Tensor, bias: Tensor, bound: float) -> None:
    nn.init.uniform_(weight, -bound, bound)
    nn.init.uniform_(bias, -bound, bound)


class Convolution(nn.Module, ABC):
    """A graph convolution: a product row by row, then everything that needs the graph."""

    # x is (N, inputs), dense or sparse; the propagation, (N, N), is already normalised

    weight: nn.Parameter

    def forward(self, x: Tensor | Sparse, propagation: Propagation) -> Tensor:
        return self.propagate(self.project(x), propagation)

    def project(self, x: Tensor | Sparse) -> Tensor:
        """x W, row by row."""
        return x @ self.weight

    @abstractmethod
    def propagate(self, projected: Tensor, propagation: Propagation) -> Tensor:
        """Combine the projected rows over the graph."""


class GraphConv(Convolution):
    """GCN's convolution, P x W + b: transform, then propagate the narrower product."""

    def __init__(self, inputs: int, outputs: int, init: Init = uniform_by_outputs) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))
        init(self.weight, self.bias)

    def propagate(self, projected: Tensor, propagation: Propagation) -> Tensor:
        return propagation @ projected + self.bias.unsqueeze(-2)


Backbone = Literal["gcn", "sage", "gat"]
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
        edges = list_edges(propagation)
        values = projected.unflatten(1, (self.heads, -1))  # (N, H, d)
        as_target, as_source = (values * self.attention.unsqueeze(1)).sum(-1)  # (N, H) each
        scores = take(as_target, edges.targets) + take(as_source, edges.sources)
        return attend(edges, leaky_relu(scores, SLOPE), values).flatten(1) + self.bias


class EdgeList(NamedTuple):
    """Edges from sources to targets, (K,) each; weights before attention, None: all equal."""

    targets: Tensor
    sources: Tensor
    weights: Tensor | None
    num_nodes: int


def list_edges(propagation: Propagation) -> EdgeList:
    """The edges of a propagation matrix, self-loops included; only new edges keep their weights."""
    if isinstance(propagation, Sparse):
        return EdgeList(*propagation.entries, None, propagation.shape[0])
    if isinstance(propagation, AttachedGraph):
        return _attached(propagation)
    return _with_copies(propagation)


def attend(edges: EdgeList, scores: Tensor, values: Tensor) -> Tensor:
    """For each node the mean of values, (N, H, d), over its sources; zeros if it has none."""
    # weighted by the exponentials of scores, (K, H), of each edge and head
    size, heads = edges.num_nodes, scores.shape[1]
    index = edges.targets.unsqueeze(1).expand(-1, heads)
    highest = scores.new_full((size, heads), -torch.inf)
    highest = highest.scatter_reduce(0, index, scores.detach(), "amax")
    shares = (scores - highest[edges.targets]).exp()  # at most one
    if edges.weights is not None:
        shares = shares * edges.weights.unsqueeze(1)
    total = scatter_sum(shares, edges.targets, size)
    shares = shares / take(torch.where(total > 0, total, 1.0), edges.targets)
    messages = take(values.flatten(1), edges.sources).view(-1, *values.shape[1:])
    weighted = (shares.unsqueeze(2) * messages).flatten(1)
    return scatter_sum(weighted, edges.targets, size).view_as(values)


def _attached(graph: AttachedGraph) -> EdgeList:
    """Edges among known nodes, to new ones, from new ones, and loops of new nodes."""
    num_known, device = graph.known.shape[0], graph.nodes.device
    targets, sources, weights, _ = list_edges(graph.known)
    if weights is None:
        weights = torch.ones_like(targets, dtype=graph.weights.dtype)
    new = num_known + graph.new
    parts = [(targets, sources, weights), (new, graph.nodes, graph.weights)]
    if graph.both_ways:
        parts.append((graph.nodes, new, graph.weights))
    if graph.loop:
        loops = num_known + torch.arange(graph.num_new, device=device)
        parts.append((loops, loops, torch.full(loops.shape, graph.loop, device=device)))
    targets, sources, weights = (torch.cat(part) for part in zip(*parts, strict=True))
    return EdgeList(targets, sources, weights, num_known + graph.num_new)


def _with_copies(graph: GraphWithCopies) -> EdgeList:
    """Every edge once for each pair of copies of its two nodes."""
    num_known = graph.matrix.shape[0]
    targets, sources = graph.matrix.entries
    originals = torch.cat([torch.arange(num_known, device=sources.device), graph.seeds])
    copies = torch.argsort(originals, stable=True)  # grouped by original
    counts = torch.bincount(originals, minlength=num_known)
    first = counts.cumsum(0) - counts
    for _ in range(2):  # once for each end of an edge
        times = counts[targets]
        owner = torch.repeat_interleave(times)
        rank = torch.arange(owner.numel(), device=owner.device) - (times.cumsum(0) - times)[owner]
        targets, sources = sources[owner], copies[first[targets[owner]] + rank]
    return EdgeList(targets, sources, None, graph.shape[0])


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


class GraphClassifier(nn.Module):
    """A graph convolution, ReLU, dropout and a linear layer."""

    def __init__(
        self,
        inputs: int,
        hidden: int,
        num_classes: int,
        dropout: float,
        conv: Callable[[int, int], nn.Module] = GraphConv,
    ) -> None:
        super().__init__()
        self.conv: Any = conv(inputs, hidden)
        self.linear = nn.Linear(hidden, num_classes)
        nn.init.normal_(self.linear.weight, std=0.05)
        self.dropout = dropout
        self.noise: Noise | None = None

    def forward(
        self,
        x: Tensor,
        propagation: Propagation,
        *,
        dropout: bool,
        share: Share | None = None,
    ) -> Tensor:
        """Logits of all nodes, or of the rows of the propagation matrix."""
        return self._output(self.conv(x, propagation), dropout, share)

    def classify_propagated(self, x: Tensor, *, dropout: bool) -> Tensor:
        """Logits from P x, for a GCN convolution whose constant input is propagated only once."""
        return self._output(x @ self.conv.weight + self.conv.bias.unsqueeze(-2), dropout)

    def _output(self, convolved: Tensor, dropout: bool, share: Share | None = None) -> Tensor:
        hidden = relu_dropout(
            convolved, self.dropout, training=dropout, noise=self.noise, share=share
        )
        # weights may have a leading axis: one layer per run of a batch
        weight, bias = self.linear.weight.transpose(-1, -2), self.linear.bias.unsqueeze(-2)
        return hidden @ weight + bias


class Inputs(NamedTuple):
    """What a network takes of a graph: features, (N, F), and the normalised propagation, (N, N)."""

    x: Tensor | Sparse
    propagation: Propagation


class _Network(nn.Module, ABC):
    """An encoder and what follows it: `Inputs` to logits, (N, C)."""

    def __init__(self, encoder: nn.Module, dropout: float) -> None:
        super().__init__()
        self.encoder, self.dropout = encoder, dropout
        self.noise: Noise | None = None

    def forward(self, x: Tensor | Sparse, propagation: Propagation) -> Tensor:
        return self.classify(self.encoder(x, propagation), propagation)

    def embed(self, first: Tensor, *, dropout: bool = False, share: Share | None = None) -> Tensor:
        """Embeddings from the encoder's output before its activation."""
        return relu_dropout(first, self.dropout, training=dropout, noise=self.noise, share=share)

    def classify(
        self,
        first: Tensor,
        propagation: Propagation,
        *,
        dropout: bool = False,
        share: Share | None = None,
    ) -> Tensor:
        """Logits from the encoder's output before its activation."""
        # no dropout precedes it, so a pass with dropout and one without can share the encoder
        embeddings = self.embed(first, dropout=dropout, share=share)
        return self._output(embeddings, propagation, dropout, share)

    @abstractmethod
    def _output(
        self, embeddings: Tensor, propagation: Propagation, dropout: bool, share: Share | None
    ) -> Tensor:
        """Logits from embeddings."""


class GraphNetwork(_Network):
    """The network of the paper's comparison.

    Convolution, ReLU, dropout; convolution, ReLU, dropout, linear layer.
    """

    def __init__(
        self,
        num_features: int,
        hidden: int,
        num_classes: int,
        dropout: float,
        backbone: Backbone = "gcn",
    ) -> None:
        conv = CONVS[backbone]
        super().__init__(conv(num_features, hidden), dropout)
        self.classifier = GraphClassifier(hidden, hidden, num_classes, dropout, conv)

    def _output(
        self, embeddings: Tensor, propagation: Propagation, dropout: bool, share: Share | None
    ) -> Tensor:
        logits: Tensor = self.classifier(embeddings, propagation, dropout=dropout, share=share)
        return logits


class PlainNetwork(_Network):
    """The network of papers on public splits: two layers, with weight decay on the first only.

    `first` and `last` build a convolution, or another layer of its signature, from two widths.
    """

    def __init__(
        self,
        first: Callable[[int, int], nn.Module],
        last: Callable[[int, int], nn.Module],
        num_features: int,
        hidden: int,
        num_classes: int,
        dropout: float,
    ) -> None:
        super().__init__(first(num_features, hidden), dropout)
        self.last = last(hidden, num_classes)
        self.last.decays = False  # type: ignore[assignment]

    def _output(
        self, embeddings: Tensor, propagation: Propagation, dropout: bool, share: Share | None
    ) -> Tensor:
        logits: Tensor = self.last(embeddings, propagation)
        return logits


class EdgeDecoder(nn.Module):
    """Scores pairs of embeddings: sigmoid(h W (h' W)^T); W starts uniform in +- 1 / sqrt(width)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        bound = width**-0.5
        self.weight = nn.Parameter(torch.empty(width, width).uniform_(-bound, bound))

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        """Scores of pairs, row by row, (K,)."""
        return ((one @ self.weight) * (other @ self.weight)).sum(1).sigmoid()

    def among(self, embeddings: Tensor, sources: Tensor, targets: Tensor) -> Tensor:
        """Scores of pairs of nodes, (K,); each node is transformed once."""
        projected = embeddings @ self.weight
        return (take(projected, sources) * take(projected, targets)).sum(1).sigmoid()


class Reconstruction:
    """Loss of a decoder that separates the edges of a graph from other pairs of nodes.

    The loss over all N^2 pairs is |E| (mean over edges of (1 - s)^2 + mean over other pairs of
    s^2), self-loops included. Here the second mean is over as many random pairs as edges, drawn
    at each call, which is unbiased unless only edges are drawn. A graph with more edges than
    `limit` samples its edges as well.
    """

    def __init__(self, adjacency: sp.spmatrix, device: torch.device, limit: int = 2**17) -> None:
        self.num_nodes, self.limit = adjacency.shape[0], limit
        looped = (adjacency + sp.identity(self.num_nodes, format="csr")).tocoo()
        rows, columns = (torch.from_numpy(part).long() for part in (looped.row, looped.col))
        self.edges = (rows * self.num_nodes + columns).sort().values.to(device)  # one key per edge

    def __call__(self, decoder: EdgeDecoder, embeddings: Tensor) -> Tensor:
        edges, others, is_other = self._draw()
        pairs = torch.cat([edges, others])
        scores = decoder.among(embeddings, pairs // self.num_nodes, pairs % self.num_nodes)
        on_edges, on_others = scores.tensor_split([edges.numel()])
        missed = (1 - on_edges).square().mean()
        invented = (on_others.square() * is_other).sum() / is_other.sum().clamp(min=1)
        loss: Tensor = self.edges.numel() * (missed + invented)
        return loss

    def _draw(self) -> tuple[Tensor, Tensor, Tensor]:
        """Edges, random pairs, and a mask of the pairs that are not edges."""
        size, device = self.edges.numel(), self.edges.device
        edges = self.edges
        if size > self.limit:
            edges = edges[torch.randint(size, (self.limit,), device=device)]
        others = torch.randint(self.num_nodes**2, (edges.numel(),), device=device)
        index = torch.searchsorted(self.edges, others).clamp(max=size - 1)
        return edges, others, self.edges[index] != others
