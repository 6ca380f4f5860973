"""Groups that may be a class of their own."""

from dataclasses import replace

import torch

from evengraph.datasets import toy
from evengraph.desk.evidence import Clusters, new_class, unlike_labels, vote
from evengraph.desk.suggestions import Pool, gather
from evengraph.methods.bases.method import Committee


def test_votes_count_by_weight():
    members = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]])
    assert vote(Committee(members, torch.tensor([0.75, 0.25]))).tolist() == [[0.75, 0.25]]


def groups(*places):
    """Evidence on groups of ten nodes along a line; only the first has a label."""
    found = gather(Pool.open(toy(10 * len(places), 40, 5, 2)), torch.tensor([0] + [-1] * 59))
    means = torch.tensor(places).unsqueeze(1)
    of = torch.arange(len(places)).repeat_interleave(10)
    return replace(found, rows=means[of], clusters=Clusters(of, torch.ones(len(of)), means))


def test_with_one_label_far_from_it_is_usual_and_no_sign_of_a_new_class():
    evidence = groups(0.0, 10.0, 11.0, 12.0, 13.0, 14.0)
    assert unlike_labels(evidence).sum() == 50
    assert not new_class(evidence).any()


def test_a_group_far_from_where_most_are_may_be_a_new_class():
    evidence = groups(0.0, 10.0, 11.0, 12.0, 13.0, 50.0)
    assert new_class(evidence).nonzero().squeeze(1).tolist() == list(range(50, 60))
