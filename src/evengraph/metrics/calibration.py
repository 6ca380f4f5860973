"""Probabilities that mean what they say: fitted on validation nodes, never on test nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

FEWEST = 30  # validation nodes for a temperature
FEWEST_OF_A_CLASS = 10  # of every class, for a shift between classes
FEW = 100  # below that, a temperature is rough
SHARPEST, SOFTEST = 0.05, 20.0  # temperatures
PENALTY = 1e-3  # on shifts, which keeps them finite where a class is never confused


@dataclass(frozen=True, kw_only=True)
class Calibrator:
    """Makes probabilities milder or sharper until they fit what validation nodes turned out to be.

    All logarithms are divided by one temperature, so the order of classes stays and the class
    that came first still does. A method that weighs rare classes up also calls them too often;
    a shift of each class against the others mends that, but changes which class comes first. It
    is made on request alone, and only where validation holds enough nodes of every class. What
    validation does not support is left out, and `note` says why.

    Args:
        temperature: Above 1 is milder, below 1 sharper.
        shift: Added to the logarithm of each class; empty for none.
        nodes: How many validation nodes it stands on.
        note: What was left undone, in words.

    Reference:
        Guo, Pleiss, Sun and Weinberger, "On Calibration of Modern Neural Networks", ICML 2017.
    """

    temperature: float = 1.0
    shift: tuple[float, ...] = ()
    nodes: int = 0
    note: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.temperature < math.inf:
            raise ValueError(f"temperature must be above 0 and finite, got {self.temperature}.")
        if not all(math.isfinite(one) for one in self.shift):
            raise ValueError(f"shift must be finite, got {self.shift}.")

    @classmethod
    def fit(cls, probabilities: Tensor, labels: Tensor, *, shift: bool = False) -> Self:
        """Fit to validation nodes, by maximum likelihood.

        Args:
            probabilities: Of the validation nodes; the softmax of logits.
            labels: What they are.
            shift: Also move classes against one another.

        Shapes:
            probabilities: (V, C)
            labels: (V,)
        """
        _check(probabilities, labels)
        nodes, num_classes = probabilities.shape
        if nodes < FEWEST:
            return cls(
                nodes=nodes,
                note=f"{nodes} validation nodes are too few to calibrate on, {FEWEST} are needed: "
                "probabilities are as the method gave them.",
            )
        logs = _logs(probabilities)
        if bool((logs.argmax(1) == labels.to(logs.device)).all()):
            return cls(
                nodes=nodes,
                note=f"All {nodes} validation nodes are right, so they cannot tell how sure is too "
                "sure: probabilities are as the method gave them.",
            )
        rarest = int(torch.bincount(labels, minlength=num_classes).min())
        if shift and rarest >= FEWEST_OF_A_CLASS:
            return cls(**_with_shift(logs, labels), nodes=nodes)
        note = (
            f"The rarest class has {rarest} validation nodes, {FEWEST_OF_A_CLASS} are needed to "
            "move classes against one another: temperature alone."
        )
        return cls(temperature=_temperature(logs, labels), nodes=nodes, note=note if shift else "")

    def __call__(self, probabilities: Tensor) -> Tensor:
        """Calibrated probabilities, (M, C); the same class comes first unless there is a shift."""
        if self.temperature == 1 and not self.shift:
            return probabilities
        logs = _logs(probabilities) / self.temperature
        if self.shift:
            shift = torch.tensor(self.shift, dtype=logs.dtype, device=logs.device)
            return (logs + shift).softmax(1).to(probabilities.dtype)
        result = logs.softmax(1).to(probabilities.dtype)
        # Milder probabilities can round to a tie, which another class might win.
        first = probabilities.argmax(1, keepdim=True)
        largest = result.max(1, keepdim=True).values
        lost = result.argmax(1, keepdim=True) != first
        above = torch.nextafter(largest, torch.full_like(largest, math.inf))
        return torch.where(lost, result.scatter(1, first, above), result)

    def threshold(self, value: float, place: int) -> float:
        """What a threshold on one of two probabilities becomes; the order of nodes stays.

        Args:
            value: From which probability on, before calibration.
            place: Of which class, 0 or 1.
        """
        rest = max(1 - value, 2**-25)  # the most that single precision still rounds to 1
        pair = torch.tensor([[rest, value]], dtype=torch.double)
        return float(self(pair if place == 1 else pair.flip(1))[0, place])

    def words(self) -> str:
        """What it stands on and what it does, in a sentence."""
        if self.temperature == 1 and not self.shift and self.note:
            return f"not calibrated: {self.note}"
        change = "neither surer nor less sure"
        if abs(self.temperature - 1) >= 0.005:
            change = "less sure" if self.temperature > 1 else "surer"
        shifted = " and a shift of each class" if self.shift else ""
        return (
            f"calibrated on {self.nodes:,} validation nodes: temperature {self.temperature:.2f}"
            f"{shifted}, which makes the model {change}"
        )

    def as_dict(self) -> dict[str, Any]:
        """The calibrator as JSON can hold it."""
        return {**asdict(self), "shift": list(self.shift)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Read what `as_dict` gave."""
        try:
            shift = tuple(float(one) for one in content["shift"])
            return cls(
                temperature=float(content["temperature"]),
                shift=shift,
                nodes=int(content["nodes"]),
                note=str(content["note"]),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"This is no calibrator: {error!r}.") from None


def expected_calibration_error(labels: Tensor, probabilities: Tensor, bins: int = 15) -> float:
    """How far confidence is from accuracy, on average over nodes in bins of equal width.

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
    place = (confidence * bins).ceil().long().clamp(1, bins) - 1  # a bin holds its upper end
    gaps = torch.zeros(bins, dtype=torch.double, device=confidence.device)
    gaps.index_add_(0, place, confidence - right)
    return float(gaps.abs().sum() / len(labels))


def brier_score(labels: Tensor, probabilities: Tensor) -> float:
    """Mean squared distance of probabilities from the truth, over all classes: from 0 to 2.

    For two classes it is twice what is usual of one probability.
    """
    _check(probabilities, labels)
    truth = one_hot(labels.to(probabilities.device), probabilities.shape[1])
    return float((probabilities.double() - truth).square().sum(1).mean())


def _check(probabilities: Tensor, labels: Tensor) -> None:
    if probabilities.dim() != 2 or not len(labels) or labels.shape != probabilities.shape[:1]:
        raise ValueError(
            "probabilities must have a row for each of at least one label, "
            f"got shapes {tuple(probabilities.shape)} and {tuple(labels.shape)}."
        )
    if not (torch.isfinite(probabilities).all() and (probabilities >= 0).all()):
        raise ValueError("probabilities must be finite and not below 0.")
    if not (probabilities.sum(1) - 1).abs().max() < 1e-3:
        raise ValueError("rows of probabilities must sum to one; take the softmax of logits.")
    if labels.min() < 0 or labels.max() >= probabilities.shape[1]:
        raise ValueError(
            f"labels must lie between 0 and {probabilities.shape[1] - 1}, "
            f"got {int(labels.min())} to {int(labels.max())}."
        )


def _logs(probabilities: Tensor) -> Tensor:
    """Logarithms in double precision; a probability that vanished counts as the least there is."""
    least = torch.finfo(probabilities.dtype).tiny
    return probabilities.clamp(min=least).double().log()


def _temperature(logs: Tensor, labels: Tensor) -> float:
    """The likeliest: the likelihood is concave in one over it, so its slope is bisected."""
    true = logs.gather(1, labels.to(logs.device).unsqueeze(1)).squeeze(1)

    def slope(inverse: float) -> float:
        expected = ((logs * inverse).softmax(1) * logs).sum(1)
        return float((true - expected).mean())

    low, high = 1 / SOFTEST, 1 / SHARPEST
    for _ in range(60):
        middle = (low + high) / 2
        if slope(middle) > 0:
            low = middle
        else:
            high = middle
    return 2 / (low + high)


def _with_shift(logs: Tensor, labels: Tensor) -> dict[str, Any]:
    """Temperature and shifts together; concave as well, so any climb finds the top."""
    from scipy.optimize import minimize

    given, num_classes = logs.cpu().numpy(), logs.shape[1]
    truth = np.eye(num_classes)[labels.cpu().numpy()]

    def cost(at: Any) -> tuple[float, Any]:
        inverse, shift = at[0], at[1:]
        scores = given * inverse + shift
        scores = scores - scores.max(1, keepdims=True)
        chances = np.exp(scores)
        total = chances.sum(1, keepdims=True)
        wrong = chances / total - truth
        loss = np.mean(np.log(total[:, 0]) - (scores * truth).sum(1)) + PENALTY * shift @ shift
        slopes = [(wrong * given).sum(1).mean(), *(wrong.mean(0) + 2 * PENALTY * shift)]
        return float(loss), np.array(slopes)

    start = np.array([1.0, *([0.0] * num_classes)])
    limits = [(1 / SOFTEST, 1 / SHARPEST), *([(None, None)] * num_classes)]
    found = minimize(cost, start, jac=True, bounds=limits, method="L-BFGS-B").x
    return {"temperature": float(1 / found[0]), "shift": tuple(float(one) for one in found[1:])}
