"""Calibration: probabilities that mean what they say, and metrics of that."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from evengraph.core.schema import Count, Share

MIN_NODES = 30  # held-out nodes in all for probabilities
MIN_PER_CLASS = 10  # held-out nodes of a class for its probability to be one
SMALLEST = 1e-8  # probability; less is a saturated softmax, which says nothing of how sure it is
SPREAD = 1.0  # of the prior of log temperature, which is centred on 1


@dataclass(frozen=True, kw_only=True)
class Calibrator:
    """Turns what a model predicts into probabilities that hold for a population.

    Log-probabilities are divided by a temperature, and each class gets a shift: logistic
    calibration if there are two classes. The shifts undo training that balances classes, so that
    the mean probability of a class is its share. Both are fitted to held-out predictions by maximum
    likelihood, with a prior on the temperature and labels that count as certain only up to
    (n + 1) / (n + 2) for a class of n nodes: with few nodes the fit stays cautious.

    Args:
        temperature: Above 1 makes the model less confident, below 1 more.
        shift: Added to the log-probability of each class; empty for none.
        counts: Held-out nodes of each class that it was fitted to; empty before version 0.3.
        shares: Shares of the classes that its probabilities hold for, (C,); by default those of
            the held-out nodes.
        nodes: Number of held-out nodes.

    Reference:
        Platt, "Probabilistic Outputs for Support Vector Machines", 1999; Guo, Pleiss, Sun and
        Weinberger, "On Calibration of Modern Neural Networks", ICML 2017.
    """

    temperature: float = 1.0
    shift: tuple[float, ...] = ()
    counts: tuple[Count, ...] = ()
    shares: tuple[Share, ...] = ()
    nodes: Count = 0

    def __post_init__(self) -> None:
        if not 0 < self.temperature < math.inf:
            raise ValueError(f"temperature must be above 0 and finite, got {self.temperature}.")

    @classmethod
    def fit(
        cls, probabilities: Tensor, labels: Tensor, *, shares: Sequence[float] | None = None
    ) -> Self:
        """Fit to nodes that the model has not learnt from.

        Args:
            probabilities: Softmax output for these nodes.
            labels: Their labels.
            shares: Of the classes in the population, if the labels were collected unevenly.

        Shapes:
            probabilities: (M, C)
            labels: (M,)
            shares: (C,)
        """
        _check(probabilities, labels)
        counts = torch.bincount(labels.cpu(), minlength=probabilities.shape[1]).double()
        temperature, shift = _fit(_logs(probabilities).cpu().numpy(), labels.cpu(), counts)
        found = counts / counts.sum()
        if shares is not None:
            wanted = torch.tensor(shares, dtype=torch.double)
            shift = shift + (wanted.clamp(min=1e-12) / found.clamp(min=1e-12)).log().numpy()
            found = wanted
        return cls(
            temperature=temperature,
            shift=tuple(shift.tolist()),
            counts=tuple(int(count) for count in counts),
            shares=tuple(found.tolist()),
            nodes=len(labels),
        )

    def __call__(self, probabilities: Tensor) -> Tensor:
        """Calibrate probabilities, (M, C)."""
        if self.temperature == 1 and not self.shift:
            return probabilities
        logs = _logs(probabilities) / self.temperature
        if self.shift:
            logs = logs + torch.tensor(self.shift, dtype=logs.dtype, device=logs.device)
        return logs.softmax(1).to(probabilities.dtype)

    @property
    def reliable(self) -> tuple[bool, ...]:
        """Whether each class had enough held-out nodes for a probability; else it is a score."""
        enough = [count >= MIN_PER_CLASS and self.nodes >= MIN_NODES for count in self.counts]
        return tuple(enough if len(enough) != 2 else [all(enough)] * 2)

    def describe(self, names: Sequence[str]) -> str:
        """Say in one sentence what was fitted, or which numbers are scores."""
        poor = [name for name, good in zip(names, self.reliable, strict=False) if not good]
        counted = zip(names, self.counts, strict=False)
        text = ", ".join(f"{name}: {count:,}" for name, count in counted if len(names) <= 5)
        nodes = f"{self.nodes:,} held-out nodes" + (f" ({text})" if text else "")
        if len(poor) == len(names):
            return (
                f"Scores, not probabilities: {nodes} are too few to calibrate on, "
                f"{MIN_PER_CLASS} of each class are needed. Use the order."
            )
        less = f"; those of {', '.join(poor)} are scores, with too few nodes" if poor else ""
        return f"Probabilities are calibrated on {nodes}{less}."

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON types."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}


def expected_calibration_error(labels: Tensor, probabilities: Tensor, bins: int = 15) -> float:
    """Mean gap between confidence and accuracy over bins of equal width, weighted by their nodes.

    Shapes:
        labels: (M,)
        probabilities: (M, C)

    Reference:
        Naeini, Cooper and Hauskrecht, "Obtaining Well Calibrated Probabilities Using Bayesian
        Binning", AAAI 2015.
    """
    _check(probabilities, labels)
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins}.")
    confidence, guess = probabilities.double().max(1)
    right = (guess == labels.to(guess.device)).double()
    index = (confidence * bins).ceil().long().clamp(1, bins) - 1  # a bin includes its upper edge
    gaps = torch.zeros(bins, dtype=torch.double, device=confidence.device)
    gaps.index_add_(0, index, confidence - right)
    return float(gaps.abs().sum() / len(labels))


def brier_score(labels: Tensor, probabilities: Tensor) -> float:
    """Mean squared error of the probabilities, summed over classes: from 0 to 2.

    For two classes it is twice the Brier score of the positive class alone.
    """
    _check(probabilities, labels)
    truth = one_hot(labels.to(probabilities.device), probabilities.shape[1])
    return float((probabilities.double() - truth).square().sum(1).mean())


def reliability(
    labels: Tensor, rows: Tensor, positive: int | None = None, bins: int = 10
) -> list[tuple[float, float, int]]:
    """Mean probability, share of nodes that it is right for, and nodes, in bins of equal size.

    The probability is that of the positive class, or else the largest of each row of (M, C). Equal
    ones are in one bin.
    """
    top, guess = rows.double().max(1)
    right = guess == labels
    if positive is not None:
        top, right = rows[:, positive].double(), labels == positive
    order = top.argsort(stable=True)
    values, hits = top[order], right[order].double()
    edges = torch.linspace(0, len(values), bins + 1).round().long()[:-1].clamp(max=len(values) - 1)
    starts = torch.searchsorted(values, values[edges].contiguous()).unique()
    sizes = torch.diff(starts, append=starts.new_tensor([len(values)])).tolist()
    parts = zip(values.split(sizes), hits.split(sizes), strict=True)
    return [
        (round(float(part.mean()), 6), round(float(hit.mean()), 6), len(part))
        for part, hit in parts
    ]


def _check(probabilities: Tensor, labels: Tensor) -> None:
    if probabilities.dim() != 2 or not len(labels) or labels.shape != probabilities.shape[:1]:
        raise ValueError(
            "probabilities must have one row per label, and at least one, "
            f"got shapes {tuple(probabilities.shape)} and {tuple(labels.shape)}."
        )
    if not (torch.isfinite(probabilities).all() and (probabilities >= 0).all()):
        raise ValueError("probabilities must be finite and at least 0.")
    if not (probabilities.sum(1) - 1).abs().max() < 1e-3:
        raise ValueError("rows of probabilities must sum to one; apply softmax to logits.")
    if labels.min() < 0 or labels.max() >= probabilities.shape[1]:
        raise ValueError(
            f"labels must lie between 0 and {probabilities.shape[1] - 1}, "
            f"got {int(labels.min())} to {int(labels.max())}."
        )


def _logs(probabilities: Tensor) -> Tensor:
    """Logarithms in double precision."""
    return probabilities.double().clamp(min=SMALLEST).log()


def _fit(logs: Any, labels: Tensor, counts: Tensor) -> tuple[float, Any]:
    """Temperature and shifts, (C,), with the highest posterior; concave, so L-BFGS finds it."""
    from scipy.optimize import minimize

    classes = len(counts)
    doubt = (1 / (counts + 2)).numpy()[labels.numpy()][:, None]
    truth = one_hot(labels, classes).double().numpy()
    truth = truth * (1 - doubt) + (1 - truth) * doubt / max(classes - 1, 1)

    def loss_and_gradient(params: Any) -> tuple[float, Any]:
        inverse, shift = math.exp(params[0]), params[1:]
        scores = logs * inverse + shift
        scores = scores - scores.max(1, keepdims=True)
        exponentials = np.exp(scores)
        total = exponentials.sum(1, keepdims=True)
        error = exponentials / total - truth
        prior = params[0] ** 2 / (2 * SPREAD**2) + 1e-3 * shift @ shift
        loss = (np.log(total[:, 0]) - (scores * truth).sum(1)).sum() + prior
        slope = (error * logs).sum() * inverse + params[0] / SPREAD**2
        return float(loss), np.array([slope, *(error.sum(0) + 2e-3 * shift)])

    start, limits = np.zeros(1 + classes), [(-3.0, 3.0), *[(None, None)] * classes]
    found = minimize(loss_and_gradient, start, jac=True, bounds=limits, method="L-BFGS-B").x
    return math.exp(-found[0]), found[1:] - found[1:].mean()


def estimate_shares(probabilities: Tensor, training: Tensor) -> Tensor:
    """Estimate the share of every class by expectation maximisation, (C,).

    Probabilities, (N, C), are calibrated for the shares of training, (C,).

    Reference:
        Saerens, Latinne and Decaestecker, "Adjusting the Outputs of a Classifier to New a Priori
        Probabilities", Neural Computation 2002.
    """
    training = training.double().to(probabilities.device)
    shares = training
    for _ in range(1000):
        before, shares = shares, adjust_to_shares(probabilities, training, shares).mean(0)
        if (shares - before).abs().max() < 1e-7:  # converged
            break
    return shares


def adjust_to_shares(probabilities: Tensor, training: Tensor, shares: Tensor) -> Tensor:
    """Probabilities, (..., C), where classes have other shares than those of training, (C,)."""
    device = probabilities.device
    ratio = shares.double().to(device) / training.double().to(device).clamp(min=1e-12)
    weighted = probabilities.double() * ratio
    total = weighted.sum(-1, keepdim=True)
    return torch.where(total > 0, weighted / total, probabilities.double())
