"""TAM's margins against loops over nodes and classes, and where they vanish."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.ops.losses import divergences, soft_labels, topology_margins
from small_graphs import normal


def shares(size, num_classes, seed=0):
    return normal(size, num_classes, seed=seed).softmax(1)


def js(p, q):
    """Jensen-Shannon divergence of two lists."""
    middle = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    return sum(
        (a * math.log(a / m) + b * math.log(b / m)) / 2
        for a, b, m in zip(p, q, middle, strict=True)
    )


def by_hand(around, labels, connectivity, distribution):
    num_classes = around.shape[1]
    usual = []
    for label in range(num_classes):
        rows = [row for row, own in zip(around.tolist(), labels, strict=True) if own == label]
        usual.append([sum(column) / len(rows) for column in zip(*rows, strict=True)])
    found = []
    for row, y in zip(around.tolist(), labels, strict=True):
        line = []
        for k in range(num_classes):
            acm = min(1.0, row[y] / usual[y][y] * usual[y][k] / row[k])
            gap = max(js(usual[y], usual[k]), 1e-6)
            adm = (js(row, usual[y]) ** 2 + gap**2 - js(row, usual[k]) ** 2) / (2 * gap**2)
            line.append(0.0 if k == y else connectivity * math.log(acm) - distribution * adm)
        found.append(line)
    return torch.tensor(found, dtype=torch.float64)


@given(st.integers(0, 99), st.sampled_from([(2.5, 0.5), (1.0, 0.0), (0.0, 1.0)]))
def test_margins_by_hand(seed, strengths):
    labels = [0, 0, 1, 1, 1, 2, 0]
    around = shares(7, 3, seed)
    found = topology_margins(around, torch.tensor(labels), *strengths)
    torch.testing.assert_close(found, by_hand(around, labels, *strengths), rtol=1e-6, atol=1e-8)


def test_a_node_among_others_gets_a_smaller_margin_against_them():
    around = torch.tensor([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
    found = topology_margins(around, torch.tensor([0, 0, 1]), 1.0, 0.0)
    # class 0 is usually (0.7, 0.3): ratio of own to other 7/3; the second node has 1
    expected = [[0, 0], [0, math.log(3 / 7)], [0, 0]]
    torch.testing.assert_close(found, torch.tensor(expected))


def test_the_only_node_of_its_class_is_as_usual():
    labels = torch.tensor([0, 1, 2])
    found = topology_margins(shares(3, 3), labels, 2.5, 0.5)
    torch.testing.assert_close(found, torch.zeros(3, 3, dtype=torch.float64), atol=1e-9, rtol=0)


def test_shares_of_nothing_give_no_infinities():
    around = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    found = topology_margins(around, torch.tensor([0, 0, 1, 2]), 2.5, 0.5)
    assert torch.isfinite(found).all()


def test_divergences_are_those_of_pairs():
    one, other = shares(4, 5, 1), shares(3, 5, 2)
    expected = [[js(p, q) for q in other.tolist()] for p in one.tolist()]
    torch.testing.assert_close(divergences(one, other), torch.tensor(expected).double())
    assert divergences(one, one).diagonal().tolist() == pytest.approx([0] * 4)


def test_soft_labels_are_labels_or_smoothed_predictions():
    logits, counts = normal(5, 3), torch.tensor([6, 3, 1])
    found = soft_labels(logits, torch.tensor([4, 1]), torch.tensor([2, 0]), counts, 1.2)
    assert found[4].tolist() == [0, 0, 1]
    assert found[1].tolist() == [1, 0, 0]
    warmth = [0.4 * n / 10 + 0.6 for n in (6, 3, 1)]
    scale = [1.2 * (t + 1 - max(warmth)) for t in warmth]
    for node in (0, 2, 3):
        parts = [math.exp(float(z) * s) for z, s in zip(logits[node], scale, strict=True)]
        assert found[node].tolist() == pytest.approx([p / sum(parts) for p in parts])


def test_equal_classes_are_smoothed_alike():
    logits = normal(5, 3)
    nobody = torch.zeros(0, dtype=torch.long)
    found = soft_labels(logits, nobody, nobody, torch.tensor([4, 4, 4]), 0.8)
    torch.testing.assert_close(found, (0.8 * logits).softmax(1))
