"""Which of several seeds' models to save: the one with the best score on nodes it did not learn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from evengraph.core.task import Task
from evengraph.methods import Method
from evengraph.metrics import METRICS
from evengraph.metrics.ensembles import Validation
from evengraph.pipeline.assessment import positive_index
from evengraph.pipeline.graph_source import GraphSource
from evengraph.splits import SplitProtocol


class SeedScore(NamedTuple):
    """What the model of one seed reached on validation.

    Args:
        value: In percent.
        metric: Its name in `METRICS`.
    """

    value: float
    metric: str

    @property
    def title(self) -> str:
        """The metric in words."""
        return METRICS[self.metric].title


def seed_score(method: Method, task: Task, source: GraphSource) -> SeedScore:
    """Score a fitted method on its held-out nodes, by the metric that its summary shows.

    That is the `metric` of a method that selects among others, if it is set; otherwise the one that
    fits the task: average precision if one of two classes is rare, else balanced accuracy.
    """
    task, probabilities = source.predict_task(method, task)
    named = method.get_params().get("metric") if method.selects_itself else None
    validation = Validation.of(task, named if named in METRICS else None)
    held_out = method.held_out(task)
    validation = validation._replace(labels=task.graph.y[held_out])
    return SeedScore(100 * validation.score(probabilities[held_out]), validation.metric)


def fit_seeds(
    new_method: Callable[[], Method],
    protocol: SplitProtocol,
    source: GraphSource,
    seeds: Sequence[int],
    positive: str | None,
    device: torch.device,
    progress: bool | None,
) -> tuple[Method, Task, int]:
    """Fit one method per seed; returns the one with the best score, its task and its seed.

    Args:
        new_method: Makes an unfitted method.
        protocol: How to split the graph of the source.
        positive: Name of the positive class, if there are two and it is given.
        progress: Show a live bar; by default on a terminal only.
    """
    best: tuple[float, Method, Task, int] | None = None
    for seed in seeds:
        task = protocol(source.graph, seed=seed).to(device)
        positive_index(task, positive)  # fails before training, not after
        method = new_method().fit(task, seed=seed, progress=progress)
        score = seed_score(method, task, source).value if len(seeds) > 1 else 0.0
        if best is None or score > best[0]:
            best = score, method, task, seed
    if best is None:
        raise ValueError("seed must hold at least one seed, got none.")
    return best[1:]
