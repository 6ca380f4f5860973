"""The links of a graph, one by one, for layers that weigh each of them anew."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from evengraph.ops.attach import Attached, Propagation, Repeated
from evengraph.ops.propagate import Sparse, scatter_sum, take


class Links(NamedTuple):
    """Who hears whom.

    Shapes:
        hearers, heard: int64, (K,)
        weights: (K,), what a link counts before attention; None: all the same
    """

    hearers: Tensor
    heard: Tensor
    weights: Tensor | None
    num_nodes: int


def links_of(propagation: Propagation) -> Links:
    """The links of a graph that is known by its propagation matrix, self-loops included.

    What is in the matrix itself says only who is linked; new links keep their weights.
    """
    if isinstance(propagation, Sparse):
        return Links(*propagation.entries, None, propagation.shape[0])
    if isinstance(propagation, Attached):
        return _attached(propagation)
    if isinstance(propagation, Repeated):
        return _repeated(propagation)
    raise TypeError(f"{type(propagation).__name__} does not list its links.")


def attend(links: Links, scores: Tensor, values: Tensor) -> Tensor:
    """For each node the mean of those it hears, weighted by the exponentials of scores.

    A node that hears nobody gets zeros.

    Shapes:
        scores: (K, H), of each link and head
        values: (N, H, d)
        returns: (N, H, d)
    """
    size, heads = links.num_nodes, scores.shape[1]
    index = links.hearers.unsqueeze(1).expand(-1, heads)
    highest = scores.new_full((size, heads), -torch.inf)
    highest = highest.scatter_reduce(0, index, scores.detach(), "amax")
    shares = (scores - highest[links.hearers]).exp()  # (K, H), at most one
    if links.weights is not None:
        shares = shares * links.weights.unsqueeze(1)
    total = scatter_sum(shares, links.hearers, size)
    shares = shares / take(torch.where(total > 0, total, 1.0), links.hearers)
    heard = take(values.flatten(1), links.heard).view(-1, heads, values.shape[2])
    arrived = (shares.unsqueeze(2) * heard).flatten(1)
    return scatter_sum(arrived, links.hearers, size).view_as(values)


def _attached(graph: Attached) -> Links:
    """Links among known nodes, new ones to them, theirs back, and loops of new nodes."""
    num_known, device = graph.known.shape[0], graph.nodes.device
    hearers, heard, weights, _ = links_of(graph.known)
    if weights is None:
        weights = torch.ones_like(hearers, dtype=graph.weights.dtype)
    new = num_known + graph.new
    parts = [(hearers, heard, weights), (new, graph.nodes, graph.weights)]
    if graph.both_ways:
        parts.append((graph.nodes, new, graph.weights))
    if graph.loop:
        own = num_known + torch.arange(graph.num_new, device=device)
        parts.append((own, own, torch.full(own.shape, graph.loop, device=device)))
    hearers, heard, weights = (torch.cat(part) for part in zip(*parts, strict=True))
    return Links(hearers, heard, weights, num_known + graph.num_new)


def _repeated(graph: Repeated) -> Links:
    """Every link once for each copy of the two nodes that it joins."""
    num_known = graph.matrix.shape[0]
    size = graph.shape[0]
    hearers, heard = graph.matrix.entries
    originals = torch.cat([torch.arange(num_known, device=heard.device), graph.seeds])
    copies = torch.argsort(originals, stable=True)  # of one node after another
    counts = torch.bincount(originals, minlength=num_known)
    first = counts.cumsum(0) - counts
    for _ in range(2):  # once for each end of a link
        times = counts[hearers]
        owner = torch.repeat_interleave(times)
        rank = torch.arange(owner.numel(), device=owner.device) - (times.cumsum(0) - times)[owner]
        hearers, heard = heard[owner], copies[first[hearers[owner]] + rank]
    return Links(hearers, heard, None, size)
