"""Methods of an experiment compared with one another and with published results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np

from evengraph.metrics.significance import RESAMPLES, holm, mean_ranks, t_test
from evengraph.report.store.experiment_results import Cell, Estimate, ExperimentResults

ALPHA = 0.05
MIN_SEEDS = 5  # common to both methods; fewer are not tested


class Comparison(NamedTuple):
    """One method compared with another on the same seeds."""

    setting: str
    against: str  # the method that it is compared with
    gaps: Estimate  # one per common seed; positive if the method is better
    p: float  # of the paired t-test
    corrected: float  # for all comparisons, by Holm's method

    @property
    def verdict(self) -> str:
        """Whether the difference is significant, and confirms the published one if there is one."""
        (low, high), paper = self.gaps.band, self.gaps.paper
        if low == high == 0:
            return "identical"
        if low <= 0 <= high:
            return "not significant"
        if paper is not None and paper * self.gaps.mean < 0:
            return "opposite sign"
        if self.corrected >= ALPHA:
            return "uncorrected only"
        return "significant" if paper is None else "holds"


def compare_with_others(results: ExperimentResults, label: str, metric: str) -> list[Comparison]:
    """Compare one method with every other in every setting that has enough common seeds."""
    return _compare(_pairs(results, label), metric)


def compare_variants(results: ExperimentResults, metric: str) -> list[Comparison]:
    """Compare each variant with the full method, where there are enough common seeds."""
    pairs = _pairs(results, results.reference)
    return _compare([(variant, full) for full, variant in pairs], metric)


def _pairs(results: ExperimentResults, label: str) -> list[tuple[Cell, Cell]]:
    """The cell of a method with that of every other method, for each setting."""
    pairs = []
    for setting in results.settings:
        cell = results.find(setting, label)
        others = [results.find(setting, other) for other in results.labels if other != label]
        pairs += [(cell, other) for other in others if cell is not None and other is not None]
    return pairs


def _compare(pairs: Iterable[tuple[Cell, Cell]], metric: str) -> list[Comparison]:
    gaps = [(other, paired_gaps(cell, other, metric)) for cell, other in pairs]
    tested = [(o.setting, o.label, gap) for o, gap in gaps if len(gap.values) >= MIN_SEEDS]
    p_values = [t_test(gap.values).p for _, _, gap in tested]
    tests = zip(tested, p_values, holm(p_values), strict=True)
    return [Comparison(*names, p, corrected) for names, p, corrected in tests]


def paired_gaps(cell: Cell, other: Cell, metric: str) -> Estimate:
    """Difference of two cells for each common seed, in the order of the seeds."""
    values, others = cell.by_seed(metric), other.by_seed(metric)
    gaps = [values[seed] - others[seed] for seed in sorted(values.keys() & others.keys())]
    paper, reference = cell.published(metric), other.published(metric)
    published = None if paper is None or reference is None else paper - reference
    return Estimate(cell.label, gaps, published)


def variant_gaps(results: ExperimentResults, setting: str, metric: str) -> list[Estimate]:
    """Differences of the variants from the full method in a setting, for the figures."""
    full = results.find(setting, results.reference)
    variants = [cell for cell in results.table_cells(setting) if cell is not full]
    gaps = [paired_gaps(cell, full, metric) for cell in variants if full is not None]
    return [gap for gap in gaps if gap.values]


class PublishedMean(NamedTuple):
    """A published mean and our runs."""

    cell: Cell  # our runs; if hyperparameters were selected, on other seeds where there are such
    metric: str
    paper: float  # the published mean
    selection: float  # our mean over the seeds of the selection, as many as the paper has
    chance: float  # probability that the mean of as few seeds, drawn from these runs, reaches it

    @property
    def verdict(self) -> str:
        """Whether our mean, rounded as published, reaches the paper's."""
        if round(self.cell.mean(self.metric), 1) >= self.paper:
            return "reached"
        return "below" if self.chance < ALPHA else "below, within chance"


def compare_with_paper(
    results: ExperimentResults, label: str, metrics: Sequence[str]
) -> list[PublishedMean]:
    """Compare every published mean of a method with our runs."""
    means = []
    for cell in results.cells:
        same = cell.with_seeds(results.seeds)
        if cell.label != label or cell.varies is not None or not same.rows:
            continue
        ours = _outside_selection(cell, results.seeds)
        for metric in metrics:
            paper = cell.published(metric)
            if paper is not None:
                values, size = np.asarray(ours.values(metric)), (RESAMPLES, len(same.rows))
                drawn = np.random.default_rng(0).choice(values, size=size)
                chance = float((drawn.mean(axis=1).round(1) >= paper).mean())
                means.append(PublishedMean(ours, metric, paper, same.mean(metric), chance))
    return means


def _outside_selection(cell: Cell, selection: Sequence[int]) -> Cell:
    """The runs on seeds that took no part in selecting hyperparameters; all if there are none."""
    others = {row.job.seed for row in cell.rows} - set(selection)
    return cell.with_seeds(others) if cell.selected and others else cell


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
        cells = sorted(results.table_cells(setting), key=lambda cell: -cell.mean(metric))
        for rank, cell in enumerate(cells):
            ranks[cell.label].append(rank / len(cells))
    return sorted(ranks, key=lambda label: fmean(ranks[label]) if ranks[label] else 1.0)
