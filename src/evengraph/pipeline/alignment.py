"""Alignment: numbers of another graph, brought to the level and spread they had in training.

Views or prices differ between countries and years by a factor that says nothing about classes, and
a threshold that was learnt on one graph is then wrong on another. Known as adaptive normalisation:
Li, Wang, Shi, Liu and Hou, "Revisiting Batch Normalization For Practical Domain Adaptation", 2016.
"""

from __future__ import annotations

from copy import copy

import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.pipeline.drift import CERTAIN, TrainingStatistics
from evengraph.tables import FeatureEncoder

ENOUGH = 200  # nodes from which means and standard deviations are worth trusting
MOVED = 0.2  # standard deviations from which on a mean has moved
SMALLEST = 0.01  # of a standard deviation in training; what varies less is only moved


def align(
    graph: Data, statistics: TrainingStatistics | None, encoder: FeatureEncoder | None
) -> tuple[Data, str]:
    """Give the number columns of a graph the means and standard deviations of training.

    Only if one of them has clearly moved, and there are enough nodes to tell. This assumes that the
    graph holds the same kinds of nodes in similar shares; what is a flag or a category stays.

    Returns:
        The graph, and a sentence about what moved most; empty if nothing was done.
    """
    if statistics is None or encoder is None or graph.num_nodes < ENOUGH:
        return graph, ""
    x, numbers = graph.x.float(), torch.from_numpy(encoder.numbers).to(graph.x.device)
    means, deviations = (
        torch.tensor(values).to(x) for values in (statistics.means, statistics.deviations)
    )
    now, spread = x.mean(0), x.std(0, correction=0)
    numbers &= deviations > 0
    steps = torch.where(numbers, (now - means) / deviations.clamp(min=1e-12), 0.0)
    if not numbers.any() or steps.abs().max() <= max(MOVED, CERTAIN / len(x) ** 0.5):
        return graph, ""
    scale = torch.where(spread > SMALLEST * deviations, deviations / spread, 1.0)
    aligned = copy(graph)
    aligned.x = torch.where(numbers, (x - now) * scale + means, x).to(graph.x.dtype)
    return aligned, _describe(steps, encoder)


def _describe(steps: Tensor, encoder: FeatureEncoder) -> str:
    index = int(steps.abs().argmax())
    side = "higher" if steps[index] > 0 else "lower"
    return (
        f"{encoder.names[index]} is {abs(steps[index]):.1f} standard deviations {side} than in "
        "training, so all numbers were brought to the mean and spread of training."
    )
