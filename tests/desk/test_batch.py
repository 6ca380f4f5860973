"""Diverse batches."""

import torch

from evengraph.desk.suggestions import choose

ROWS = torch.tensor([[0.0], [0.0], [5.0], [9.0]])
SCORES = torch.tensor([1.0, 0.99, 0.8, 0.0])
EVERY = torch.ones(4, dtype=torch.bool)


def test_a_copy_of_a_chosen_node_gives_way_to_one_unlike_it():
    assert choose(SCORES, ROWS, EVERY, 2).tolist() == [0, 2]
    assert choose(SCORES, ROWS, EVERY, 2, spread=0.0).tolist() == [0, 1]


def test_only_candidates_are_chosen_each_once():
    candidates = torch.tensor([False, True, True, True])
    assert sorted(choose(SCORES, ROWS, candidates, 9).tolist()) == [1, 2, 3]
    assert sorted(choose(torch.ones(4), torch.zeros(4, 1), EVERY, 4).tolist()) == [0, 1, 2, 3]
