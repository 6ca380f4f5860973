import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evengraph.inspection import label_signal as telling
from evengraph.inspection.label_signal import (
    LEAST_EVIDENCE,
    group_values,
    label_signal,
    sample_rows,
)


@given(st.lists(st.lists(st.integers(0, 8), min_size=3, max_size=3), min_size=1, max_size=5))
def test_what_a_column_tells_against_leaving_one_out(rows):
    table = np.array(rows)
    nodes = [
        (group, label)
        for group, row in enumerate(rows)
        for label in range(3)
        for _ in range(row[label])
    ]

    def hits(classes):
        """Nodes that a strict majority of the others of their group, all of it theirs, tells."""
        right = 0
        for group, label in nodes:
            votes = dict.fromkeys(set(classes.values()), 0)
            for other, its in nodes:
                votes[classes[its]] += other == group
            votes[classes[label]] -= 1
            mine = votes.pop(classes[label])
            right += mine > max(votes.values(), default=0)
        return right

    def gain(classes):
        sizes = [sum(classes[label] == c for _, label in nodes) for c in set(classes.values())]
        if not nodes or len(nodes) - max(sizes) < LEAST_EVIDENCE:
            return 0.0
        return (hits(classes) - max(sizes)) / (len(nodes) - max(sizes))

    told = label_signal(table)
    assert told.label == pytest.approx(gain({0: 0, 1: 1, 2: 2}))
    for label in range(3):
        assert told.by_class[label] == pytest.approx(gain({c: c == label for c in range(3)}))


def test_a_copy_is_one_to_one():
    assert label_signal(np.diag([20, 30, 40])).copy
    assert label_signal(np.array([[0, 12], [0, 0], [15, 0]])).copy
    assert not label_signal(np.array([[20, 0], [20, 0], [0, 20]])).copy  # two values for a class
    assert not label_signal(np.array([[20, 1], [0, 20]])).copy
    assert not label_signal(np.array([[20, 0]])).copy  # a single class
    assert not label_signal(np.diag([20, 3])).copy  # three nodes are no evidence


def test_values_of_their_own_tell_nothing():
    assert label_signal(np.vstack([np.tile([1, 0], (30, 1)), np.tile([0, 1], (30, 1))])).label <= 0


def test_few_values_stay_and_many_are_cut_into_ranges():
    values = np.array([3.0, 1.0, np.nan, 3.0, np.nan])
    assert group_values(values, 2).tolist() == [1, 0, 2, 1, 2]
    many = np.random.default_rng(0).permutation(6400).astype(float)
    groups = group_values(many, 2)
    assert np.bincount(groups).tolist() == [100] * 64
    assert (np.diff(groups[np.argsort(many)]) >= 0).all()
    assert len(set(group_values(many[:100], 2).tolist())) == 20  # at least five in each


def test_rare_classes_are_sampled_whole(monkeypatch):
    monkeypatch.setattr(telling, "MOST_ROWS", 60)
    labels = np.array([0] * 500 + [1] * 12 + [-1] * 50 + [2] * 20)
    rows = sample_rows(labels, 3)
    assert np.bincount(labels[rows]).tolist() == [20, 12, 20]
    assert len(set(rows.tolist())) == len(rows)
    assert (rows == sample_rows(labels, 3)).all()
