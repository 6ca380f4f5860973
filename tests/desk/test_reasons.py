"""Reasons in words."""

from dataclasses import replace

import torch

from evengraph.datasets import toy
from evengraph.desk.evidence import reasons
from evengraph.desk.suggestions import Pool, gather


def evidence(*rows):
    pool = Pool.open(toy(20, 40, 5, 2))
    labels = torch.where(torch.arange(20) < 2, pool.labels, -1)
    found = gather(pool, labels)
    probabilities = torch.tensor([*rows] + [[0.5, 0.5]] * (20 - len(rows)))
    return replace(found, probabilities=probabilities)


def test_says_what_the_model_thinks():
    texts = reasons(evidence([0.9, 0.1], [0.52, 0.48]), torch.tensor([0, 1]), ("ham", "spam"))
    assert texts[0].startswith("likely ham")
    assert texts[1].startswith("ham or spam")
