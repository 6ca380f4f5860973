"""Losses of labelled nodes by name, each against a loop over nodes and classes."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.ops import class_loss, conflict_weights, labelled_loss, undirected_adjacency
from evengraph.ops.named_losses import CLASS_LOSSES, NAMED_LOSSES, LabelledLoss
from small_graphs import edges, normal

LABELS = torch.tensor([0, 0, 0, 1, 1, 2])
NODES = torch.tensor([8, 0, 3, 4, 6, 1])
COUNTS = torch.tensor([3, 2, 1])
RING = undirected_adjacency(edges([(node, (node + 1) % 9) for node in range(9)] + [(0, 4)]), 9)


def written_out(name, logits, labels, counts, weights):
    """The mean over nodes, one by one."""
    total = 0.0
    for row, label, weight in zip(logits.tolist(), labels.tolist(), weights, strict=True):
        if name == "balanced_softmax":
            row = [value + math.log(size) for value, size in zip(row, counts, strict=True)]
        if name in ("reweight", "renode"):
            weight *= sum(counts) / len(counts) / counts[label]
        chance = math.exp(row[label]) / sum(math.exp(value) for value in row)
        total -= weight * math.log(chance)
    return total / len(labels)


@given(st.sampled_from(CLASS_LOSSES), st.booleans(), st.integers(0, 99))
def test_losses_of_classes(name, weighed, seed):
    logits = normal(6, 3, seed=seed)
    weights = normal(6, seed=seed + 1).abs() if weighed else None
    found = class_loss(name, LABELS, COUNTS, weights)(logits)
    each = weights.tolist() if weighed else [1.0] * 6
    assert found.item() == pytest.approx(written_out(name, logits, LABELS, [3, 2, 1], each))


@given(st.sampled_from(NAMED_LOSSES), st.booleans(), st.integers(0, 99))
def test_losses_by_name(name, more, seed):
    """Nodes beyond the graph make their classes larger, and weigh one before that."""
    added = torch.tensor([0, 1, 2, 2]) if more else None
    labels, counts = (torch.cat([LABELS, added]), [4, 3, 3]) if more else (LABELS, [3, 2, 1])
    logits = normal(len(labels), 3, seed=seed)
    found = labelled_loss(name, RING, NODES, LABELS, COUNTS, added)(logits)
    weights = [1.0] * len(labels)
    if name == "renode":
        weights[:6] = conflict_weights(RING, NODES, LABELS, COUNTS).tolist()
        assert len(set(weights)) > 3
    expected = written_out(name, logits, labels, counts, weights)
    assert found.item() == pytest.approx(expected, rel=1e-6)


def test_the_weights_of_renode_are_those_of_its_defaults():
    loss = labelled_loss("renode", RING, NODES, LABELS, COUNTS)
    sizes = torch.tensor([2 / 3, 1, 2])[LABELS]
    by_rank = conflict_weights(RING, NODES, LABELS, COUNTS, 0.5, 1.5)
    torch.testing.assert_close(loss.weights, by_rank * sizes)


@pytest.mark.parametrize("offsets", [None, torch.tensor([0.5, -1.0, 2.0])])
def test_margins_are_added(offsets):
    logits, margins = normal(6, 3), normal(6, 3, seed=1)
    loss = LabelledLoss(LABELS, offsets=offsets)
    torch.testing.assert_close(loss(logits, margins), loss(logits + margins))
    assert loss(logits, torch.zeros(())) == loss(logits)


def test_reweighting_gives_every_class_the_same_say():
    logits = normal(6, 3).float()
    mean = torch.nn.functional.cross_entropy(logits, LABELS, 1 / COUNTS)
    torch.testing.assert_close(class_loss("reweight", LABELS, COUNTS)(logits), mean)
