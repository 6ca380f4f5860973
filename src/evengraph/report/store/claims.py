"""What stored runs say of a paper's figures and claims: they hold, are noise, or do not hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evengraph.report.store.boards import Board
from evengraph.report.store.statistics import RESAMPLES, comparisons, interval

DOUBT = 0.05


@dataclass(frozen=True, kw_only=True)
class Reached:
    """A figure of the paper beside ours.

    Args:
        setup: Name of the set-up.
        metric: Name of the metric.
        first: Our mean over the seeds that the paper has, too.
        paper: The paper's mean.
        seeds: How many seeds we have in all.
        mean: Our mean over all of them.
        low: Lower end of its interval.
        high: Upper end.
        chance: That so few of our seeds as the paper has reach its mean.
        word: What comes of it.
    """

    setup: str
    metric: str
    first: float
    paper: float
    seeds: int
    mean: float
    low: float
    high: float
    chance: float
    word: str


def reached(board: Board, label: str, metrics: Sequence[str]) -> list[Reached]:
    """Every cell of the paper that a method has, beside what we have."""
    found = []
    for cell in board.cells:
        first = cell.of_seeds(board.seeds)
        if cell.label != label or cell.varies is not None or not first.rows:
            continue
        for metric in metrics:
            paper = cell.published(metric)
            if paper is None:
                continue
            low, high = interval(cell.values(metric)) or (math.nan, math.nan)
            chance = _chance(cell.values(metric), len(first.rows), paper)
            above = round(first.mean(metric), 1) >= paper  # compared as the paper prints it
            found.append(
                Reached(
                    setup=cell.setup,
                    metric=metric,
                    first=first.mean(metric),
                    paper=paper,
                    seeds=len(cell.rows),
                    mean=cell.mean(metric),
                    low=low,
                    high=high,
                    chance=chance,
                    word="reached"
                    if above
                    else "short"
                    if chance < DOUBT
                    else "short, may be chance",
                )
            )
    return found


def _short(chance: float) -> str:
    return "short" if chance < DOUBT else "short, may be chance"


def _chance(values: Sequence[float], many: int, paper: float) -> float:
    """How often the mean of so many of our seeds, drawn at random, is at or above the paper's."""
    drawn = np.random.default_rng(0).choice(np.asarray(values), size=(RESAMPLES, many))
    return float((drawn.mean(axis=1).round(1) >= paper).mean())


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A difference that the paper prints, beside ours on the same seeds.

    Args:
        setup: Name of the set-up.
        label: The variant.
        paper: What the variant loses (or gains) in the paper, in points; none if it is not there.
        ours: The same here.
        low: Lower end of its interval.
        high: Upper end.
        p: Corrected for all claims of the board.
        word: What comes of it.
    """

    setup: str
    label: str
    paper: float | None
    ours: float
    low: float
    high: float
    p: float
    word: str


def claims(board: Board, metric: str) -> list[Claim]:
    """What each variant loses against the whole method, where there are seeds enough."""
    found = []
    for one in comparisons(board, board.whole, metric):
        paper = _gap(board, one.setup, one.against, metric)
        found.append(
            Claim(
                setup=one.setup,
                label=one.against,
                paper=paper,
                ours=-one.difference,
                low=-one.high,
                high=-one.low,
                p=one.corrected,
                word=_verdict(paper, one.difference, one.low, one.high, one.corrected),
            )
        )
    return found


def _gap(board: Board, setup: str, label: str, metric: str) -> float | None:
    cells = board.find(setup, label), board.find(setup, board.whole)
    means = [None if cell is None else cell.published(metric) for cell in cells]
    return None if means[0] is None or means[1] is None else means[0] - means[1]


def _verdict(paper: float | None, difference: float, low: float, high: float, p: float) -> str:
    if low == high == 0:
        return "the same settings"
    if low <= 0 <= high:
        return "noise"
    if paper is None:
        return "differs"
    if paper * difference > 0:  # the paper's is the variant's gain, ours the whole method's
        return "the reverse"
    return "holds" if p < DOUBT else "likely"
