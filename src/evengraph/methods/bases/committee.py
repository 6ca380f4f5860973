"""Committee: what each of several models predicts, and how far they agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Committee(NamedTuple):
    """Predictions of the members of a committee, and the weight of each vote.

    Shapes:
        probabilities: (M, N, C)
        weights: (M,), sum to one
    """

    probabilities: Tensor
    weights: Tensor

    @classmethod
    def even(cls, probabilities: Tensor) -> Committee:
        """A committee whose votes have the same weight."""
        members = probabilities.shape[0]
        return cls(probabilities, probabilities.new_full((members,), 1 / members))

    @classmethod
    def joined(cls, committees: Sequence[Committee], weights: Sequence[float]) -> Committee:
        """One committee of all members, where each committee has a weight."""
        parts = [part.weights * weight for part, weight in zip(committees, weights, strict=True)]
        return cls(torch.cat([part.probabilities for part in committees]), torch.cat(parts))

    def to(self, device: torch.device) -> Committee:
        """The same committee on a device."""
        return Committee(*(part.to(device) for part in self))

    def interval(self, classes: Tensor, share: float = 0.8) -> tuple[Tensor, Tensor]:
        """Between which probabilities of a class most of the votes lie, by weight.

        Args:
            classes: One class per node.
            share: Of the votes; the rest is cut off at both ends.

        Shapes:
            classes: int64, (N,)
            returns: (N,) each
        """
        members = self.probabilities.shape[0]
        index = classes.expand(members, -1).unsqueeze(2)
        values, order = self.probabilities.gather(2, index).squeeze(2).sort(dim=0)
        votes = self.weights[order].cumsum(0)  # (M, N)
        cut = (1 - share) / 2
        ends = (
            (votes < level - 1e-6).sum(0).clamp(max=members - 1).unsqueeze(0)
            for level in (cut, 1 - cut)
        )
        low, high = (values.gather(0, end).squeeze(0) for end in ends)
        return low, high

    def agreement(self, predicted: Tensor) -> Tensor:
        """The share of the votes, by weight, that each node's predicted class gets.

        Shapes:
            predicted: int64, (N,)
            returns: (N,), between 0 and 1
        """
        votes = (self.probabilities.argmax(2) == predicted).to(self.weights)
        return (self.weights @ votes).clamp(0, 1)
