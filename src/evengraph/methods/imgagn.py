"""ImGAGN: one generator per rare class, trained against a critic, makes new nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from evengraph.core.task import Task
from evengraph.methods.bases.network import NetworkMethod
from evengraph.metrics.multiclass import validation_score
from evengraph.nn.networks import CONVS, Backbone, GraphClassifier, GraphNetwork
from evengraph.ops.sparse import Sparse, weighted_adjacency, with_self_loops
from evengraph.ops.synthesis import AttachedGraph, StackedFeatures, rare_classes

WIDTH = 200  # hidden width of the generators
REAL, FAKE = 0, 1


@final
@dataclass(kw_only=True)
class ImGAGN(NetworkMethod):
    """Fill rare classes up with generated nodes that are hard to tell from real ones.

    Each rare class has a generator. From noise it draws weights over the labelled nodes of the
    class: a new node has their weighted mean as features, and edges to those with at least the
    uniform weight. The network classifies real and new nodes, and a second head, the critic, tells
    them apart. Every few epochs the generators take a step towards nodes that the critic considers
    real, that are classified correctly and that lie near the real ones.

    Args:
        ratio: Size of a rare class, including new nodes, over that of the largest.
        minority: Number of rare classes; 0: those nearer in ratio to the smallest than the largest.
        generate_every: Epochs of the network per step of the generators.
        noise: Size of the noise vector of a new node.

    Cost:
        O(E h + nnz(X) h) per epoch, about three times GCN; O(M n F) per step of the generators for
        M new nodes of classes with n labelled ones.

    Departs:
        The original has two classes; here every rare class has a generator. Gradients of critic
        and classifier reach the generators; the public code detaches them, so that only the
        distance trains. Weights are over labelled nodes only, never over test nodes. The only
        labelled node of a class is linked to its copies. The distance between classes, a constant
        of the network's loss, is left out. Features are used as they are; the public code scales
        each row to sum to one. Validation uses the given nodes and the graph without
        new nodes; network and selection are those of the comparison.

    Reference:
        Qu, Zhu, Zheng, Shi and Yin, "ImGAGN: Imbalanced Network Embedding via Generative
        Adversarial Graph Networks", KDD 2021.
    """

    limits = {"ratio": 0, "minority": 0, "generate_every": 1, "noise": 1}

    backbone: Backbone = "gcn"
    ratio: float = 1.0
    minority: int = 0
    generate_every: int = 100
    noise: int = 100

    def _fit(self, task: Task) -> None:
        graph, nodes, device = task.graph, task.train_nodes, task.graph.x.device
        labels, inputs = graph.y[nodes], self._inputs(graph)
        joined = with_self_loops(weighted_adjacency(graph), device)
        degrees = (joined @ torch.ones(graph.num_nodes, 1, device=device)).squeeze(1)
        attach = partial(AttachedGraph, joined, degrees, loop=1.0, how=self._normalisation)
        self.net_ = net = self._new_network()
        critic = GraphClassifier(self.hidden, self.hidden, 2, self.dropout, CONVS[self.backbone])
        judges = _Judges(net, critic.to(device), attach, inputs.x, nodes)
        generators = self._generators(graph.x.float(), nodes, labels, task.class_counts)
        parameters = list(generators.to(device).parameters())
        optimizer = torch.optim.Adam(parameters, lr=self.learning_rate) if parameters else None
        numbers, made = count(), list[Generated]()

        def epoch() -> tuple[Tensor, Tensor]:
            if next(numbers) % self.generate_every == 0:
                if optimizer is not None:
                    improve(generators, judges, optimizer)
                with torch.no_grad():
                    made[:] = [generators()]
            (new,) = made
            classes, kinds = judges(new, dropout=True)
            loss = cross_entropy(classes, torch.cat([labels, new.labels]))
            truth = torch.cat([torch.full_like(labels, REAL), torch.full_like(new.labels, FAKE)])
            with torch.no_grad():
                score = validation_score(net(*inputs), task)
            return loss + cross_entropy(kinds, truth), score

        self._train(judges, epoch)

    def _missing(self, class_counts: Tensor) -> Tensor:
        """New nodes of each class, (C,); at most 0 where it needs none."""
        rare = rare_classes(class_counts, self.minority)
        return (int(self.ratio * int(class_counts.max())) - class_counts) * rare

    def _generators(
        self, x: Tensor, nodes: Tensor, labels: Tensor, class_counts: Tensor
    ) -> _Generators:
        """One per rare class that needs new nodes."""
        missing, noise = self._missing(class_counts), self.noise
        rare = (missing > 0).nonzero().flatten().tolist()
        each = [Generator(noise, nodes[labels == one], int(missing[one]), one) for one in rare]
        return _Generators(x, each)


class Generated(NamedTuple):
    """New nodes."""

    x: Tensor  # (M, F)
    labels: Tensor  # (M,)
    starts: Tensor  # the new node of each edge, (K,)
    ends: Tensor  # the known one, (K,)
    distance: Tensor  # mean distance to the real nodes of the class, ()


class Generator(nn.Module):
    """Maps noise to weights over `members`, the labelled nodes of a class, for `size` new nodes."""

    def __init__(self, noise: int, members: Tensor, size: int, label: int) -> None:
        super().__init__()
        self.noise, self.members, self.size, self.label = noise, members, size, label
        layers = [nn.Linear(noise, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.Linear(WIDTH, members.numel()), nn.Tanh())

    def forward(self) -> Tensor:
        """Weights of new nodes, (size, members), rows sum to one."""
        noise = torch.randn(self.size, self.noise, device=self.members.device)
        scores: Tensor = (self.layers(noise) + 1) / 2
        return scores.softmax(1)


def blend(x: Tensor, members: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Features, (M, F), and the new and the known end of each edge, from weights, (M, members).

    Edges lead to members with at least the uniform weight.
    """
    starts, columns = (weights >= 1 / members.numel()).nonzero(as_tuple=True)
    return weights @ x[members], starts, members[columns]


class _Generators(nn.Module):
    """The generators of all rare classes; there may be none."""

    def __init__(self, x: Tensor, generators: list[Generator]) -> None:
        super().__init__()
        self.x, self.each = x, nn.ModuleList(generators)

    def forward(self) -> Generated:
        nothing = torch.empty(0, dtype=torch.long, device=self.x.device)
        made = [Generated(self.x[:0], nothing, nothing, nothing, self.x.new_zeros(()))]
        before = 0
        for generator in self.each:
            assert isinstance(generator, Generator)
            new, starts, ends = blend(self.x, generator.members, generator())
            distance = torch.cdist(self.x[generator.members], new).mean() / len(self.each)
            labels = torch.full((generator.size,), generator.label, device=self.x.device)
            made.append(Generated(new, labels, starts + before, ends, distance))
            before += generator.size
        *columns, distances = (list(column) for column in zip(*made, strict=True))
        x, labels, starts, ends = map(torch.cat, columns)
        return Generated(x, labels, starts, ends, torch.stack(distances).sum())


class _Judges(nn.Module):
    """The network and the critic, which share the encoder."""

    def __init__(
        self,
        net: GraphNetwork,
        critic: GraphClassifier,
        attach: Callable[..., AttachedGraph],
        x: Tensor | Sparse,
        nodes: Tensor,
    ) -> None:
        super().__init__()
        self.net, self.critic, self.attach, self.x, self.nodes = net, critic, attach, x, nodes

    def forward(self, new: Generated, *, dropout: bool) -> tuple[Tensor, Tensor]:
        """Class logits and real-or-fake logits of the labelled nodes, then of the new ones."""
        size, num_known = new.labels.numel(), self.x.shape[0]
        attached = self.attach(new.ends, new.starts, torch.ones_like(new.ends).to(new.x), size)
        first = self.net.encoder(StackedFeatures(self.x, new.x), attached)
        embeddings = self.net.embed(first, dropout=dropout)
        rows = torch.cat([self.nodes, num_known + torch.arange(size, device=self.nodes.device)])
        classes = self.net.classifier(embeddings, attached, dropout=dropout)[rows]
        return classes, self.critic(embeddings, attached, dropout=dropout)[rows]


def improve(generators: _Generators, judges: _Judges, optimizer: torch.optim.Optimizer) -> None:
    """Train the generators for one step, towards nodes that pass for real ones of their class."""
    new = generators()
    classes, kinds = (each[-new.labels.numel() :] for each in judges(new, dropout=False))
    truth = torch.full_like(new.labels, REAL)
    loss = cross_entropy(classes, new.labels) + cross_entropy(kinds, truth) + new.distance
    parameters = list(generators.parameters())
    # backward() would also leave gradients in the network
    for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
        parameter.grad = gradient
    optimizer.step()
