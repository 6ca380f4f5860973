"""Pairs of labelled nodes: laws of the draw, against their chances."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.core.rng import seeded
from evengraph.ops.synthesis import Pairs, draw_members, draw_pairs
from small_graphs import check_law

# Who is mixed with whom.


def counted(counts):
    return torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_every_class_reaches_the_largest(counts, luck):
    labels = counted(counts).tolist()
    luck.shuffle(labels)
    labels = torch.tensor(labels)
    with seeded(luck.randrange(1000)):
        pairs = draw_pairs(labels, torch.tensor(counts))
    added = torch.bincount(pairs.labels, minlength=len(counts))
    assert (torch.tensor(counts) + added == max(counts)).all()
    assert torch.equal(labels[pairs.sources], pairs.labels)
    assert ((pairs.targets >= 0) & (pairs.targets < labels.numel())).all()
    assert ((pairs.shares > 0) & (pairs.shares < 1)).all()
    if max(counts) > 1:  # a class of one is never a target
        assert (torch.tensor(counts)[labels[pairs.targets]] > 1).all()


def many_pairs(counts, times=400):
    labels = counted(counts)
    with seeded(0):
        drawn = [draw_pairs(labels, torch.tensor(counts)) for _ in range(times)]
    return labels, Pairs(*(torch.cat(parts) for parts in zip(*drawn, strict=True)))


def test_targets_are_drawn_by_the_logarithm_of_their_class():
    counts = [12, 4, 2, 1]
    labels, pairs = many_pairs(counts)
    chances = [math.log(counts[label]) / counts[label] for label in labels.tolist()]
    expected = [chance / sum(chances) for chance in chances]
    check_law(torch.bincount(pairs.targets, minlength=19).tolist(), expected)


def test_sources_are_drawn_evenly():
    _, pairs = many_pairs([12, 4, 2, 1])
    for label, (first, size) in enumerate([(0, 12), (12, 4), (16, 2), (18, 1)]):
        drawn = pairs.sources[pairs.labels == label] - first
        check_law(torch.bincount(drawn, minlength=size).tolist(), [1 / size] * size)


def test_shares_follow_a_beta_law():
    shares = many_pairs([12, 1])[1].shares.double()
    assert shares.mean().item() == pytest.approx(0.5, abs=0.015)
    assert shares.var().item() == pytest.approx(0.05, abs=0.003)
    cube = shares.pow(4).mean().item()  # of Beta(2, 2): 2 * 3 * 4 * 5 / (4 * 5 * 6 * 7)
    assert cube == pytest.approx(1 / 7, abs=0.01)


def test_equal_classes_have_no_pairs_even_if_of_one():
    for counts in ([1, 1, 1], [5, 5]):
        pairs = draw_pairs(counted(counts), torch.tensor(counts))
        assert [part.numel() for part in pairs] == [0] * 4


# One member of a group.


def test_members_are_drawn_by_their_chances():
    groups = torch.tensor([1, 0, 1, 3, 1, 0])
    chances = torch.tensor([1.0, 5.0, 2.0, 9.0, 1.0, 0.0])
    with seeded(0):
        found = draw_members(chances, groups, torch.ones(4000, dtype=torch.long))
    check_law(torch.bincount(found, minlength=6)[[0, 2, 4]].tolist(), [0.25, 0.5, 0.25])
    assert draw_members(chances, groups, torch.tensor([0, 3, 0])).tolist() == [1, 3, 1]


def test_without_chances_members_are_drawn_evenly():
    groups = torch.tensor([0, 1, 1, 1])
    with seeded(0):
        found = draw_members(torch.tensor([4.0, 0, 0, 0]), groups, torch.ones(3000).long())
    check_law(torch.bincount(found, minlength=4).tolist()[1:], [1 / 3] * 3)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1e3)), min_size=1, max_size=30),
    st.integers(0, 99),
)
def test_a_member_is_of_the_group_asked_for(members, seed):
    groups = torch.tensor([group for group, _ in members])
    chances = torch.tensor([chance for _, chance in members])
    wanted = groups.repeat(3)
    with seeded(seed):
        found = draw_members(chances, groups, wanted)
    assert torch.equal(groups[found], wanted)


def test_nobody_is_asked_for():
    nothing = torch.empty(0, dtype=torch.long)
    assert draw_members(torch.ones(2), torch.tensor([0, 1]), nothing).shape == (0,)
