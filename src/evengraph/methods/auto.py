"""Auto: fit a portfolio of methods within a time limit and keep what validation prefers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast, final

import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.rng import generator
from evengraph.core.task import Task, folds
from evengraph.methods.bases.method import Method
from evengraph.methods.bases.search import (
    Committee,
    Search,
    has_edges,
    method_table,
    portfolio,
    restored,
    weighted_mean,
)
from evengraph.metrics.registry import comparable_metrics

LIMITS = ("max_epochs", "patience")
AUTO = "auto"  # the metric that fits the task
FEW = 200  # labels of a class below which folds are worth their time


@final
@dataclass(kw_only=True)
class Auto(Method):
    """Fit several models, select on validation, and average those that are close to the best.

    The candidates are those that methods declare (`Method.portfolio`): methods for imbalanced
    classes, trees, label propagation, and models that ignore the graph, each with its defaults for
    the graph. A candidate that is one standard error behind the best on validation gets 1/e of its
    weight in the average, and beyond two it is rejected; Unison counts as two, one per view. If
    models that ignore the graph are ahead, all others are rejected. `summary_` says in at most
    three lines what was selected, what was rejected, and whether the graph helps.

    With few labels, one validation set would select the luckiest candidate. With folds, each fold
    holds out a different part of the labels and trains on the others, validation nodes included.
    Each candidate is fitted once per fold, and the average contains its models of all folds. A
    candidate that is clearly behind gets no further folds.

    Args:
        time_limit: Seconds for all candidates. A candidate may take half of what is left, one that
            ignores the graph a tenth; it then ends with its best weights so far. Checked after
            each epoch: what a large graph needs before the first one is not cut short. If the
            limit cuts nothing short, the seed determines the result.
        metric: Metric to select by. `auto` is the average precision of the rarer of two classes if
            it has less than a quarter of the labels, otherwise balanced accuracy.
        candidates: Names of methods, such as `boosting,logistic`; by default all with a portfolio.
        folds: Maximum number of folds, including the split itself. There are fewer if time runs out
            or if held-out parts would be smaller than validation, and one if every class has at
            least 200 labels. With 1, no model is trained on validation labels.

    Cost:
        O(sum of the candidates' costs), up to the time limit.

    Departs:
        Published ensemble selection adds models one by one as long as the score rises, without
        regard to noise. `max_epochs` and `patience` are upper limits for every candidate;
        `learning_rate` and `weight_decay` have no effect.

    Reference:
        Caruana, Niculescu-Mizil, Crew and Ksikes, "Ensemble Selection from Libraries of Models",
        ICML 2004.
    """

    weighted_edges = True
    separate_relations = True
    selects_itself = True
    limits = {"time_limit": "positive", "folds": 1}
    own_split_params = {"folds": 5}

    patience: int = 1_000
    time_limit: float = 120.0
    metric: str = AUTO
    candidates: str = ""
    folds: int = 1

    held_out_ = cast("tuple[Tensor, Tensor, Tensor] | None", None)
    """Held-out nodes, what models that did not learn from them predict, and the mask of all labels
    of the task; None without folds. Not saved."""

    def __post_init__(self) -> None:
        super().__post_init__()
        metrics = [name for name, metric in comparable_metrics().items() if not metric.calibration]
        if self.metric not in (AUTO, *metrics):
            allowed = ", ".join((AUTO, *metrics))
            raise ValueError(f"metric must be one of {allowed}, got {self.metric!r}.")
        known = [name for name in method_table() if name != type(self).__name__.lower()]
        for name in self._names:
            if name not in known:
                raise ValueError(f"candidates must be among {', '.join(known)}, got {name!r}.")

    @classmethod
    def graph_defaults(cls, graph: Data) -> dict[str, Any]:
        """Nothing: each candidate has its own."""
        return {}

    @property
    def _names(self) -> list[str]:
        return [name.strip() for name in self.candidates.split(",") if name.strip()]

    def _fit(self, task: Task) -> None:
        seed = int(torch.randint(2**31, ()))
        search = self._search(task, seed)
        methods = [self._limited(one) for one in portfolio(task.graph, names=self._names).values()]
        if not has_edges(task.graph):
            methods = [one for one in methods if not one.uses_graph] or methods
        search.run(methods, seed, self._report_epoch)
        self._take(search, search.weights(seed))
        self.summary_ = search.summary(search.weights(seed), seed)

    def _search(self, task: Task, seed: int, *, race: bool = True) -> Search:
        counts = task.class_counts + torch.tensor(task.val_counts).to(task.class_counts)
        few = self.folds > 1 and int(counts[counts > 0].min()) < FEW
        tasks = folds(task, self.folds, generator(seed)) if few else [task]
        metric = None if self.metric == AUTO else self.metric
        return Search(tasks, self.time_limit, metric, race=race)

    def _take(self, search: Search, weights: Mapping[int, float]) -> None:
        """Adopt the selected candidates, those of all folds with equal weights."""
        order = sorted(weights, key=lambda index: -weights[index])
        trials = [search.fitted[index] for index in order]
        self.weights_ = [
            weights[index] / search.done for index in order for _ in range(search.done)
        ]
        self.members_ = [method for trial in trials for method in trial.methods]
        self.history_ = search.history(trials[0])
        self.held_out_ = None
        if search.done > 1:
            nodes = torch.cat([task.val_nodes for task in search.tasks[: search.done]])
            parts = [trial.probabilities for trial in trials]
            mean = weighted_mean([weights[index] for index in order], parts)
            self.held_out_ = nodes, mean, search.task.train | search.task.val

    def _limited(self, method: Method) -> Method:
        """A candidate with no more epochs than this method allows."""
        limits = {name: min(getattr(method, name), getattr(self, name)) for name in LIMITS}
        return replace(method, **limits)

    def refitted(self, task: Task, *, seed: int) -> Method:
        """The selected methods, fitted again within the time limit; their weights stay."""
        other = Auto(**self.get_params())
        other.reset(task)
        search = other._search(task, seed, race=False)
        copies: list[Method] = []
        weights: list[float] = []
        for member, weight in zip(self.members_, self.weights_, strict=True):
            copy = type(member)(**member.get_params())
            if copy in copies:  # of another fold
                weights[copies.index(copy)] += weight
            else:
                copies.append(copy)
                weights.append(weight)
        search.run(copies, seed, lambda history: None)
        if len(search.fitted) < len(copies):
            left = [trial.method for trial in search.failed] + search.not_reached
            raise ValueError(f"{left[0].full_title} could not be fitted again in time.")
        other._take(search, dict(enumerate(weights)))
        other.summary_, other.fitted_ = list(self.summary_), True
        return other

    def predict_task(self, task: Task) -> Tensor:
        """Class probabilities of every node; of held-out nodes by models that did not see them."""
        probabilities = super().predict_task(task)
        if self._knows(task):
            nodes, rows, _ = cast("tuple[Tensor, ...]", self.held_out_)
            probabilities[nodes] = rows.to(probabilities)
        return probabilities

    def held_out(self, task: Task) -> Tensor:
        """The nodes that were held out in a fold; without folds the validation nodes."""
        mask = task.val.clone()
        if self._knows(task):
            mask[cast("tuple[Tensor, ...]", self.held_out_)[0]] = True
        return mask

    def _knows(self, task: Task) -> bool:
        """Whether this is the task of the folds."""
        if self.held_out_ is None:
            return False
        labels = self.held_out_[2]
        return labels.shape == task.train.shape and torch.equal(labels, task.train | task.val)

    def _logits(self, graph: Data) -> Tensor:
        parts = [member.predict_proba(graph) for member in self.members_]
        mean = weighted_mean(self.weights_, parts)
        return mean.clamp(min=torch.finfo(mean.dtype).tiny).log()

    def predict_members(self, graph: Data) -> Committee | None:
        """The members of all selected methods; None if there is one, and it is no committee."""
        committees = [member.predict_members(graph) for member in self.members_]
        if len(committees) == 1:
            return committees[0]
        return Committee.joined(
            [
                Committee.even(member.predict_proba(graph).unsqueeze(0)) if part is None else part
                for part, member in zip(committees, self.members_, strict=True)
            ],
            self.weights_,
        )

    # Saving

    def _details(self) -> dict[str, Any]:
        members = [member.packed()[0] for member in self.members_]
        return {"weights": self.weights_, "summary": list(self.summary_), "members": members}

    def _state(self) -> dict[str, Tensor]:
        return {
            f"members.{index}.{name}": value
            for index, member in enumerate(self.members_)
            for name, value in member.packed()[1].items()
        }

    def _load_state(self, state: Mapping[str, Tensor]) -> None:
        self.weights_ = list(self.details_["weights"])
        self.summary_ = list(self.details_["summary"])
        self.members_ = []
        for index, about in enumerate(self.details_["members"]):
            prefix = f"members.{index}."
            part = {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
            self.members_.append(restored(about, part, self.device_))
