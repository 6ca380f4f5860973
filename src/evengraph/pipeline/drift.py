"""Drift: how new nodes differ from those of training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.untrusted import check_types

MAX_LOG_DEGREE = 50  # of a number of neighbours; more are no graph
LARGE = 0.5  # standard deviations of a feature from which on a shift of its mean is told
LARGE_SHARE = 0.1  # difference of class shares that is told
CERTAIN = 4.0  # standard errors that a difference must exceed
LISTED = 3  # features that are named
DIFFERENT = "Different from training"


@dataclass(frozen=True, kw_only=True)
class TrainingStatistics:
    """Means over the training graph; no row of it is stored.

    Args:
        means: Of every feature.
        deviations: The standard deviation of every feature.
        log_degree: Mean and standard deviation of log(1 + neighbours).
        predicted: The share of each class among predictions for nodes that were not learnt from.
        labels: The share of each class among labels.
        quartiles: Of every column of numbers, three each; empty in models of former versions.
    """

    means: tuple[float, ...]
    deviations: tuple[float, ...]
    log_degree: tuple[float, float]
    predicted: tuple[float, ...]
    labels: tuple[float, ...]
    quartiles: tuple[float, ...] = ()

    @classmethod
    def of(
        cls,
        graph: Data,
        train: Tensor,
        probabilities: Tensor,
        numbers: NDArray[np.bool_] | None = None,
    ) -> Self:
        """Measure the graph of a model that learnt from the nodes of a mask.

        Args:
            graph: The training graph.
            train: The nodes that were learnt from.
            probabilities: Predictions for all nodes.
            numbers: Which features are columns of numbers.
        """
        degree = _log_degrees(graph)
        unseen = ~train if bool((~train).any()) else torch.ones_like(train)
        labels = graph.y[graph.y >= 0]
        return cls(
            means=_rounded(graph.x.float().mean(0)),
            deviations=_rounded(graph.x.float().std(0, correction=0)),
            log_degree=(float(f"{degree.mean():.4g}"), float(f"{degree.std(correction=0):.4g}")),
            predicted=_shares(probabilities[unseen].argmax(1), probabilities.shape[1]),
            labels=_shares(labels, probabilities.shape[1]),
            quartiles=_quartiles(graph, numbers),
        )

    def check(self, num_features: int, num_classes: int) -> None:
        """Raise ValueError for statistics, read from a file, of a graph of other sizes."""
        sizes = {"means": num_features, "deviations": num_features, "log_degree": 2}
        for name, size in (sizes | dict.fromkeys(("predicted", "labels"), num_classes)).items():
            values = getattr(self, name)
            if len(values) != size:
                raise ValueError(f"{name} must be {size} numbers")
        check_types(self)
        if not 0 <= self.log_degree[0] < MAX_LOG_DEGREE:
            raise ValueError(f"log_degree must lie between 0 and {MAX_LOG_DEGREE}")

    def as_dict(self) -> dict[str, Any]:
        """The statistics as JSON can hold them."""
        return {name: list(values) for name, values in asdict(self).items()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Rebuild from `as_dict`."""
        return cls(**{name: tuple(values) for name, values in content.items()})

    def compare(
        self,
        graph: Data,
        rows: Any,
        probabilities: Tensor,
        *,
        features: Sequence[str] = (),
        classes: Sequence[str],
    ) -> list[str]:
        """Sentences about what differs clearly, at most two.

        Args:
            graph: The graph of the new nodes.
            rows: The new nodes.
            probabilities: Predictions for them.
            features: Names of the features.
            classes: Names of the classes.

        Shapes:
            probabilities: (M, C)
        """
        if len(probabilities) < 2:
            return []
        names = features or [f"feature {index}" for index in range(graph.num_features)]
        parts = [*self._shifts(graph.x[rows].float(), names), *self._degrees(graph, rows)]
        lines = [self._shares(probabilities.argmax(1), classes)]
        if parts:
            lines.append(f"{DIFFERENT}: {'; '.join(parts)}.")
        return [line for line in lines if line]

    def _shares(self, predicted: Tensor, classes: Sequence[str]) -> str:
        """The class whose share among predictions has grown most, if it has clearly."""
        before = torch.tensor(self.predicted, dtype=torch.float64)
        now = torch.tensor(_shares(predicted, len(before)), dtype=torch.float64)
        index = int((now - before).argmax())
        gap, level = float((now - before)[index]), before[index].clamp(0.05, 0.95)
        error = float((level * (1 - level) / len(predicted)).sqrt())
        if gap < LARGE_SHARE or gap < CERTAIN * error:
            return ""
        return (
            f"{now[index]:.0%} are predicted {classes[index]}; in the training graph "
            f"{before[index]:.0%} were, and {self.labels[index]:.0%} of the labels."
        )

    def _shifts(self, x: Tensor, names: Sequence[str]) -> list[str]:
        """The features whose means have moved most, by more than half a standard deviation."""
        means, deviations = torch.tensor(self.means), torch.tensor(self.deviations)
        steps = torch.where(deviations > 0, (x.mean(0).cpu() - means) / deviations, 0.0)
        moved = steps.abs() > max(LARGE, CERTAIN / len(x) ** 0.5)
        order = steps.abs().argsort(descending=True)[: int(moved.sum())].tolist()
        parts = [
            f"{names[index]} is {abs(steps[index]):.1f} standard deviations "
            f"{'higher' if steps[index] > 0 else 'lower'}"
            for index in order[:LISTED]
        ]
        more = len(order) - LISTED
        return parts + ([f"{more} other feature{'s' * (more > 1)}"] if more > 0 else [])

    def _degrees(self, graph: Data, rows: Any) -> list[str]:
        """Whether nodes have clearly more or fewer neighbours."""
        mean, deviation = self.log_degree
        degrees = _log_degrees(graph)[rows]
        gap = abs(float(degrees.mean()) - mean)
        if gap <= max(LARGE, CERTAIN / len(degrees) ** 0.5) * deviation:
            return []
        now, before = (f"{math.expm1(value):.1f}" for value in (float(degrees.mean()), mean))
        if now == before:  # all nodes of training had about as many, so that any change is large
            return []
        return [f"a node has typically {now} neighbours, {before} in training"]


def _quartiles(graph: Data, numbers: NDArray[np.bool_] | None) -> tuple[float, ...]:
    """Quartiles of some features, one feature after the other."""
    if numbers is None or not numbers.any():
        return ()
    columns = graph.x[:, torch.from_numpy(numbers).to(graph.x.device)].double().cpu().numpy()
    found = np.quantile(columns, (0.25, 0.5, 0.75), axis=0)
    return _rounded(torch.from_numpy(found.T.ravel()))


def _log_degrees(graph: Data) -> Tensor:
    degree = torch.bincount(graph.edge_index[0].cpu(), minlength=int(graph.num_nodes))
    return degree.double().log1p()


def _shares(classes: Tensor, count: int) -> tuple[float, ...]:
    counts = torch.bincount(classes.cpu(), minlength=count).double()
    return _rounded(counts / counts.sum().clamp(min=1))


def _rounded(values: Tensor) -> tuple[float, ...]:
    """Four digits, so that no cell can be told from them."""
    return tuple(float(f"{value:.4g}") for value in values.tolist())
