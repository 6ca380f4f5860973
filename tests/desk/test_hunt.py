"""Hunting for the rarest class."""

from dataclasses import replace
from math import ceil

import pytest
import torch

from evengraph.datasets import toy
from evengraph.desk.evidence import LARGEST as MOST
from evengraph.desk.evidence import PART, TIMES, find_hunt, reasons
from evengraph.desk.suggestions import Pool, choose_nodes, gather


def evidence(shares, labelled, budget=10):
    """100 nodes of which the model is sure; the first of each class have labels."""
    predicted = torch.repeat_interleave(torch.arange(len(shares)), torch.tensor(shares))
    labels = torch.full((100,), -1)
    for label, count in enumerate(labelled):
        labels[(predicted == label).nonzero().squeeze(1)[:count]] = label
    pool = replace(Pool.open(toy(100, 400, 10, 2)), class_names=tuple("abcd"[: len(shares)]))
    probabilities = torch.eye(len(shares))[predicted]
    return replace(gather(pool, labels, budget=budget), probabilities=probabilities)


def test_the_rarest_class_gets_an_equal_share_of_the_labels():
    hunt = find_hunt(evidence([70, 20, 10], [2, 3, 5]))
    assert hunt.label == 2
    assert int(hunt.likely.sum()) == 5  # without the five that have labels
    assert hunt.number == 2  # a third of 20 labels, rounded up, less the five


def test_or_twice_its_share_of_the_nodes_but_at_most_half():
    assert find_hunt(evidence([40, 40, 20], [6, 6, 10])).number == ceil(TIMES * 0.2 * 32) - 10
    assert find_hunt(evidence([60, 40], [9, 13], 10)).number == MOST * 32 - 13


def test_other_classes_keep_a_part_of_the_batch():
    assert find_hunt(evidence([60, 40], [20, 1])).number == PART


@pytest.mark.parametrize(
    ("shares", "labelled"), [([50, 50], [9, 1]), ([52, 48], [9, 1]), ([90, 10], [9, 0])]
)
def test_a_class_of_equal_size_or_without_a_label_is_not_hunted(shares, labelled):
    assert find_hunt(evidence(shares, labelled)) is None


def test_a_class_that_no_candidate_may_be_of_is_passed_over():
    assert find_hunt(evidence([65, 25, 10], [2, 2, 10])).label == 1


def test_it_needs_a_model():
    assert find_hunt(replace(evidence([90, 10], [9, 1]), probabilities=None)) is None


def test_the_default_offers_likely_nodes_of_the_rarest_class_first_and_says_so():
    found = evidence([80, 20], [20, 6])
    nodes, _ = choose_nodes(found)
    assert len(set(nodes.tolist())) == 10
    assert (nodes[:3] >= 80).all()  # the part that may be hunted
    texts = reasons(found, nodes, ("honest", "fraud"))
    assert texts[0].startswith("likely fraud (100%), the rarest class")
    assert not any("rarest" in text for text, node in zip(texts, nodes, strict=True) if node < 80)


def test_once_it_has_enough_the_batch_is_ranked_as_a_whole():
    found = evidence([80, 20], [4, 16])
    assert find_hunt(found).number == 0
    assert len(choose_nodes(found)[0]) == 10


@pytest.mark.parametrize("budget", [1, 2, 5, 10])
def test_the_part_is_the_same_however_batches_are_cut(budget):
    numbers = [
        find_hunt(evidence([70, 30], [20 + known, 1], budget)).number
        for known in range(0, 20, budget)
    ]
    assert sum(numbers) == 2 * PART


def test_one_node_at_a_time():
    assert len(choose_nodes(evidence([80, 20], [20, 6], 1))[0]) == 1


def test_a_budget_above_the_number_of_candidates():
    found = evidence([80, 20], [79, 2], 60)
    nodes = choose_nodes(found)[0]
    assert sorted(nodes.tolist()) == found.candidates.nonzero().squeeze(1).tolist()
