"""Verdicts on what a paper published: its means, and its differences between variants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evengraph.metrics.significance import RESAMPLES
from evengraph.report.store.comparisons import Comparison, compare_with_others, published_gap
from evengraph.report.store.experiment_results import Cell, ExperimentResults

ALPHA = 0.05


@dataclass(frozen=True, kw_only=True)
class PublishedMean:
    """A published mean and our runs.

    Args:
        cell: All our runs.
        metric: Name of the metric.
        paper: The published mean.
        same_seeds: Our mean over the seeds of the paper.
        chance: Probability that the mean of as many seeds as the paper has, drawn from ours,
            reaches the published mean.
        verdict: "reached", "below", or "below, within chance".
    """

    cell: Cell
    metric: str
    paper: float
    same_seeds: float
    chance: float
    verdict: str


def compare_with_paper(
    results: ExperimentResults, label: str, metrics: Sequence[str]
) -> list[PublishedMean]:
    """Compare every published mean of a method with our runs."""
    means = []
    for cell in results.cells:
        same = cell.with_seeds(results.seeds)
        if cell.label == label and cell.varies is None and same.rows:
            for metric in metrics:
                paper = cell.published(metric)
                if paper is not None:
                    means.append(_compare(cell, metric, paper, same))
    return means


def _compare(cell: Cell, metric: str, paper: float, same: Cell) -> PublishedMean:
    drawn = np.random.default_rng(0).choice(
        np.asarray(cell.values(metric)), size=(RESAMPLES, len(same.rows))
    )
    chance = float((drawn.mean(axis=1).round(1) >= paper).mean())
    verdict = "below" if chance < ALPHA else "below, within chance"
    mean = same.mean(metric)
    return PublishedMean(
        cell=cell,
        metric=metric,
        paper=paper,
        same_seeds=mean,
        chance=chance,
        verdict="reached" if round(mean, 1) >= paper else verdict,  # rounded as published
    )


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A published difference between a variant and the full method, and ours.

    Args:
        comparison: The variant compared with the full method on the same seeds.
        paper: Published difference, in points; None if it was not published.
        verdict: "holds", "likely", "not significant", "opposite sign", "differs" (not published),
            or "identical".
    """

    comparison: Comparison
    paper: float | None
    verdict: str


def check_claims(results: ExperimentResults, metric: str) -> list[Claim]:
    """Check each variant's difference from the full method, where there are enough seeds."""
    claims = []
    for comparison in compare_with_others(results, results.reference, metric):
        swapped = comparison.swapped()
        cells = [results.find(swapped.setting, x) for x in (swapped.label, swapped.against)]
        variant, full = (cell for cell in cells if cell is not None)
        paper = published_gap(variant, full, metric)
        claims.append(Claim(comparison=swapped, paper=paper, verdict=_verdict(paper, swapped)))
    return claims


def _verdict(paper: float | None, comparison: Comparison) -> str:
    if comparison.low == comparison.high == 0:
        return "identical"
    if comparison.low <= 0 <= comparison.high:
        return "not significant"
    if paper is None:
        return "differs"
    if paper * comparison.difference < 0:
        return "opposite sign"
    return "holds" if comparison.corrected < ALPHA else "likely"
