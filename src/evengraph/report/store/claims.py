"""Verdicts on what a paper published: its means, and its differences between variants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evengraph.metrics.significance import RESAMPLES
from evengraph.report.store.comparisons import Comparison, compare_with_others, published_gap
from evengraph.report.store.experiment_results import ExperimentResults

ALPHA = 0.05


@dataclass(frozen=True, kw_only=True)
class PublishedMean:
    """A published mean and ours.

    Args:
        setting: Name of the setting.
        metric: Name of the metric.
        same_seeds: Our mean over the seeds of the paper.
        paper: The published mean.
        seeds: Number of all our seeds.
        mean: Our mean over all of them.
        low: Lower end of its interval.
        high: Upper end.
        chance: Probability that the mean of as many seeds as the paper has, drawn from ours,
            reaches the published mean.
        verdict: "reached", "below", or "below, within chance".
    """

    setting: str
    metric: str
    same_seeds: float
    paper: float
    seeds: int
    mean: float
    low: float
    high: float
    chance: float
    verdict: str


def compare_with_paper(
    results: ExperimentResults, label: str, metrics: Sequence[str]
) -> list[PublishedMean]:
    """Compare every published mean of a method with ours."""
    means = []
    for cell in results.cells:
        same = cell.with_seeds(results.seeds)
        if cell.label != label or cell.varies is not None or not same.rows:
            continue
        for metric in metrics:
            paper = cell.published(metric)
            if paper is None:
                continue
            low, high = cell.interval(metric) or (math.nan, math.nan)
            chance = _chance(cell.values(metric), len(same.rows), paper)
            verdict = "below" if chance < ALPHA else "below, within chance"
            if round(same.mean(metric), 1) >= paper:  # rounded like the published mean
                verdict = "reached"
            means.append(
                PublishedMean(
                    setting=cell.setting,
                    metric=metric,
                    same_seeds=same.mean(metric),
                    paper=paper,
                    seeds=len(cell.rows),
                    mean=cell.mean(metric),
                    low=low,
                    high=high,
                    chance=chance,
                    verdict=verdict,
                )
            )
    return means


def _chance(values: Sequence[float], count: int, paper: float) -> float:
    """Share of samples of `count` seeds whose mean reaches the published one."""
    drawn = np.random.default_rng(0).choice(np.asarray(values), size=(RESAMPLES, count))
    return float((drawn.mean(axis=1).round(1) >= paper).mean())


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A published difference between a variant and the full method, and ours on the same seeds.

    Args:
        setting: Name of the setting.
        label: The variant.
        paper: Published difference, in points; None if it was not published.
        ours: Our difference.
        low: Lower end of its interval.
        high: Upper end.
        p: p value after correction for all claims of the experiment.
        verdict: "holds", "likely", "not significant", "opposite sign", "differs" (not published),
            or "identical".
    """

    setting: str
    label: str
    paper: float | None
    ours: float
    low: float
    high: float
    p: float
    verdict: str


def check_claims(results: ExperimentResults, metric: str) -> list[Claim]:
    """Check each variant's difference from the full method, where there are enough seeds."""
    claims = []
    for comparison in compare_with_others(results, results.reference, metric):
        variant = results.find(comparison.setting, comparison.against)
        full = results.find(comparison.setting, comparison.label)
        paper = published_gap(variant, full, metric) if variant and full else None
        claims.append(
            Claim(
                setting=comparison.setting,
                label=comparison.against,
                paper=paper,
                ours=-comparison.difference,
                low=-comparison.high,
                high=-comparison.low,
                p=comparison.corrected,
                verdict=_verdict(paper, comparison),
            )
        )
    return claims


def _verdict(paper: float | None, comparison: Comparison) -> str:
    if comparison.low == comparison.high == 0:
        return "identical"
    if comparison.low <= 0 <= comparison.high:
        return "not significant"
    if paper is None:
        return "differs"
    if paper * comparison.difference > 0:  # the variant's gain there, the full method's here
        return "opposite sign"
    return "holds" if comparison.corrected < ALPHA else "likely"
