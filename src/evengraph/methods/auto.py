"""Auto: fit a portfolio of methods within a time limit and keep what validation prefers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, final

import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.methods.bases.committee import Committee
from evengraph.methods.bases.method import Method
from evengraph.methods.bases.portfolio import method_table, portfolio, restored
from evengraph.methods.bases.search import Search, has_edges, weighted_mean
from evengraph.metrics import comparable_metrics
from evengraph.nn.attribution import vote_shares, weighted_sum
from evengraph.nn.tracing import Contributions

LIMITS = ("max_epochs", "patience")
AUTO = "auto"  # the metric that fits the task


@final
@dataclass(kw_only=True)
class Auto(Method):
    """Fit a portfolio of methods, and average those that validation cannot tell from the best.

    The candidates are those that methods declare (`Method.portfolio`): methods for imbalanced
    classes, trees, label propagation, and models that ignore the graph, each with its defaults for
    the graph. A candidate that is behind the best on validation by one standard error counts 1/e
    as much as the best, beyond two it is rejected; Unison counts as three, one per view. If models
    that ignore the graph are ahead, all others are rejected. `summary_` says in at most three lines
    what was selected, what was rejected, and whether the graph helps.

    Args:
        time_limit: Seconds for all candidates. A candidate may take half of what is left, one that
            ignores the graph a tenth; it then ends with its best weights so far. Checked after
            each epoch: what a large graph needs before the first one is not cut short. Where the
            limit has no effect, a seed decides the result.
        metric: Metric to select by. `auto` is the average precision of the rarer of two classes if
            it has less than a quarter of the labels, otherwise balanced accuracy.
        candidates: Names of methods, such as `boosting,logistic`; by default all with a portfolio.

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
    limits = {"time_limit": "positive"}

    patience: int = 1_000
    time_limit: float = 120.0
    metric: str = AUTO
    candidates: str = ""

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
        search = Search(task, self.time_limit, None if self.metric == AUTO else self.metric)
        seed = int(torch.randint(2**31, ()))
        methods = [self._limited(one) for one in portfolio(task.graph, names=self._names).values()]
        if not has_edges(task.graph):
            methods = [one for one in methods if not one.uses_graph] or methods
        search.run(methods, seed, self._report_epoch)
        weights = search.weights(seed)
        order = sorted(weights, key=lambda index: -weights[index])
        self.weights_ = [weights[index] for index in order]
        self.members_ = [search.fitted[index].method for index in order]
        self.history_ = search.history(search.fitted[order[0]])
        self.summary_ = search.summary(weights, seed)

    def _limited(self, method: Method) -> Method:
        """A candidate with no more epochs than this method allows."""
        limits = {name: min(getattr(method, name), getattr(self, name)) for name in LIMITS}
        return replace(method, **limits)

    def refitted(self, task: Task, *, seed: int) -> Method:
        """The selected methods, fitted again within the time limit; their weights stay."""
        other = Auto(**self.get_params())
        other.reset(task)
        search = Search(task, self.time_limit, None if self.metric == AUTO else self.metric)
        copies = [type(member)(**member.get_params()) for member in self.members_]
        search.run(copies, seed, lambda history: None)
        if len(search.fitted) < len(copies):
            left = [trial.method for trial in search.failed] + search.not_reached
            raise ValueError(f"{left[0].full_title} could not be fitted again in time.")
        other.members_, other.weights_ = copies, list(self.weights_)
        other.history_, other.summary_ = search.history(search.fitted[0]), list(self.summary_)
        other.fitted_ = True
        return other

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

    def contributions(self, graph: Data, node: int, direction: Tensor) -> Contributions:
        """Those of the selected methods, by what each counts in the average."""
        parts = [member.contributions(graph, node, direction) for member in self.members_]
        if len(parts) == 1:
            return parts[0]
        rows = torch.stack([member.predict_proba(graph)[node] for member in self.members_])
        margins = torch.stack([part.value.to(rows) for part in parts])
        shares = vote_shares(rows, margins, rows.new_tensor(self.weights_), direction)
        return weighted_sum(parts, shares.tolist())

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
