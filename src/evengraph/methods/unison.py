"""Unison: committees on a structural and an ego view of the graph, joined by a vote."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast, final

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.core.untrusted import MAX_STEPS
from evengraph.methods.bases.method import Committee, Method, model_input
from evengraph.methods.bases.network import above_mean, pseudo_label_loss
from evengraph.metrics.multiclass import rare_class
from evengraph.nn.members import Diffusion, Members, Views
from evengraph.ops.losses import balanced_softmax
from evengraph.training.loop import deferred_interrupts
from evengraph.training.ranks import MemoryRows, Part, RowSupply, Shard, draw, validation_scores

VIEWS = ("structural", "ego")
SPREAD = 4.0  # weight decay of the strictest and of the freest member, relative to the middle
LABELLED = 2  # labelled nodes per epoch at most, in batches
VALIDATE_EVERY = 5  # epochs
MANY = 30  # labelled nodes of every class from which on a small committee is as good


class Size(NamedTuple):
    """Networks per view, their width, and the principal components that a view keeps."""

    members: int
    hidden: int
    components: int


FEW_LABELS, MANY_LABELS = Size(5, 256, 256), Size(3, 64, 128)


@final
@dataclass(kw_only=True)
class Unison(Method):
    """Self-train committees of small networks on two views of the graph, and average them.

    Features are propagated once, before training, and small networks are trained on the rows. The
    structural view is personalised PageRank of the features, which spreads a rare label far. The
    ego view keeps a node's features apart from the means of its neighbours, which heterophilous
    graphs need. On each view several networks are trained by Double Balancing, each with its own
    initial weights, weight decay and pseudo-labels, so that their errors differ. Probabilities are
    averaged: a network whose validation score is one standard error behind the best gets 1/e of its
    weight, so with few validation nodes the vote is nearly even.

    Args:
        views: Those to use, of `structural,ego`.
        members: Networks per view; 0 follows the labels: 5, and 3 from 30 labelled nodes of
            every class on.
        hidden: Width of a network; 0 follows the labels: 256, and 64.
        dropout: Dropout rate after its first layer.
        components: Principal components that a view keeps, a third of them for each part of ego; 0
            follows the labels: 256, and 128.
        steps: Propagation steps of the structural view.
        teleport: Share of a node's own features that each step adds again.
        batch: Unlabelled nodes per epoch, at random, with at most twice as many labelled ones.
        vote: `validation` weights members by their validation scores, `even` does not.
        stop_early: Keep each network's weights of its best epoch on validation; otherwise their
            mean over the second half of all epochs, and nothing is validated.

    Cost:
        O(batch d M h) per epoch for d components and M networks, however large the graph, and
        O(V d M h) in every fifth for V validation nodes; once O(E d) per propagation step.

    Departs:
        `weight_decay` is divided by the number of labelled nodes, since many labels need less; the
        first and the last member of a view have a quarter and four times of it.

    Reference:
        Our own. Double Balancing and decoupled propagation are IceBerg's (Li et al., WWW 2025).
    """

    _weighted_edges = True
    separate_relations = True
    search_space = {"weight_decay": (2.0, 0.5, 8.0), "learning_rate": (0.05, 0.02)}
    role = "highlight"
    suits_heterophily = True
    portfolio = tuple(  # nothing is validated, so that held-out nodes judge it fairly
        {
            **{"views": view, "members": 2, "hidden": 64, "components": 128},
            **{"max_epochs": 100, "stop_early": False},
        }
        for view in VIEWS
    )
    limits = {
        **dict.fromkeys(("members", "hidden", "components"), 0),
        "batch": 1,
        **dict.fromkeys(("dropout", "teleport"), "fraction"),
        "steps": (0, MAX_STEPS),
    }

    learning_rate: float = 0.05
    weight_decay: float = 2.0
    max_epochs: int = 250
    patience: int = 125
    views: str = ",".join(VIEWS)
    members: int = 0
    hidden: int = 0
    dropout: float = 0.5
    components: int = 0
    steps: int = 20
    teleport: float = 0.1
    batch: int = 256
    vote: Literal["validation", "even"] = "validation"
    stop_early: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        names = self.view_names
        if not names or len(set(names)) < len(names) or not set(names) <= set(VIEWS):
            raise ValueError(f"views must be some of {','.join(VIEWS)}, got {self.views!r}.")

    @classmethod
    def graph_defaults(cls, graph: Data) -> dict[str, Any]:
        """Nothing: one setting is used on every graph."""
        return {}

    @classmethod
    def current_params(cls, params: Mapping[str, Any]) -> dict[str, Any]:
        """Without that of a view that is gone."""
        return {name: value for name, value in params.items() if name != "neighbours"}

    @property
    def view_names(self) -> list[str]:
        return [name.strip() for name in self.views.split(",") if name.strip()]

    @property
    def full_title(self) -> str:
        """The title, with the view if it is one."""
        names = self.view_names
        return self.title if len(names) > 1 else f"{self.title} ({names[0]} view)"

    @property
    def size(self) -> Size:
        """The size of the committee: as given, else by the labels of the rarest class."""
        usual = FEW_LABELS
        if hasattr(self, "labelled_"):  # before a fit, the larger size
            counts = self.labelled_.labels.bincount(minlength=self.num_classes_)
            usual = FEW_LABELS if int(counts.min()) < MANY else MANY_LABELS
        given = self.members, self.hidden, self.components
        return Size(*(own or other for own, other in zip(given, usual, strict=True)))

    def _fit(self, task: Task) -> None:
        self.net_ = self._new_network()
        self.train_members(MemoryRows(task, self.net_.views(task.graph, fit=True)))

    def train_members(self, supply: RowSupply) -> None:
        """Train the members of `net_` on rows of the views, (V, n, width)."""
        net = self.net_
        net.members.to(supply.device)
        training = _Training(self, net, supply)
        patience = None if self.stop_early else self.max_epochs
        history = self._train(net.members, training, patience=patience)
        votes, score = training.finish()
        net.votes = votes.to(self.device_)
        net.members.to(self.device_)
        # Epochs have the mean of the members' best scores, which never falls.
        history.best_score = float(score)
        history.best_epoch = history.first_best_epoch if self.stop_early else history.epochs

    def weight_decays(self, labelled: int) -> Tensor:
        """The weight decay of each member, for a number of labelled nodes, (M,)."""
        members = self.size.members
        exponents = torch.linspace(-1, 1, members) if members > 1 else torch.zeros(1)
        decays = self.weight_decay / labelled * SPREAD**exponents
        return decays.repeat(len(self.view_names))

    def _build_network(self) -> nn.Module:
        size, diffusion = self.size, Diffusion(self.steps, self.teleport)
        widths = self.num_features_, size.components
        views = Views(self.view_names, *widths, diffusion, self.num_relations_)
        shape = views.width, size.hidden, self.num_classes_, self.dropout
        return _Network(views, Members(len(self.view_names), size.members, *shape))

    def _logits(self, graph: Data) -> Tensor:
        return vote_logits(*self._committee(graph))

    @torch.no_grad()
    def predict_members(self, graph: Data) -> Committee:
        """Probabilities of every network, and the weight of its vote."""
        return self._committee(model_input(self, graph)).to(graph.x.device)

    def _committee(self, graph: Data) -> Committee:
        return Committee(self.net_(graph).softmax(2), self.net_.votes)


class _Network(nn.Module):
    """The views, the members on them, and the weight of every member's vote."""

    votes: Tensor

    def __init__(self, views: Views, members: Members) -> None:
        super().__init__()
        self.views, self.members = views, members
        total = members.second.shape[0]
        self.register_buffer("votes", torch.full((total,), 1 / total))

    def forward(self, graph: Data) -> Tensor:
        return cast(Tensor, self.members(self.views(graph)))


class _Training:
    """Double Balancing of all members at once; each keeps the weights of its own best epoch.

    Of several processes each has some of the rows, and gets a share of the loss.
    """

    def __init__(self, method: Unison, net: _Network, supply: RowSupply) -> None:
        task, device = supply.task, supply.device
        self.supply, self.ranks, self.batch, self.epochs = supply, supply.ranks, method.batch, 0
        self.members, self.best_members = net.members, deepcopy(net.members)
        self.counts, self.val_counts = task.class_counts.to(device), task.val_counts
        self.decay = method.weight_decays(len(task.train_nodes)).to(device)
        self.rare = rare_class(task)
        self.best_scores = torch.full_like(net.votes, -1.0, device=device)
        self.weighted = method.vote == "validation" and method.stop_early
        self.averaged, self.first = 0, method.max_epochs // 2 + 1  # epochs that weights are mean of
        self.stop_early = method.stop_early

    def __call__(self) -> tuple[Tensor, Tensor]:
        """The loss of all members, and the mean of their best validation scores so far."""
        if not self.stop_early:
            self._average()
        elif self.epochs % VALIDATE_EVERY == 0:
            self._validate()
        self.epochs += 1
        shard = self.supply.advance()
        labelled = draw(shard.labelled, LABELLED * self.batch)
        part = self.ranks.part(torch.cat([labelled, draw(shard.others, self.batch)]))
        return self._loss(shard, part, len(labelled)), self.best_scores.mean()

    def _loss(self, shard: Shard, part: Part, labelled: int) -> Tensor:
        """Losses of labels, which come first, and of members' pseudo-labels, and the penalty."""
        net, ranks, size = self.members, self.ranks, part.before(labelled)
        hidden = net.hidden(shard.rows[:, part.rows])
        with torch.no_grad():
            confidence, predicted = net.classify(hidden[:, size:]).softmax(2).max(2)
        logits = net.classify(hidden, dropout=True, share=part.share)
        labels = shard.labels[part.nodes[:size]].expand(len(logits), -1)
        on_labels = balanced_softmax(logits[:, :size], labels, self.counts, reduction="none")
        selected = above_mean(confidence, ranks, part.total - labelled)
        on_others = pseudo_label_loss(logits[:, size:], predicted, selected, ranks)
        penalty = net.penalty(self.decay) / ranks.size
        return ranks.share_of_mean(on_labels, labelled).sum() + on_others.sum() + penalty

    @torch.no_grad()
    def _average(self) -> None:
        """Take the weights of this epoch into the mean, which begins after half of all epochs."""
        self.averaged = 1 if self.epochs <= self.first else self.averaged + 1
        with deferred_interrupts():
            for mean, new in zip(
                self.best_members.parameters(), self.members.parameters(), strict=True
            ):
                mean.lerp_(new, 1 / self.averaged)

    @torch.no_grad()
    def _validate(self) -> None:
        """Score every member, and keep the weights of those that are as good as ever or better."""
        scores = validation_scores(*self._validation(), self.rare, self.ranks)
        better = scores >= self.best_scores
        with deferred_interrupts():  # weights and scores belong together
            self.best_scores = torch.where(better, scores, self.best_scores)
            self.best_members.take(self.members, better)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint stores beside the weights."""
        best, rows = self.best_members.state_dict(), self.supply.state_dict()
        counts = {"epochs": self.epochs, "averaged": self.averaged}
        return {**counts, "scores": self.best_scores, "members": best, "rows": rows}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.epochs, self.best_scores = state["epochs"], state["scores"].to(self.supply.device)
        self.averaged = state.get("averaged", 0)
        self.best_members.load_state_dict(state["members"])
        self.supply.load_state_dict(state["rows"])

    @torch.no_grad()
    def finish(self) -> tuple[Tensor, Tensor]:
        """Restore every member's best weights; return the weights of the votes, and their score."""
        self.members.load_state_dict(self.best_members.state_dict())
        counts = torch.tensor(self.val_counts).clamp(min=1).to(self.best_scores)
        scores = self.best_scores if self.weighted else torch.zeros_like(self.best_scores)
        votes = vote_weights(scores, counts)
        probabilities, labels = self._validation()
        mean = mean_vote(probabilities, votes).unsqueeze(0)
        return votes, validation_scores(mean, labels, self.rare, self.ranks)[0]

    def _validation(self) -> tuple[Tensor, Tensor]:
        """What every member predicts for the validation nodes, (M, V, C), and their labels."""
        parts = [(self.members(x).softmax(2), labels) for x, labels in self.supply.validation()]
        probabilities, labels = zip(*parts, strict=True)
        return torch.cat(probabilities, dim=1), torch.cat(labels)


def mean_vote(probabilities: Tensor, votes: Tensor) -> Tensor:
    """The weighted mean of the members' probabilities, (N, C)."""
    return (votes[:, None, None] * probabilities).sum(0)


def vote_logits(probabilities: Tensor, votes: Tensor) -> Tensor:
    """The logarithm of `mean_vote`."""
    mean = mean_vote(probabilities, votes)
    return mean.clamp(min=torch.finfo(mean.dtype).tiny).log()


def vote_weights(scores: Tensor, counts: Tensor) -> Tensor:
    """Weights of votes: one standard error behind the best divides the weight by e, (M,).

    The error is that of a mean recall over classes, for a model as good as the best; `counts` are
    the validation nodes of each class.
    """
    level = scores.max().clamp(0.05, 0.95)
    error = (level * (1 - level) * (1 / counts).sum()).sqrt() / len(counts)
    return (scores / error).softmax(0)
