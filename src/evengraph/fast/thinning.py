"""Thinning: a random part of the pairs of nodes that are several steps apart.

On a dense graph two steps reach most nodes, and a matrix of all pairs does not fit in memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Thinning:
    """Keep so many distant nodes per node, on average and at most, with larger weights.

    A pair is kept with the probability `limit` over the number of walks from its end with more of
    them, and its weight is divided by that probability: the expectation of every entry is its
    weight. Whether it is kept depends on its two nodes alone, so the matrix stays symmetric. Direct
    neighbours are all kept.
    """

    walks: NDArray[np.float64]  # from each node, at least the nodes that it reaches
    limit: int

    @classmethod
    def to_fit(cls, walks: NDArray[np.float64], direct: int, most: float) -> Thinning | None:
        """The thinning with the largest limit for `most` entries; None if none fits."""
        low, high = 0, max(int(most), 1)
        while low < high:
            limit = (low + high + 1) // 2
            if direct + np.minimum(walks, limit).sum() <= most:
                low = limit
            else:
                high = limit - 1
        return cls(walks, low) if low else None

    def __call__(self, rows: Tensor, columns: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Which entries to keep, (E,), and the weights of all if kept; of direct neighbours 1."""
        walks = torch.from_numpy(self.walks).to(rows.device)
        share = self.limit / torch.maximum(walks[rows], walks[columns])
        share = torch.where(weights < 1, share.clamp(max=1.0), 1.0)
        first, second = torch.minimum(rows, columns), torch.maximum(rows, columns)
        keep = uniform(first * walks.numel() + second) < share
        return keep, (weights / share).to(weights.dtype)


def uniform(keys: Tensor) -> Tensor:
    """A number in [0, 1) for each integer, the same on every device (splitmix64)."""
    mixed = keys + _signed(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ _shifted(mixed, shift)) * _signed(factor)
    return _shifted(mixed ^ _shifted(mixed, 31), 11).double() * 2.0**-53


def _shifted(numbers: Tensor, bits: int) -> Tensor:
    """Shifted to the right as unsigned numbers."""
    shifted: Tensor = (numbers >> bits) & (2 ** (64 - bits) - 1)
    return shifted


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number
