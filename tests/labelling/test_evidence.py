"""Disagreement of a committee."""

import torch

from evengraph.labelling.evidence import disagreement, entropy, vote
from evengraph.methods.bases.committee import Committee


def test_members_that_contradict_one_another_disagree_and_doubt_alone_does_not():
    sure, unsure = [1.0, 0.0], [0.5, 0.5]
    members = torch.tensor([[sure, unsure, sure], [sure, unsure, sure[::-1]]])
    expected = torch.tensor([0.0, 0.0, 0.6931])
    assert torch.allclose(disagreement(Committee.even(members)), expected, atol=1e-4)


def test_entropy_of_a_certainty_is_zero():
    assert entropy(torch.tensor([1.0, 0.0])) == 0


def test_votes_count_by_weight_and_one_member_cannot_disagree():
    members = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]])
    assert vote(Committee(members, torch.tensor([0.75, 0.25]))).tolist() == [[0.75, 0.25]]
    assert disagreement(Committee.even(members[:1])) is None
