"""Bands of agreement, counted by hand."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.metrics.evaluation import EDGES, agreement_bands


def test_nodes_are_counted_in_their_bands():
    agreement = torch.tensor([1.0, 0.96, 0.95, 0.8, 0.75, 0.6, 0.2])
    correct = torch.tensor([True, True, False, True, False, False, False])
    assert agreement_bands(agreement, correct) == [
        {"from": 0.0, "nodes": 1, "correct": 0},
        {"from": 0.5, "nodes": 1, "correct": 0},
        {"from": 0.75, "nodes": 2, "correct": 1},
        {"from": 0.95, "nodes": 3, "correct": 2},
    ]


def test_a_sum_of_rounded_weights_is_not_below_its_band():
    thirds = torch.full((3,), 1 / 3).sum()  # in single precision
    assert agreement_bands(thirds.unsqueeze(0) * 0.75, torch.tensor([True]))[0]["from"] == 0.75


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans())))
def test_every_node_is_in_one_band(nodes):
    agreement = torch.tensor([value for value, _ in nodes], dtype=torch.float64)
    correct = torch.tensor([hit for _, hit in nodes], dtype=torch.bool)
    bands = agreement_bands(agreement, correct)
    assert sum(band["nodes"] for band in bands) == len(nodes)
    assert sum(band["correct"] for band in bands) == int(correct.sum())
    assert [band["from"] for band in bands] == sorted({band["from"] for band in bands})
    assert {band["from"] for band in bands} <= set(EDGES)
