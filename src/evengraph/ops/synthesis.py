"""New nodes attached to a graph: propagation over both without building the larger matrix."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from evengraph.ops.semantic import cluster_means
from evengraph.ops.sparse import (
    Normalisation,
    Sparse,
    row_entries,
    scatter_sum,
    take,
    with_self_loops,
)


@dataclass(frozen=True, eq=False)
class AttachedGraph:
    """A graph of N nodes with M new ones, normalised, for use as `graph @ x`.

    Row v of the product is the weighted sum over v's neighbours divided by the sum of the
    weights (`row`), or its symmetric form; a row without weights gives zeros. The weights may
    carry gradients.
    """

    known: Sparse | AttachedGraph  # weights among the N nodes, (N, N)
    known_sums: Tensor  # their row sums, (N,)
    nodes: Tensor  # the known node of each new edge, (K,)
    new: Tensor  # its new node, from 0 to M - 1, (K,)
    weights: Tensor  # (K,)
    num_new: int
    both_ways: bool = True  # whether known nodes also receive from new ones
    loop: float = 0.0  # weight of a new node's self-loop
    how: Normalisation = "row"

    @property
    def shape(self) -> tuple[int, int]:
        size = self.known.shape[0] + self.num_new
        return size, size

    def __matmul__(self, x: Tensor) -> Tensor:
        num_known = self.known.shape[0]
        if self.how == "symmetric":
            x = self._scale * x
        known, new = x.tensor_split([num_known])
        weights = self.weights.unsqueeze(1)
        at_known = self.known @ known
        if self.both_ways:
            at_known = at_known + scatter_sum(weights * take(new, self.new), self.nodes, num_known)
        at_new = scatter_sum(weights * take(known, self.nodes), self.new, self.num_new)
        at_new = at_new + self.loop * new
        return self._scale * torch.cat([at_known, at_new])

    @cached_property
    def _scale(self) -> Tensor:
        """The factor of each row, (N + M, 1)."""
        known = self.known_sums
        if self.both_ways:
            known = known + scatter_sum(self.weights, self.nodes, known.numel())
        new = scatter_sum(self.weights, self.new, self.num_new) + self.loop
        return _scale(torch.cat([known, new]), self.how)


@dataclass(frozen=True, eq=False)
class StackedFeatures:
    """Features of N nodes and of M new ones below them, for use as `stacked @ weight`."""

    # those of known nodes keep their form, sparse or dense, however often new ones change

    known: Tensor | Sparse  # (N, F)
    new: Tensor  # (M, F)

    @property
    def shape(self) -> tuple[int, int]:
        return self.known.shape[0] + self.new.shape[0], self.new.shape[1]

    def __matmul__(self, weight: Tensor) -> Tensor:
        return torch.cat([self.known @ weight, self.new @ weight])


@dataclass(frozen=True, eq=False)
class GraphWithCopies:
    """A graph with copies of some nodes, including all their edges, for use as `graph @ x`.

    As a matrix it is the original with the rows and columns of the seeds repeated; a node with k
    copies, itself included, is connected to each of them. The matrix is never built: a node sends
    for its copies, and they receive what it receives.
    """

    matrix: Sparse  # the graph's propagation matrix, (N, N)
    seeds: Tensor  # the original of each copy, (M,)
    scale: Tensor | None = None  # factor of each row, and with `both_sides` of each column, (N,)
    both_sides: bool = False

    @classmethod
    def normalised(cls, looped: Sparse, seeds: Tensor, how: Normalisation) -> GraphWithCopies:
        """Copy nodes of a graph with self-loops, then normalise the larger graph."""
        ones = torch.ones(looped.shape[0] + seeds.numel(), 1, device=seeds.device)
        sums = (cls(looped, seeds) @ ones)[: looped.shape[0]].squeeze(1)
        return cls(looped, seeds, _scale(sums, how).squeeze(1), how == "symmetric")

    @property
    def shape(self) -> tuple[int, int]:
        size = self.matrix.shape[0] + self.seeds.numel()
        return size, size

    def __matmul__(self, x: Tensor) -> Tensor:
        num_known = self.matrix.shape[0]
        known, new = x.tensor_split([num_known])
        sent = known + scatter_sum(new, self.seeds, num_known)
        if self.scale is not None and self.both_sides:
            sent = self.scale.unsqueeze(1) * sent
        received = self.matrix @ sent
        if self.scale is not None:
            received = self.scale.unsqueeze(1) * received
        return torch.cat([received, take(received, self.seeds)])


def _scale(sums: Tensor, how: Normalisation) -> Tensor:
    """One over each row sum or its root, (N, 1); 0 for a row without weights."""
    positive = sums > 0
    inverse = torch.where(positive, 1 / torch.where(positive, sums, 1.0), 0.0).unsqueeze(1)
    return inverse.sqrt() if how == "symmetric" else inverse


Propagation = Sparse | AttachedGraph | GraphWithCopies
"""The right-hand operands of a graph convolution's propagation."""


Variant = Literal["BAT0", "BAT1"]


@dataclass(frozen=True, eq=False)
class VirtualNodes:
    """A graph to which `link` adds one virtual node per class, with new links at every call."""

    # a node's alternative classes come from its own prediction (BAT0) or its neighbours' (BAT1)

    adjacency: sp.spmatrix  # undirected and without self-loops, (N, N)
    x: Tensor | Sparse
    nodes: Tensor
    labels: Tensor
    class_counts: Tensor
    variant: Variant
    how: Normalisation = "row"

    @torch.no_grad()
    def link(self, logits: Tensor) -> tuple[AttachedGraph, Tensor]:
        """Draw links by predictions; return the larger graph and features of virtual nodes."""
        # links go both ways; a virtual node has the mean features of all nodes of its class
        probabilities, num_classes = logits.softmax(1), logits.shape[1]
        predicted = probabilities.argmax(1).index_copy(0, self.nodes, self.labels)
        alternatives = probabilities
        if self.variant == "BAT1":
            alternatives = self._neighbours @ one_hot(predicted, num_classes).to(probabilities)
        links = link_probabilities(probabilities, predicted, alternatives, self.class_counts)
        nodes, virtual = (torch.rand_like(links) < links).nonzero(as_tuple=True)
        means = cluster_means(self.x, predicted, num_classes)
        graph = AttachedGraph(
            self._looped,
            self._degrees,
            nodes,
            virtual,
            torch.ones_like(nodes, dtype=means.dtype),
            num_classes,
            loop=1.0,
            how=self.how,
        )
        return graph, means

    @cached_property
    def _neighbours(self) -> Sparse:
        return Sparse.from_scipy(self.adjacency, self.nodes.device)

    @cached_property
    def _looped(self) -> Sparse:
        return with_self_loops(self.adjacency, self.nodes.device)

    @cached_property
    def _degrees(self) -> Tensor:
        """Row sums of the graph with self-loops, (N,)."""
        ones = torch.ones(self.adjacency.shape[0], 1, device=self.nodes.device)
        return (self._looped @ ones).squeeze(1)


def link_probabilities(
    probabilities: Tensor, predicted: Tensor, alternatives: Tensor, class_counts: Tensor
) -> Tensor:
    """Probability of a link between each node and the virtual node of each class, (N, C).

    A node's risk is the excess of its uncertainty over the mean of its predicted class, times
    the size of that class over the largest, so a rare class keeps its nodes. The risk is shared
    among the other classes in proportion to the alternatives.
    """
    uncertainty = 1 - probabilities.max(1).values
    sizes = torch.bincount(predicted, minlength=class_counts.numel()).clamp(min=1)
    means = scatter_sum(uncertainty, predicted, class_counts.numel()) / sizes
    risk = (uncertainty - means[predicted]).clamp(min=0)
    risk = risk * (class_counts / class_counts.max())[predicted]
    others = alternatives.scatter(1, predicted.unsqueeze(1), 0.0)
    total = others.sum(1, keepdim=True)
    return risk.unsqueeze(1) * others / torch.where(total > 0, total, 1.0)


BLOCK_ENTRIES = 2**24  # distances in memory at a time


class Copies(NamedTuple):
    """Copies to make of labelled nodes."""

    members: Tensor  # the nodes to copy, as indices into the labelled nodes, (m,)
    originals: Tensor  # the index in `members` of each copy's original, (M,)
    labels: Tensor  # class of each copy, (M,)
    rounds: Tensor  # earlier copies of the same node, (M,)
    num_rounds: int

    @property
    def positions(self) -> Tensor:
        """The original of each copy, as an index into the labelled nodes, (M,)."""
        return self.members[self.originals]


def rare_classes(class_counts: Tensor, minority: int = 0) -> Tensor:
    """Mask of the rare classes: the `minority` smallest, the last among equals; 0: by counts.

    By counts a class is rare below the geometric mean of the smallest and the largest. Of classes
    20, 20, 2 the last is rare; of equal classes none. The paper's long tails give their last three.
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
    """Copy every labelled node of the rare classes, or fill every class up to the largest."""
    # `copies` per node; 0 fills all classes up, cycling through their nodes
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
    """For each row the nearest other row of its class by Euclidean distance, itself if alone."""
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
    """Points between each original, at share 0, and the nearest node of its class; that node."""
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
    """Draw neighbours for new nodes from a mixture of two nodes' neighbourhoods; edges, (2, K).

    New node i draws up to degrees[i] nodes without replacement; a neighbour of the source has
    the probability source_share / deg(source), one of the target (1 - source_share) /
    deg(target), one of both the sum. Entries other than one are relative weights. The largest
    log-probabilities plus Gumbel noise are such a draw, and only the neighbours are listed.
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


class Pairs(NamedTuple):
    """Source, target, class of the source and its share of the features, of each new node, (M,)."""

    sources: Tensor
    targets: Tensor
    labels: Tensor
    shares: Tensor


def draw_pairs(labels: Tensor, class_counts: Tensor) -> Pairs:
    """Draw pairs that fill every class up to the size of the largest.

    A source is any labelled node of the class. A target is any labelled node with probability
    proportional to log(n) / n for a class of n, so a class is drawn in proportion to log(n) and
    a class of one never. Shares follow Beta(2, 2), the distribution of the median of three
    uniform numbers.
    """
    missing = class_counts.max() - class_counts
    classes = torch.repeat_interleave(missing)  # (M,)
    count, device = classes.numel(), labels.device
    members = torch.argsort(labels, stable=True)
    first = class_counts.cumsum(0) - class_counts
    ranks = (torch.rand(count, device=device) * class_counts[classes]).long()
    sources = members[first[classes] + torch.minimum(ranks, class_counts[classes] - 1)]
    weights = (class_counts.log() / class_counts)[labels]
    targets = torch.multinomial(weights, count, replacement=True) if count else classes
    return Pairs(sources, targets, classes, torch.rand(3, count, device=device).median(0).values)


def draw_members(weights: Tensor, groups: Tensor, draws: Tensor) -> Tensor:
    """Draw one member per entry of `draws`, in proportion to the weights within its group.

    Members of a group whose weights are all zero are drawn uniformly. Linear in memory: members
    are sorted by group, and a uniform number is looked up in their running sum.
    """
    order = torch.argsort(groups, stable=True)
    sizes = torch.bincount(groups)
    ends = sizes.cumsum(0)
    # sums are not deterministic on a GPU; the constant makes members of weight zero equally likely
    mass = (weights[order].double() + 1e-12).cpu().cumsum(0).to(weights.device)
    upper = mass[(ends - 1).clamp(min=0)]
    first = (ends - sizes)[draws]
    lower = torch.where(first > 0, mass[(first - 1).clamp(min=0)], 0.0)
    uniform = torch.rand(draws.numel(), dtype=torch.float64, device=weights.device)
    index = torch.searchsorted(mass, lower + uniform * (upper[draws] - lower), right=True)
    return order[torch.minimum(torch.maximum(index, first), ends[draws] - 1)]
