"""Methods of an experiment compared on the same seeds and settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from evengraph.metrics.significance import bootstrap_interval, holm, mean_ranks, t_test
from evengraph.report.store.experiment_results import Cell, ExperimentResults

MIN_SEEDS = 5  # common to both methods; fewer are not tested


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One method compared with another on the same seeds.

    Args:
        setting: Name of the setting.
        label: The method.
        against: The method that it is compared with.
        seeds: Number of common seeds.
        difference: Mean of the differences, in points; positive if `label` is better.
        low: Lower end of its 95% bootstrap interval.
        high: Upper end.
        p: p value of the paired t-test.
        corrected: The same after Holm's correction for all comparisons.
    """

    setting: str
    label: str
    against: str
    seeds: int
    difference: float
    low: float
    high: float
    p: float
    corrected: float

    def swapped(self) -> Comparison:
        """The same comparison seen from the other method."""
        return replace(
            self,
            label=self.against,
            against=self.label,
            difference=-self.difference,
            low=-self.high,
            high=-self.low,
        )


def compare_with_others(results: ExperimentResults, label: str, metric: str) -> list[Comparison]:
    """Compare one method with every other in every setting that has enough common seeds."""
    comparisons = []
    for setting in results.settings:
        cell = results.find(setting, label)
        for against in results.labels:
            other = results.find(setting, against)
            if cell is None or other is None or against == label:
                continue
            gaps = paired_gaps(cell, other, metric)
            if len(gaps) >= MIN_SEEDS:
                comparisons.append(_compare(setting, label, against, gaps))
    corrected = holm([comparison.p for comparison in comparisons])
    return [replace(c, corrected=p) for c, p in zip(comparisons, corrected, strict=True)]


def _compare(setting: str, label: str, against: str, gaps: Sequence[float]) -> Comparison:
    low, high = bootstrap_interval(gaps) or (math.nan, math.nan)
    names = {"setting": setting, "label": label, "against": against}
    test = t_test(gaps)
    return Comparison(
        **names,
        seeds=len(gaps),
        difference=test.mean,
        low=low,
        high=high,
        p=test.p,
        corrected=test.p,
    )


def paired_gaps(cell: Cell, other: Cell, metric: str) -> list[float]:
    """Difference of two cells for each common seed, in the order of the seeds."""
    values, others = cell.by_seed(metric), other.by_seed(metric)
    return [values[seed] - others[seed] for seed in sorted(values.keys() & others.keys())]


def published_gap(cell: Cell, other: Cell, metric: str) -> float | None:
    """Difference of the published means, if both were published."""
    mean, reference = cell.published(metric), other.published(metric)
    return None if mean is None or reference is None else mean - reference


def rank_methods(results: ExperimentResults, metric: str) -> dict[str, float]:
    """Mean rank of each method over the settings in which all were run; 1 is best."""
    settings, values = results.complete_settings(), {}
    for label in results.labels:
        cells = [results.find(setting, label) for setting in settings]
        values[label] = [cell.mean(metric) for cell in cells if cell is not None]
    return mean_ranks(values)


def best_first(results: ExperimentResults, metric: str) -> list[str]:
    """Names of the methods by relative rank over the settings in which each was run."""
    ranks: dict[str, list[float]] = {label: [] for label in results.labels}
    for setting in results.settings:
        cells = [c for c in results.cells if c.setting == setting and c.varies is None]
        for rank, cell in enumerate(sorted(cells, key=lambda c: -c.mean(metric))):
            ranks[cell.label].append(rank / len(cells))
    return sorted(ranks, key=lambda label: fmean(ranks[label]) if ranks[label] else 1.0)
