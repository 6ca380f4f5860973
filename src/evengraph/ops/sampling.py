"""Oversampling and interpolation of nodes: which classes are rare, whom to copy, towards whom."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from evengraph.ops.sparse import row_entries, scatter_sum, take

BLOCK_ENTRIES = 2**24  # distances that are held at one time


class Copies(NamedTuple):
    """Which labelled nodes to copy; a node that is copied twice is in it twice.

    Shapes:
        members: int64, (m,), the nodes that are copied, as places in the list of labelled nodes
        originals: int64, (M,), for each copy its member
        labels: int64, (M,), for each copy its class
        rounds: int64, (M,), how many copies of the same node stand before it
    """

    members: Tensor
    originals: Tensor
    labels: Tensor
    rounds: Tensor
    num_rounds: int

    @property
    def positions(self) -> Tensor:
        """The originals as places in the list of labelled nodes, (M,)."""
        return self.members[self.originals]


def rare_classes(class_counts: Tensor, minority: int = 0) -> Tensor:
    """Which classes are rare: the few smallest, or those that the counts themselves set apart.

    Without a number, a class is rare when its count lies nearer to the smallest than to the
    largest in ratio, that is below their geometric mean. Of classes 20, 20, 2 the last is rare;
    of equal classes none. Counts of the paper's long tails give their last three classes.

    Args:
        class_counts: Labelled nodes of each class.
        minority: How many of the smallest classes; of equal ones the last. 0: decide by ratio.

    Shapes:
        class_counts: (C,)
        returns: bool, (C,)
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
        labels: Classes of the labelled nodes.
        rare: Which classes are rare.
        copies: Copies of each node; 0 fills all classes up, their nodes taking turns.

    Shapes:
        labels: (n,)
        rare: bool, (C,)
    """
    counts = torch.bincount(labels, minlength=rare.numel())
    wanted = copies * counts * rare if copies else counts.max() - counts  # (C,)
    members = (wanted[labels] > 0).nonzero().squeeze(1)
    members = members[torch.argsort(labels[members], stable=True)]  # class by class
    classes = torch.repeat_interleave(wanted)  # (M,)
    held = counts * (wanted > 0)
    turn = torch.arange(classes.numel(), device=labels.device) - _starts(wanted)[classes]
    originals = _starts(held)[classes] + turn % counts[classes]
    rounds = turn // counts[classes]
    num_rounds = int(rounds.max()) + 1 if rounds.numel() else 1
    return Copies(members, originals, classes, rounds, num_rounds)


def _starts(sizes: Tensor) -> Tensor:
    """Where each of several runs begins that stand one after the other."""
    return sizes.cumsum(0) - sizes


@torch.no_grad()
def nearest_in_class(x: Tensor, labels: Tensor) -> Tensor:
    """For each row the nearest other row of its class, by Euclidean distance; alone, itself.

    Linear in memory: distances are taken in blocks of rows.

    Shapes:
        x: (n, d)
        labels: (n,)
        returns: int64, (n,)
    """
    x = x - x.mean(0)  # distances are taken through products, which are exact near the origin
    own = torch.arange(labels.numel(), device=x.device)
    if not own.numel():
        return own
    # A few rows are cheapest all at once; of many, only those of a class meet.
    few = labels.numel() ** 2 <= BLOCK_ENTRIES
    groups = [own] if few else [(labels == one).nonzero().squeeze(1) for one in labels.unique()]
    peers = own.clone()
    for group in groups:
        for rows in group.split(max(BLOCK_ENTRIES // group.numel(), 1)):
            distance = torch.cdist(x[rows], x[group])
            strangers = (labels[rows].unsqueeze(1) != labels[group]) | (rows.unsqueeze(1) == group)
            least, nearest = distance.masked_fill_(strangers, torch.inf).min(dim=1)
            peers[rows] = torch.where(least.isinf(), rows, group[nearest])
    return peers


def interpolate(x: Tensor, labels: Tensor, copies: Copies, share: Tensor) -> tuple[Tensor, Tensor]:
    """For each copy a point on the way from its original to the nearest peer of its class.

    Args:
        x: Of the labelled nodes; gradients flow through both ends.
        labels: Their classes.
        copies: Whom to copy.
        share: How far towards the peer each copy lies: 0 stays, 1 arrives.

    Shapes:
        x: (n, d)
        labels: (n,)
        share: (M,)
        returns: the points, (M, d), and the peers as places in the list of labelled nodes, (M,)
    """
    members = take(x, copies.members)
    peers = nearest_in_class(members, labels[copies.members])[copies.originals]
    start = take(members, copies.originals)
    points = start + share.unsqueeze(1) * (take(members, peers) - start)
    return points, copies.members[peers]


def random_shares(
    copies: Copies, num_classes: int, stream: torch.Generator | None = None
) -> Tensor:
    """One random share for each class and round of copies, for `interpolate`, (M,)."""
    device = copies.labels.device if stream is None else stream.device
    drawn = torch.rand(copies.num_rounds, num_classes, generator=stream, device=device)
    return drawn.to(copies.labels.device)[copies.rounds, copies.labels]


def sample_neighbours(
    adjacency: Tensor, sources: Tensor, targets: Tensor, source_share: Tensor, degrees: Tensor
) -> tuple[Tensor, Tensor]:
    """Draw neighbours for new nodes from a mixture of two nodes' neighbourhoods.

    New node i draws up to degrees[i] nodes without replacement; a neighbour of the source has
    the probability source_share / deg(source), one of the target (1 - source_share) /
    deg(target), one of both the sum. Where entries are weights, they say how likely each is.
    Gumbel noise on the log-probabilities and the largest few of them are such a draw, and only
    the neighbours themselves are ever listed.

    Args:
        adjacency: The graph, a sparse CSR matrix without negative entries.
        sources: For each new node the node that it is made from, a row of the matrix.
        targets: For each new node the other one.
        source_share: The source's part of the mixture.
        degrees: Neighbours wanted.

    Shapes:
        adjacency: sparse CSR, (n, N)
        sources, targets, source_share, degrees: (M,)
        returns: two int64 tensors of equal length: the new node and the neighbour of each edge
    """
    num_nodes = adjacency.shape[1]
    keys, chances = [], []
    for nodes, share in ((sources, source_share), (targets, 1 - source_share)):
        owner, positions = row_entries(adjacency, nodes)
        weights = adjacency.values()[positions]
        size = scatter_sum(weights, owner, nodes.numel())
        keys.append(owner * num_nodes + adjacency.col_indices()[positions])
        chances.append((share / torch.where(size > 0, size, 1.0))[owner] * weights)
    pairs, place = torch.unique(torch.cat(keys), return_inverse=True)
    chance = scatter_sum(torch.cat(chances), place, pairs.numel())
    owner, neighbour = pairs // num_nodes, pairs % num_nodes
    uniform = torch.rand_like(chance).clamp(min=torch.finfo(chance.dtype).tiny)
    gumbel = -(-uniform.log()).log()
    order = torch.argsort(chance.log() + gumbel, descending=True, stable=True)
    order = order[torch.argsort(owner[order], stable=True)]  # by new node, then by luck
    size = torch.bincount(owner, minlength=sources.numel())
    rank = torch.arange(order.numel(), device=order.device) - _starts(size)[owner[order]]
    kept = order[(rank < degrees[owner[order]]) & (chance[order] > 0)]
    return owner[kept], neighbour[kept]
