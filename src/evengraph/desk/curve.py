"""Learning curve: what more labels would bring, judged from the labels at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from evengraph.core.rng import generator
from evengraph.desk.suggestions import Pool, fit_members, predict_members

MORE = (20, 50, 100)
SHARES = (0.2, 0.35, 0.5, 0.65, 0.8)  # of the labels, to learn from; the others test
REPEATS = 12
DRAWS = 200  # of labelled nodes, for the error of the scores
LEAST = 10  # labels, and two of each of two classes
WIDTH = 1.28  # standard errors on both sides, which hold four of five values
BETWEEN = (0.01**2, 0.03**2)  # variance over models of one size; measured on few, it is rough
WORTH = 1.0  # points of balanced accuracy: a hundred labels that bring less are too many
CLEAR = 3.0  # points: if they might bring more, the labels at hand cannot tell
HELD_OUT = 20  # labels of a class in a trial, below which nobody is told to stop; as in `run`
FEW = 5  # labels of a class, below which its recall is a guess at best
NAMED = 6  # classes in a sentence; the others are counted
SCORED = (
    "Balanced accuracy of a quick model on labels that it did not learn from, whichever model chose"
    " the nodes; run scores its own model on its test nodes."
)
TOO_FEW_LABELS = (
    f"What more labels would bring cannot be said yet: it takes {LEAST} labels, and two of each of "
    "two classes."
)


@dataclass(frozen=True, kw_only=True)
class Point:
    """An expected balanced accuracy in percent, with points more than now.

    Four of five times the score lies between `low` and `high`, the gain between its own two.
    """

    labels: int
    score: float
    low: float
    high: float
    gain: float = 0.0
    gain_low: float = 0.0
    gain_high: float = 0.0


@dataclass(frozen=True, kw_only=True)
class LearningCurve:
    """What the labels at hand teach a quick model, and what more would.

    Args:
        now: With all labels.
        expected: With more.
        advice: Whether to go on, in one sentence.
        enough: Whether the last of `expected` is likely to bring less than a point, and surely
            less than three; never where a class has fewer than 20 held-out labels.
        unknown: What the labels at hand cannot tell, in sentences.
    """

    now: Point
    expected: tuple[Point, ...]
    advice: str
    enough: bool
    unknown: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The curve, ready for JSON."""
        return asdict(self)


def learning_curve(
    data: Any,
    *,
    labels: Tensor | None = None,
    more: Sequence[int] = MORE,
    seed: int = 0,
    **options: Any,
) -> LearningCurve | None:
    """Expect the balanced accuracy with more labels; None with too few to judge from.

    Quick models learn from parts of the labels and are tested on the others; a power law is
    fitted to their scores. Labels that were chosen because they are hard make the level
    pessimistic; gains suffer less.

    Args:
        data: As in `suggest`; and so are `labels` and `options`.
        more: How many more labels to expect the score for.
        seed: Of everything random.
    """
    pool = data if isinstance(data, Pool) else Pool.open(data, **options)
    labels = pool.labels if labels is None else labels
    nodes = (labels >= 0).nonzero().squeeze(1)
    counts = torch.bincount(labels[nodes], minlength=pool.num_classes)
    if not can_judge(counts.tolist()):
        return None
    targets = labels[nodes].unique(return_inverse=True)[1]
    measured = _measure(pool.rows[nodes], targets, seed)
    curve = _extrapolate(np.array(SHARES) * len(nodes), *measured, len(nodes), more)
    return _with_unknown(curve, dict(zip(pool.class_names, counts.tolist(), strict=True)))


def can_judge(counts: Sequence[int]) -> bool:
    """Whether there are enough labels of each class to expect what more would bring."""
    return sum(counts) >= LEAST and sum(count > 1 for count in counts) >= 2


def _with_unknown(curve: LearningCurve, counts: dict[str, int]) -> LearningCurve:
    """The curve with what it cannot know; a class that little is known of is no reason to stop."""
    few = [name for name, count in counts.items() if count < FEW]
    if few:
        more = f" and {len(few) - NAMED} more" if len(few) > NAMED else ""
        text = f"Little or nothing is known of {', '.join(few[:NAMED])}{more}: fewer than {FEW} "
        curve = replace(curve, unknown=(f"{text}labels; more there may bring much.",))
    held_out = {name: round((1 - SHARES[-1]) * count) for name, count in counts.items()}
    if curve.enough and min(held_out.values()) < HELD_OUT:
        least = min(held_out, key=held_out.__getitem__)
        text = f"{curve.advice.partition(': ')[2]} A trial holds out {held_out[least]} labels of "
        text += f"{least}, and advice to stop takes {HELD_OUT}."
        curve = replace(curve, advice=f"Unclear: {text}", enough=False)
    return curve


def _measure(rows: Tensor, targets: Tensor, seed: int) -> tuple[Any, Any, float]:
    """Balanced accuracy per size, (S,), covariance of its errors, (S, S), and variance over models.

    Models learn from parts of the labels and predict the others. Small parts lack rare classes, as
    the first labels did; a class with one label teaches only. For the errors, labelled nodes are
    drawn again and again, since others could have been labelled.
    """
    stream, number = generator(seed), len(targets)
    learnt = torch.zeros(REPEATS, len(SHARES), number, dtype=torch.bool)
    for repeat in range(REPEATS):
        order = torch.randperm(number, generator=stream)
        for step, share in enumerate(SHARES):
            learnt[repeat, step, order[: round(share * number)]] = True
    model = fit_members(rows, targets, learnt.flatten(0, 1).float())
    predicted = predict_members(rows, model).argmax(2).view(learnt.shape)
    unseen = ~learnt & (torch.bincount(targets)[targets] > 1)
    right, tested = ((predicted == targets) & unseen).double(), unseen.double()
    classes = one_hot(targets).double()
    classes = classes[:, classes.sum(0) > 1]
    weights = torch.rand(DRAWS, number, generator=generator(seed)).clamp(min=1e-6).log().neg()
    weights = torch.cat([torch.ones(1, number), weights]).double()

    def recalls(each: Tensor, all_: Tensor) -> Tensor:
        return (each / all_.clamp(min=1e-9)).mean(-1)

    hits, tries = (
        torch.einsum("bn,sn,nc->bsc", weights, part.sum(0), classes) for part in (right, tested)
    )
    scores = recalls(hits, tries).numpy()
    each, all_ = right @ classes, tested @ classes  # (R, S, C)
    shares = each.sum(0) / all_.sum(0).clamp(min=1)
    chance = (shares * (1 - shares) / all_.mean(0).clamp(min=1)).mean(1) / classes.shape[1]
    between = float((recalls(each, all_).var(0) - chance).mean().clamp(*BETWEEN))
    covariance = np.cov(scores[1:].T) + (between / REPEATS + 1e-5) * np.eye(len(SHARES))
    return scores[0], covariance, between


def _extrapolate(
    sizes: Any, scores: Any, covariance: Any, between: float, count: int, more: Sequence[int]
) -> LearningCurve:
    """Fit score = ceiling - drop * size ** -rate, weigh all fits by likelihood, and read off."""
    ranges = np.linspace(0.2, 1.0, 41), np.linspace(0.0, 4.0, 81), np.linspace(0.2, 1.0, 9)
    ceiling, drop, rate = (part.ravel() for part in np.meshgrid(*ranges))

    def law(size: Any) -> Any:
        return ceiling - drop * size**-rate

    misfit = law(sizes[:, None]) - scores[:, None]
    likelihood = -0.5 * np.einsum("sk,st,tk->k", misfit, np.linalg.inv(covariance), misfit)
    weights = np.exp(likelihood - likelihood.max()) * (law(1.0) > -1)
    weights /= weights.sum()

    def summary(numbers: Any, noise: float) -> tuple[float, float, float]:
        """The mean over all fits; how far fits differ, and models of one size, give the range."""
        mean = float(weights @ numbers)
        error = WIDTH * float(weights @ (numbers - mean) ** 2 + noise) ** 0.5
        return 100 * mean, 100 * (mean - error), 100 * (mean + error)

    points = []
    for labels in (count, *(count + m for m in more)):
        score, low, high = summary(law(labels), between)
        gain, gain_low, gain_high = summary(law(labels) - law(count), 2 * between)
        points.append(
            Point(
                labels=labels,
                score=score,
                low=max(low, 0.0),
                high=min(high, 100.0),
                gain=gain,
                gain_low=gain_low,
                gain_high=gain_high,
            )
        )
    last = points[-1]
    enough = last.gain < WORTH and last.gain_high < CLEAR
    brings = f"about {last.gain:.1f} points ({last.gain_low:.1f} to {last.gain_high:.1f})"
    advice = f"Go on: {more[-1]} more labels should bring {brings}."
    if enough:
        advice = f"You can stop: {more[-1]} more labels would bring {brings}."
    elif last.gain < WORTH:
        advice = (
            f"Unclear: {more[-1]} more labels should bring {brings}, but more than {CLEAR:g} "
            "points cannot be ruled out."
        )
    return LearningCurve(now=points[0], expected=tuple(points[1:]), advice=advice, enough=enough)
