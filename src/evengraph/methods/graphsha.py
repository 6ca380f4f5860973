"""GraphSHA: hard new nodes near the decision boundary of rare classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import final

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from evengraph.core.task import Task
from evengraph.methods.bases.method import check_limit
from evengraph.methods.bases.network import NetworkKind, NetworkMethod
from evengraph.metrics.multiclass import validation_score
from evengraph.nn.networks import Backbone
from evengraph.ops.sparse import (
    from_scipy,
    pagerank_rows,
    propagation_matrix,
    weighted_adjacency,
    with_self_loops,
)
from evengraph.ops.synthesis import (
    AttachedGraph,
    Pairs,
    StackedFeatures,
    draw_members,
    draw_pairs,
    sample_neighbours,
)


@final
@dataclass(kw_only=True)
class GraphSHA(NetworkMethod):
    """Enlarge rare classes with hard examples: features near another class, own neighbours.

    In every epoch a new node of a rare class mixes an anchor, a labelled node of the class with a
    low predicted probability, and a partner: a labelled node of the class that the anchor is
    confused with, itself similar to the anchor's class. Its features are close to the partner's,
    which moves the decision boundary of the rare class outwards. Its neighbours are drawn from the
    anchor's personalised PageRank, not from the partner's neighbours, which would then be
    misclassified. Edges lead from the neighbours to the new node only.

    Args:
        warmup: Last epoch, from 0, that mixes random pairs instead, up to the largest class.
        temperature: Softmax temperature of the predictions that select anchors and partners.
        beta: The anchor's share follows Beta(1, beta), with a mean of 1 / (1 + beta).
        fill: Fill classes up to the largest instead of to the mean size.
        teleport: Teleport probability of PageRank.
        reach: Entries of a PageRank vector that are used.

    Cost:
        O(E h + nnz(X) h) per epoch, and O(M (F + reach)) for the M new nodes; once O(E n) per
        PageRank step for the n labelled nodes of rare classes; no N x N matrix is inverted.

    Departs:
        Network (a linear layer after two convolutions), training and selection are those of the
        comparison. The largest entries of the anchor's own PageRank vector are used; the public
        code takes those of each column. No class is a special case, however small.

    Reference:
        Li, Wang, Xiong and Lai, "GraphSHA: Synthesizing Harder Samples for Class-Imbalanced Node
        Classification", KDD 2023.
    """

    search_space = {"fill": (False, True)}
    limits = {
        "warmup": 0,
        "reach": 1,
        "teleport": "fraction",
        "temperature": "positive",
        "beta": "positive",
    }

    backbone: Backbone = "gcn"
    network: NetworkKind = "comparison"
    warmup: int = 5
    temperature: float = 2.0
    beta: float = 100.0
    fill: bool = False
    teleport: float = 0.05
    reach: int = 128

    def __post_init__(self) -> None:
        super().__post_init__()
        check_limit("teleport", self.teleport, "positive")

    def _fit(self, task: Task) -> None:
        graph, nodes, device = task.graph, task.train_nodes, task.graph.x.device
        labels, x, num_nodes = graph.y[nodes], graph.x.float()[nodes], graph.num_nodes
        inputs, make = self._inputs(graph), self._maker(task)
        joined = with_self_loops(weighted_adjacency(graph), device)
        sums = (joined @ torch.ones(num_nodes, 1, device=device)).squeeze(1)
        how = self._normalisation
        attach = partial(AttachedGraph, joined, sums, both_ways=False, loop=1.0, how=how)
        self.net_ = net = self._new_network()
        last: Tensor | None = None  # logits of the labelled nodes in the last epoch

        def epoch() -> tuple[Tensor, Tensor]:
            nonlocal last
            pairs, new, ends = make(last)
            share = pairs.shares.unsqueeze(1)
            # features: delta x_anchor + (1 - delta) x_partner, delta ~ Beta(1, beta)
            mixed = share * x[pairs.sources] + (1 - share) * x[pairs.targets]
            attached = attach(ends, new, torch.ones_like(ends).to(x), mixed.shape[0])
            first = net.encoder(StackedFeatures(inputs.x, mixed), attached)
            with torch.no_grad():  # no edge leads from a new node: these are the graph's logits
                clean = net.classify(first, attached)[:num_nodes]
            known, added = net.classify(first, attached, dropout=True).tensor_split([num_nodes])
            last = known[nodes].detach()
            loss = cross_entropy(
                torch.cat([known[nodes], added]), torch.cat([labels, pairs.labels])
            )
            return loss, validation_score(clean, task)

        self._train(net, epoch)

    def _maker(self, task: Task) -> Callable[[Tensor | None], tuple[Pairs, Tensor, Tensor]]:
        """Makes the new nodes of an epoch: the pairs they mix, and the two ends of each edge."""
        graph, nodes, device = task.graph, task.train_nodes, task.graph.x.device
        labels, counts = graph.y[nodes], task.class_counts
        matrix = weighted_adjacency(graph)
        neighbours = from_scipy(matrix, device, torch.float32)
        degrees = neighbours.crow_indices().diff().long()
        wanted = lacking(counts, fill=self.fill)
        anchors = wanted[labels] > 0
        row = anchors.cumsum(0) - 1  # of an anchor in `walks`
        propagation, reach = propagation_matrix(matrix, device), self.reach
        # teleport (I - (1 - teleport) P)^-1, the rows of the anchors
        walks = pagerank_rows(propagation, nodes[anchors], teleport=self.teleport, keep=reach)
        numbers = count()

        def make(logits: Tensor | None) -> tuple[Pairs, Tensor, Tensor]:
            if next(numbers) <= self.warmup or logits is None:
                pairs = draw_pairs(labels, counts)
                weights, rows = neighbours, nodes[pairs.sources]
                limits = degrees[rows]
            else:
                probabilities = (logits / self.temperature).softmax(1)
                pairs = hard_pairs(probabilities, labels, wanted, self.beta)
                weights, rows = walks, row[pairs.sources]
                # the degree of a random node, but at most that of the anchor
                sampled = torch.randint(degrees.numel(), rows.shape, device=device)
                limits = torch.minimum(degrees[sampled], degrees[nodes[pairs.sources]])
            alone = torch.ones_like(pairs.shares)
            return pairs, *sample_neighbours(weights, rows, rows, alone, limits)

        return make


def lacking(class_counts: Tensor, *, fill: bool) -> Tensor:
    """New nodes that bring each class to the mean size, or to that of the largest, (C,)."""
    goal = class_counts.max().double() if fill else class_counts.double().mean()
    return (goal - class_counts).clamp(min=0).long()


def hard_pairs(probabilities: Tensor, labels: Tensor, wanted: Tensor, beta: float) -> Pairs:
    """Anchors (the sources) that are confused with another class, and partners from that class.

    An anchor i of class c is drawn in proportion to 1 - p_i[c], the partner's class k in
    proportion to p_i[k], and the partner j in proportion to p_j[c]. Probabilities are those of
    the labelled nodes, (n, C); `wanted` is the number of new nodes per class.
    """
    classes = torch.repeat_interleave(wanted)  # (M,)
    count, num_classes, device = classes.numel(), wanted.numel(), labels.device
    missed = 1 - probabilities.gather(1, labels.unsqueeze(1)).squeeze(1)
    anchors = draw_members(missed, labels, classes)
    # multinomial needs one positive entry
    taken_for = (probabilities[anchors] + 1e-12).scatter(1, classes.unsqueeze(1), 0.0)
    towards = torch.multinomial(taken_for, 1).squeeze(1) if count else classes
    # one group of candidates per pair of classes: the partner's, and the one it resembles
    groups = labels.unsqueeze(1) * num_classes + torch.arange(num_classes, device=device)
    drawn = draw_members(probabilities.flatten(), groups.flatten(), towards * num_classes + classes)
    shares = 1 - torch.rand(count, device=device) ** (1 / beta)
    return Pairs(anchors, drawn // num_classes, classes, shares)
