"""Class shares that differ from training: estimate them, and correct probabilities for them.

Both assume label shift: the classes are more or less frequent than in training, but a node of a
class looks as it did there. Probabilities must be calibrated.
"""

from __future__ import annotations

import torch
from torch import Tensor

STEPS = 1000
CLOSE = 1e-7  # change of a share after which the estimate has converged


def estimate_shares(probabilities: Tensor, training: Tensor) -> Tensor:
    """Estimate the share of every class by expectation maximisation, (C,).

    Args:
        probabilities: Calibrated predictions for the nodes whose shares are wanted.
        training: The shares that they are calibrated for.

    Shapes:
        probabilities: (N, C)
        training: (C,)

    Reference:
        Saerens, Latinne and Decaestecker, "Adjusting the Outputs of a Classifier to New a Priori
        Probabilities", Neural Computation 2002.
    """
    training = training.double().to(probabilities.device)
    shares = training
    for _ in range(STEPS):
        before = shares
        shares = adjust_to_shares(probabilities, training, before).mean(0)
        if (shares - before).abs().max() < CLOSE:
            break
    return shares


def adjust_to_shares(probabilities: Tensor, training: Tensor, shares: Tensor) -> Tensor:
    """Probabilities where classes have other shares than those they are calibrated for.

    Shapes:
        probabilities: (..., C)
        training, shares: (C,)
    """
    device = probabilities.device
    ratio = shares.double().to(device) / training.double().to(device).clamp(min=1e-12)
    weighted = probabilities.double() * ratio
    total = weighted.sum(-1, keepdim=True)
    return torch.where(total > 0, weighted / total, probabilities.double())
