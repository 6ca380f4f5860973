"""Robust scaling of columns that leaves sparse columns sparse."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

FAR = 10.0  # scaled values of spread columns are clipped here: an outlier is an outlier
SPREAD = 1.349  # quartile distance of a normal distribution with unit variance
SAMPLE = 2**22  # entries that quartiles are taken from
ROWS = 4_096  # rows that are read at a time
FEWEST = 100  # rows of that sample, however many columns there are


def sample_step(num_rows: int, num_columns: int) -> int:
    """Of how many rows one is in the sample that quartiles are taken from."""
    return max(num_rows // max(SAMPLE // max(num_columns, 1), FEWEST), 1)


class Scaling(NamedTuple):
    """How each column is shifted and scaled.

    A spread column is centred at its median and divided by its quartile distance. A column whose
    quartiles are equal, such as a word or a flag, is shifted by its most frequent value, usually
    zero, and divided by its largest absolute value: dividing by its deviation would make a rare
    word as large as it is rare.

    Shapes:
        centre, scale: float32, (F,)
        spread: bool, (F,)
    """

    centre: Tensor
    scale: Tensor
    spread: Tensor

    @classmethod
    def of(cls, x: Tensor) -> Scaling:
        """Measure columns; quartiles are those of evenly spaced rows if there are many entries.

        Shapes:
            x: (N, F)
        """
        x = x.detach().float()
        return cls.measure(x[:: sample_step(*x.shape)], x.split(ROWS))

    @classmethod
    def measure(cls, sample: Tensor, parts: Iterable[Tensor]) -> Scaling:
        """Measure columns: quartiles in a sample of the rows, largest values in parts of all."""
        sample = sample.sort(dim=0).values
        low, centre, high = (
            sample[int(share * (sample.shape[0] - 1))] for share in (0.25, 0.5, 0.75)
        )
        spread = high > low
        largest = torch.stack([(part - centre).abs().amax(0) for part in parts]).amax(0)
        scale = torch.where(spread, (high - low) / SPREAD, largest)
        return cls(centre, torch.where(scale > 0, scale, 1.0), spread)

    def __call__(self, x: Tensor) -> Tensor:
        """Scale the columns of a table, float32, (n, F)."""
        scaled = (x.float() - self.centre) / self.scale
        return torch.where(self.spread, scaled.clamp(-FAR, FAR), scaled)
