"""Attention over the edges of a graph."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from evengraph.ops.sparse import Sparse, scatter_sum, take
from evengraph.ops.synthesis import AttachedGraph, GraphWithCopies, Propagation


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
    if isinstance(propagation, GraphWithCopies):
        return _with_copies(propagation)
    raise TypeError(f"{type(propagation).__name__} cannot list its edges.")


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
