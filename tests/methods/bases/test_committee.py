"""Votes of a committee, counted by hand."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.methods.bases.method import Committee
from small_graphs import normal


def one_hot(*classes):
    """A member that is certain of these classes, (N, 2)."""
    return torch.nn.functional.one_hot(torch.tensor(classes), 2).float()


def test_votes_are_counted_by_weight():
    committee = Committee(
        torch.stack([one_hot(0, 0, 1), one_hot(0, 1, 1), one_hot(0, 1, 0)]),
        torch.tensor([0.5, 0.3, 0.2]),
    )
    found = committee.agreement(torch.tensor([0, 0, 0]))
    torch.testing.assert_close(found, torch.tensor([1.0, 0.5, 0.2]))


def test_a_vote_is_the_most_probable_class_however_sure():
    committee = Committee.even(torch.tensor([[[0.51, 0.49]], [[0.0, 1.0]]]))
    assert committee.agreement(torch.tensor([0])).tolist() == [0.5]


def test_all_parts_go_to_a_device():
    committee = Committee.even(torch.ones(2, 3, 2)).to(torch.device("meta"))
    assert {part.device.type for part in committee} == {"meta"}


@given(st.integers(1, 4), st.integers(1, 4), st.floats(0, 1))
def test_joined_committees_agree_as_their_weighted_parts(first, second, share):
    parts = [Committee.even(normal(size, 6, 3, seed=size).softmax(2)) for size in (first, second)]
    joined = Committee.joined(parts, [share, 1 - share])
    predicted = torch.tensor([0, 1, 2, 0, 1, 2])
    expected = share * parts[0].agreement(predicted) + (1 - share) * parts[1].agreement(predicted)
    assert joined.probabilities.shape == (first + second, 6, 3)
    torch.testing.assert_close(joined.weights.sum(), torch.tensor(1.0, dtype=torch.float64))
    torch.testing.assert_close(joined.agreement(predicted), expected)


def test_an_interval_cuts_off_light_votes():
    first = torch.tensor([0.1, 0.5, 0.6, 0.9]).unsqueeze(1)
    rows = torch.stack([first, 1 - first], dim=2)  # (M, 1, C)
    committee = Committee(rows, torch.tensor([0.05, 0.45, 0.45, 0.05]))
    for label, share, ends in ((0, 0.8, (0.5, 0.6)), (1, 0.8, (0.4, 0.5)), (0, 1.0, (0.1, 0.9))):
        low, high = committee.interval(torch.tensor([label]), share)
        torch.testing.assert_close(torch.cat([low, high]), torch.tensor(ends))
