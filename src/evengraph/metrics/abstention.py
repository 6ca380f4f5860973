"""Abstention: leave the least certain nodes undecided, and know what that gains on validation."""

from __future__ import annotations

from typing import NamedTuple, Self

import torch
from torch import Tensor

from evengraph.metrics.multiclass import confusion_matrix, recalls

LEVELS = 100  # shares of nodes left undecided: 0%, 1%, ... 99%


class Abstention(NamedTuple):
    """From which confidence on a model decides, and how good it then is on validation.

    Args:
        confidence: Probability of the predicted class from which on a node is decided.
        coverage: Share of the validation nodes that are decided.
        error: Share of wrong classes among them.
        balanced_error: The same, averaged over classes.
    """

    confidence: float
    coverage: float
    error: float
    balanced_error: float


class RiskCurve(NamedTuple):
    """Abstention at every share of undecided nodes, and without any.

    Args:
        nodes: Number of validation nodes.
        levels: From none undecided to nearly all.
    """

    nodes: int
    levels: tuple[Abstention, ...]

    @classmethod
    def of(cls, labels: Tensor, probabilities: Tensor) -> Self:
        """Measure validation nodes.

        Shapes:
            labels: (V,)
            probabilities: (V, C)
        """
        confidence, predicted = probabilities.double().max(1)
        order = confidence.sort().values
        starts = sorted({share * len(order) // LEVELS for share in range(LEVELS)})
        levels: list[Abstention] = []
        for start in starts:
            least = 0.0 if start == 0 else float(order[start])
            decided = confidence >= least
            if levels and levels[-1].coverage == float(decided.double().mean()):
                continue  # nodes of equal confidence are decided together
            parts = labels[decided], predicted[decided]
            confusion = confusion_matrix(*parts, probabilities.shape[1])
            recall = recalls(confusion)
            wrong = (parts[0] != parts[1]).double().mean()
            levels.append(
                Abstention(
                    confidence=least,
                    coverage=float(decided.double().mean()),
                    error=float(wrong),
                    balanced_error=1 - float(recall[torch.isfinite(recall)].mean()),
                )
            )
        return cls(len(order), tuple(levels))

    def at_share(self, share: float) -> Abstention:
        """Leave at least this share of the validation nodes undecided."""
        if not 0 <= share < 1:
            raise ValueError(f"abstain must lie in [0, 1), got {share}.")
        rounding = 1e-9
        enough = (level for level in self.levels if 1 - level.coverage >= share - rounding)
        return next(enough, self.levels[-1])

    def at_error(self, error: float) -> Abstention:
        """Leave so few nodes undecided that the error is no larger."""
        if not 0 <= error < 1:
            raise ValueError(f"max_error must lie in [0, 1), got {error}.")
        for level in self.levels:
            if level.error <= error:
                return level
        best = min(self.levels, key=lambda level: level.error)
        raise ValueError(
            f"max_error must be at least {best.error:.3f}, the lowest error on validation, "
            f"got {error}."
        )
