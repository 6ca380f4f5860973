"""Rows with classes and weights, for trees."""

import torch

from small_graphs import normal


def rows_of(num_classes, count=300):
    """Five columns, one of few values, labels that depend on them, and weights of mean 1."""
    x = normal(count, 5).float()
    x[:, 3] = x[:, 3].round()
    labels = (x[:, 0] + x[:, 3] * x[:, 1] > 0).long() + (x[:, 4] > 1).long() * (num_classes - 2)
    weights = torch.rand(count, generator=torch.Generator().manual_seed(2)).double() + 0.5
    return x, labels, weights / weights.mean()
