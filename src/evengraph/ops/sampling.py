"""Oversampling: rare classes, copies of their nodes, interpolation and neighbour sampling."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from evengraph.ops.sparse import row_entries, scatter_sum, take

BLOCK_ENTRIES = 2**24  # distances in memory at a time


class Copies(NamedTuple):
    """Copies to make of labelled nodes.

    Shapes:
        members: int64, (m,), the nodes to copy, as indices into the labelled nodes
        originals: int64, (M,), the index in `members` of each copy's original
        labels: int64, (M,), class of each copy
        rounds: int64, (M,), earlier copies of the same node
    """

    members: Tensor
    originals: Tensor
    labels: Tensor
    rounds: Tensor
    num_rounds: int

    @property
    def positions(self) -> Tensor:
        """The original of each copy, as an index into the labelled nodes, (M,)."""
        return self.members[self.originals]


def rare_classes(class_counts: Tensor, minority: int = 0) -> Tensor:
    """Mask of the rare classes.

    By default a class is rare if its count is below the geometric mean of the smallest and the
    largest count. Of classes 20, 20, 2 the last is rare; of equal classes none. The paper's long
    tails give their last three classes.

    Args:
        minority: Number of the smallest classes, the last among equals; 0: decide by counts.

    Shapes:
        class_counts, returns: (C,)
    """
    if minority:
        num_classes = class_counts.numel()
        if minority >= num_classes:
            raise ValueError(f"minority must be below the {num_classes} classes, got {minority}.")
        order = torch.argsort(class_counts, descending=True, stable=True)
        rare = torch.zeros_like(class_counts, dtype=torch.bool)
        rare[order[-minority:]] = True
        return rare
    return class_counts.double().square() < class_counts.min() * class_counts.max()


def plan_copies(labels: Tensor, rare: Tensor, copies: int) -> Copies:
    """Copy every labelled node of the rare classes, or fill every class up to the largest.

    Args:
        copies: Copies per node; 0 fills all classes up, cycling through their nodes.

    Shapes:
        labels: (n,), of labelled nodes
        rare: bool, (C,)
    """
    counts = torch.bincount(labels, minlength=rare.numel())
    wanted = copies * counts * rare if copies else counts.max() - counts  # (C,)
    members = (wanted[labels] > 0).nonzero().squeeze(1)
    members = members[torch.argsort(labels[members], stable=True)]  # class by class
    classes = torch.repeat_interleave(wanted)  # (M,)
    sizes = counts * (wanted > 0)
    turn = torch.arange(classes.numel(), device=labels.device) - _starts(wanted)[classes]
    originals = _starts(sizes)[classes] + turn % counts[classes]
    rounds = turn // counts[classes]
    num_rounds = int(rounds.max()) + 1 if rounds.numel() else 1
    return Copies(members, originals, classes, rounds, num_rounds)


def _starts(sizes: Tensor) -> Tensor:
    """Start of each of several consecutive runs."""
    return sizes.cumsum(0) - sizes


@torch.no_grad()
def nearest_in_class(x: Tensor, labels: Tensor) -> Tensor:
    """For each row the nearest other row of its class by Euclidean distance, itself if alone.

    Linear in memory: distances are computed in blocks of rows.

    Shapes:
        x: (n, d)
        labels: (n,)
        returns: int64, (n,)
    """
    x = x - x.mean(0)  # cdist uses products, which are accurate near the origin
    index = torch.arange(labels.numel(), device=x.device)
    if not index.numel():
        return index
    # Few rows are fastest in one block; many are compared class by class.
    few = labels.numel() ** 2 <= BLOCK_ENTRIES
    groups = [index] if few else [(labels == c).nonzero().squeeze(1) for c in labels.unique()]
    peers = index.clone()
    for group in groups:
        for rows in group.split(max(BLOCK_ENTRIES // group.numel(), 1)):
            distance = torch.cdist(x[rows], x[group])
            excluded = (labels[rows].unsqueeze(1) != labels[group]) | (rows.unsqueeze(1) == group)
            least, nearest = distance.masked_fill_(excluded, torch.inf).min(dim=1)
            peers[rows] = torch.where(least.isinf(), rows, group[nearest])
    return peers


def interpolate(x: Tensor, labels: Tensor, copies: Copies, share: Tensor) -> tuple[Tensor, Tensor]:
    """For each copy a point between its original and the nearest node of its class.

    Gradients flow through both.

    Shapes:
        x, labels: (n, d) and (n,), of the labelled nodes
        share: (M,), position of each copy: 0 at the original, 1 at the nearest node
        returns: the points, (M, d), and the nearest nodes as indices into the labelled ones, (M,)
    """
    members = take(x, copies.members)
    peers = nearest_in_class(members, labels[copies.members])[copies.originals]
    start = take(members, copies.originals)
    points = start + share.unsqueeze(1) * (take(members, peers) - start)
    return points, copies.members[peers]


def random_shares(
    copies: Copies, num_classes: int, stream: torch.Generator | None = None
) -> Tensor:
    """One random share per class and round of copies, for `interpolate`, (M,)."""
    device = copies.labels.device if stream is None else stream.device
    shares = torch.rand(copies.num_rounds, num_classes, generator=stream, device=device)
    return shares.to(copies.labels.device)[copies.rounds, copies.labels]


def sample_neighbours(
    adjacency: Tensor, sources: Tensor, targets: Tensor, source_share: Tensor, degrees: Tensor
) -> tuple[Tensor, Tensor]:
    """Draw neighbours for new nodes from a mixture of two nodes' neighbourhoods.

    New node i draws up to degrees[i] nodes without replacement; a neighbour of the source has
    the probability source_share / deg(source), one of the target (1 - source_share) /
    deg(target), one of both the sum. Entries other than one are relative weights. The largest
    log-probabilities plus Gumbel noise are such a draw, and only the neighbours are listed.

    Shapes:
        adjacency: sparse CSR, (n, N), without negative entries
        sources, targets, source_share, degrees: (M,), of each new node; the first two are rows
        returns: two int64 tensors of equal length: the new node and the neighbour of each edge
    """
    num_nodes = adjacency.shape[1]
    keys, probabilities = [], []
    for nodes, share in ((sources, source_share), (targets, 1 - source_share)):
        owner, positions = row_entries(adjacency, nodes)
        weights = adjacency.values()[positions]
        size = scatter_sum(weights, owner, nodes.numel())
        keys.append(owner * num_nodes + adjacency.col_indices()[positions])
        probabilities.append((share / torch.where(size > 0, size, 1.0))[owner] * weights)
    pairs, index = torch.unique(torch.cat(keys), return_inverse=True)
    probability = scatter_sum(torch.cat(probabilities), index, pairs.numel())
    owner, neighbour = pairs // num_nodes, pairs % num_nodes
    tiny = torch.finfo(probability.dtype).tiny
    uniform = torch.rand_like(probability).clamp(min=tiny)
    gumbel = -(-uniform.log()).log()
    order = torch.argsort(probability.log() + gumbel, descending=True, stable=True)
    order = order[torch.argsort(owner[order], stable=True)]  # by new node, then by noise
    size = torch.bincount(owner, minlength=sources.numel())
    rank = torch.arange(order.numel(), device=order.device) - _starts(size)[owner[order]]
    drawn = order[(rank < degrees[owner[order]]) & (probability[order] > 0)]
    return owner[drawn], neighbour[drawn]
