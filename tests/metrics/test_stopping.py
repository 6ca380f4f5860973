"""Criteria of early stopping against scikit-learn."""

import pytest
import torch
from sklearn.metrics import log_loss, recall_score

from evengraph.metrics.selection import batched_stopping_scores, stopping_score, validation_score
from small_graphs import normal, small_task


def expected(on, labels, logits):
    if on == "loss":
        return -log_loss(labels, logits.softmax(1), labels=range(logits.shape[1]))
    return recall_score(labels, logits.argmax(1), labels=labels.unique(), average="macro")


@pytest.mark.parametrize("on", ["loss", "accuracy"])
@pytest.mark.parametrize("seed", range(3))
def test_one_run(on, seed):
    task = small_task()
    logits = normal(task.graph.num_nodes, 3, seed=seed)
    value = stopping_score(on, logits, task)
    assert float(value) == pytest.approx(expected(on, task.graph.y[task.val], logits[task.val]))
    assert stopping_score("score", logits, task) == validation_score(logits, task)


@pytest.mark.parametrize("on", ["loss", "accuracy"])
def test_several_runs_with_nodes_that_do_not_count(on):
    labels = torch.randint(4, (5, 30), generator=torch.Generator().manual_seed(1))
    labels[0] = labels[0].clamp(max=2)  # a class without nodes
    mask = torch.rand(5, 30, generator=torch.Generator().manual_seed(2)) < 0.7
    logits = normal(5, 30, 4)
    values = batched_stopping_scores(on, labels, logits, mask, torch.full((5,), -1))
    for value, one, scores, counted in zip(values, labels, logits, mask, strict=True):
        assert float(value) == pytest.approx(expected(on, one[counted], scores[counted]))
