"""Strategies, on evidence made by hand."""

import pytest
import torch

from evengraph.datasets import toy
from evengraph.labelling.pool import Pool
from evengraph.labelling.strategies import STRATEGIES
from evengraph.labelling.suggestions import gather


@pytest.fixture(scope="module")
def evidence():
    pool = Pool.open(toy(200, 1000, 30, 3))
    labels = torch.where(torch.arange(200) % 10 == 0, pool.labels, -1)
    return gather(pool, labels)


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_gives_each_node_a_finite_score_and_the_same_twice(evidence, name):
    scores = STRATEGIES[name].score(evidence)
    assert scores.shape == (200,)
    assert scores.isfinite().all()
    assert torch.equal(scores, STRATEGIES[name].score(evidence))


def test_uncertainty_prefers_the_smallest_gap(evidence):
    top = evidence.probabilities.topk(2, dim=1).values
    gap = top[:, 0] - top[:, 1]
    assert STRATEGIES["uncertainty"].score(evidence).argmax() == gap.argmin()
