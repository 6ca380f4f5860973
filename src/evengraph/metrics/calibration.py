"""Calibration of probabilities on validation nodes, and metrics of calibration."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

MIN_NODES = 30  # validation nodes for a temperature
MIN_NODES_PER_CLASS = 10  # validation nodes of every class for a shift
MANY_NODES = 1_000  # validation nodes from which on the noise of one temperature is negligible
PARTS = 5  # that each is scored with a temperature of the others, to see whether it helps
RELIABLE_NODES = 100  # with fewer validation nodes a temperature is rough
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.05, 20.0
PENALTY = 1e-3  # on shifts; keeps them finite for a class that is never confused


@dataclass(frozen=True, kw_only=True)
class Calibrator:
    """Temperature scaling fitted on validation nodes, with an optional shift of each class.

    Log-probabilities are divided by one temperature, which does not change the argmax. A method
    that weights rare classes up also predicts them too often; a shift of each class corrects
    that, but may change the argmax. It is fitted on request only, and only where every class has
    enough validation nodes. With few nodes, a temperature may make things worse: it stays 1 unless
    temperatures of four fifths of the nodes lower the log loss of the others by more than one
    standard error. `note` says what was not fitted and why.

    Args:
        temperature: Above 1 makes the model less confident, below 1 more.
        shift: Added to the log-probability of each class; empty for none.
        nodes: Number of validation nodes, or other held-out nodes, that it was fitted to.
        note: What was not fitted, and why.

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
        if not all(math.isfinite(value) for value in self.shift):
            raise ValueError(f"shift must be finite, got {self.shift}.")

    @classmethod
    def fit(cls, probabilities: Tensor, labels: Tensor, *, shift: bool = False) -> Self:
        """Fit to validation nodes by maximum likelihood.

        Args:
            probabilities: Softmax output for the validation nodes.
            labels: Their labels.
            shift: Fit a shift of each class, too.

        Shapes:
            probabilities: (V, C)
            labels: (V,)
        """
        _check(probabilities, labels)
        nodes, num_classes = probabilities.shape
        if nodes < MIN_NODES:
            note = f"{nodes} held-out nodes are too few to calibrate on, {MIN_NODES} are needed; "
            return cls(nodes=nodes, note=f"{note}probabilities are unchanged.")
        logs = _logs(probabilities)
        if bool((logs.argmax(1) == labels.to(logs.device)).all()):
            note = f"All {nodes} held-out nodes are predicted correctly, so overconfidence "
            note += "cannot be measured; probabilities are unchanged."
            return cls(nodes=nodes, note=note)
        rarest = int(torch.bincount(labels, minlength=num_classes).min())
        if shift and rarest >= MIN_NODES_PER_CLASS:
            return cls(**_with_shift(logs, labels), nodes=nodes)
        temperature = _temperature(logs, labels)
        if nodes < MANY_NODES and not _helps(logs, labels.to(logs.device)):
            note = f"a temperature of {temperature:.2f} would fit the {nodes} held-out nodes, but "
            note += "on nodes that it was not fitted to it does not help beyond noise; "
            return cls(nodes=nodes, note=f"{note}probabilities are unchanged.")
        note = f"The rarest class has {rarest} held-out nodes, {MIN_NODES_PER_CLASS} are needed "
        note += "for a shift; only the temperature was fitted."
        return cls(temperature=temperature, nodes=nodes, note=note if shift else "")

    def __call__(self, probabilities: Tensor) -> Tensor:
        """Calibrate probabilities, (M, C); the argmax stays unless there is a shift."""
        if self.temperature == 1 and not self.shift:
            return probabilities
        logs = _logs(probabilities) / self.temperature
        if self.shift:
            shift = torch.tensor(self.shift, dtype=logs.dtype, device=logs.device)
            return (logs + shift).softmax(1).to(probabilities.dtype)
        result = logs.softmax(1).to(probabilities.dtype)
        # Less confident probabilities can round to a tie, whose argmax may be another class.
        first = probabilities.argmax(1, keepdim=True)
        largest = result.max(1, keepdim=True).values
        changed = result.argmax(1, keepdim=True) != first
        above = torch.nextafter(largest, torch.full_like(largest, math.inf))
        return torch.where(changed, result.scatter(1, first, above), result)

    def threshold(self, value: float, positive: int) -> float:
        """Map a threshold of one of two classes, so that the same nodes reach it afterwards."""
        return carried(self, value, positive)

    def describe(self) -> str:
        """Summarise the fit in one sentence."""
        if self.temperature == 1 and not self.shift and self.note:
            return f"not calibrated: {self.note}"
        change = "confidence unchanged"
        if abs(self.temperature - 1) >= 0.005:
            change = "less confident" if self.temperature > 1 else "more confident"
        shifted = " and a shift of each class" if self.shift else ""
        return (
            f"calibrated on {self.nodes:,} held-out nodes: temperature {self.temperature:.2f}"
            f"{shifted} ({change})"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON types."""
        return {**asdict(self), "shift": list(self.shift)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Rebuild from `as_dict`."""
        try:
            return cls(
                temperature=float(content["temperature"]),
                shift=tuple(float(value) for value in content["shift"]),
                nodes=int(content["nodes"]),
                note=str(content["note"]),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"Not a saved calibrator: {error!r}.") from None


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


def carried(transform: Callable[[Tensor], Tensor], value: float, positive: int) -> float:
    """A threshold on probabilities of two classes, after they have been transformed."""
    rest = max(1 - value, 2**-25)  # the largest that single precision rounds to 1
    pair = torch.tensor([[rest, value]], dtype=torch.double)
    return float(transform(pair if positive == 1 else pair.flip(1))[0, positive])


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
    """Logarithms in double precision; zeros count as the smallest positive number."""
    return probabilities.clamp(min=torch.finfo(probabilities.dtype).tiny).double().log()


def _temperature(logs: Tensor, labels: Tensor) -> float:
    """Maximum likelihood by bisecting the slope: the likelihood is concave in 1 / temperature."""
    true = logs.gather(1, labels.to(logs.device).unsqueeze(1)).squeeze(1)

    def slope(inverse: float) -> float:
        expected = ((logs * inverse).softmax(1) * logs).sum(1)
        return float((true - expected).mean())

    low, high = 1 / MAX_TEMPERATURE, 1 / MIN_TEMPERATURE
    for _ in range(60):
        middle = (low + high) / 2
        if slope(middle) > 0:
            low = middle
        else:
            high = middle
    return 2 / (low + high)


def _helps(logs: Tensor, labels: Tensor) -> bool:
    """Whether temperatures lower the log loss of nodes that they were not fitted to, beyond noise.

    Mistakes are spread over all parts: without one, a part would ask for full confidence.
    """
    right, part = logs.argmax(1) == labels, torch.empty_like(labels)
    part[right.int().argsort(stable=True)] = torch.arange(len(labels), device=part.device) % PARTS
    gains = torch.zeros_like(logs[:, 0])
    for index in range(PARTS):
        scored, fitted = part == index, part != index
        scaled = (logs[scored] / _temperature(logs[fitted], labels[fitted])).log_softmax(1)
        gain = (scaled - logs[scored]).gather(1, labels[scored].unsqueeze(1))
        gains[scored] = gain.squeeze(1)
    error = float(gains.std()) / math.sqrt(len(labels))
    return float(gains.mean()) > error


def _with_shift(logs: Tensor, labels: Tensor) -> dict[str, Any]:
    """Fit temperature and shifts together; also concave, so L-BFGS finds the optimum."""
    from scipy.optimize import minimize

    inputs, num_classes = logs.cpu().numpy(), logs.shape[1]
    truth = np.eye(num_classes)[labels.cpu().numpy()]

    def loss_and_gradient(params: Any) -> tuple[float, Any]:
        inverse, shift = params[0], params[1:]
        scores = inputs * inverse + shift
        scores = scores - scores.max(1, keepdims=True)
        exponentials = np.exp(scores)
        total = exponentials.sum(1, keepdims=True)
        error = exponentials / total - truth
        loss = np.mean(np.log(total[:, 0]) - (scores * truth).sum(1)) + PENALTY * shift @ shift
        gradient = [(error * inputs).sum(1).mean(), *(error.mean(0) + 2 * PENALTY * shift)]
        return float(loss), np.array(gradient)

    start = np.array([1.0, *([0.0] * num_classes)])
    bounds = [(1 / MAX_TEMPERATURE, 1 / MIN_TEMPERATURE), *([(None, None)] * num_classes)]
    found = minimize(loss_and_gradient, start, jac=True, bounds=bounds, method="L-BFGS-B")
    inverse, *shift = found.x.tolist()
    return {"temperature": 1 / inverse, "shift": tuple(shift)}


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
