import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evengraph.inspection import leaks as module
from evengraph.inspection.leaks import (
    LEAST_EVIDENCE,
    group_values,
    label_signal,
    leaks_in_features,
    leaks_in_table,
    sample_rows,
)
from evengraph.inspection.measures import measure_features

NAMES = ["a", "b", "c"]
RNG = np.random.default_rng(1)
LABELS = RNG.choice(3, size=600, p=[0.7, 0.25, 0.05])
SOME = np.where(RNG.random(600) < 0.6, LABELS, -1)


def leaks(columns, labels=SOME, names=()):
    x = np.stack(columns, axis=1).astype(np.float32)
    _, figures = measure_features(x, LABELS, labels >= 0, 3)
    return leaks_in_features(x, figures, labels, NAMES, names)


def one(column, **options):
    """The leak of a column that stands between two harmless ones."""
    found = leaks([RNG.normal(size=600), column, RNG.integers(3, size=600)], **options)
    assert len(found) <= 1
    return found[0] if found else None


@pytest.mark.parametrize(
    "copied", [LABELS, 2 - LABELS, 10.5 + LABELS, np.array([4, 9, -1])[LABELS]]
)
def test_a_copy_of_the_label(copied):
    leak = one(copied)
    assert (leak.column, leak.kind, leak.strength) == ("feature 1", "copy", 1.0)


def test_how_strongly_a_column_tells_the_label():
    noisy = np.where(RNG.random(600) < 0.01, 1, LABELS)
    leak = one(noisy, names=["x", "y_copy", "z"])
    assert (leak.column, leak.kind) == ("y_copy", "label")
    assert 0.95 <= leak.strength < 1
    assert one(LABELS + 0.1 * RNG.normal(size=600)).kind == "label"
    leak = one(np.where(LABELS == 1, RNG.integers(1, 4, size=600), 0))
    assert (leak.kind, leak.class_name) == ("class", "b")


def test_honest_features_pass():
    assert one(np.where(RNG.random(600) < 0.25, RNG.integers(3, size=600), LABELS)) is None
    assert one(LABELS + RNG.normal(size=600)) is None
    assert one(np.ones(600)) is None
    few = np.full(600, -1)
    few[[np.flatnonzero(label == LABELS)[place] for label in range(3) for place in range(4)]] = 0
    few = np.where(few == 0, LABELS, -1)
    assert one(LABELS, labels=few) is None
    assert one(RNG.random(600)) is None
    assert one(np.arange(600) // 2) is None


@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_a_column_that_counts_the_nodes(scale):
    assert one(scale * RNG.permutation(600) - 5).kind == "id"


def table(**columns):
    pd = pytest.importorskip("pandas")
    words = np.array(["fraud", "fine", "unsure"])[LABELS]
    plain = {"key": [f"n{place}" for place in range(600)]}
    plain["topic"] = np.where(SOME >= 0, words, "")
    plain["amount"] = RNG.normal(size=600)
    plain["city"] = RNG.choice(["Rome", "Bonn"], size=600)
    plain["title"] = [f"a text about {place}" for place in range(600)]
    return pd.DataFrame(plain | columns)


def kinds(frame):
    return {leak.column: leak.kind for leak in leaks_in_table(frame, "topic", "key")}


def test_leaks_of_a_table():
    words = np.array(["fraud", "fine", "unsure"])[LABELS]
    frame = table(
        copied=words,
        code=np.array([7, 1, 3])[LABELS],
        nearly=np.where(RNG.random(600) < 0.01, "fine", words),
        closed_on=[f"day {i % 9}" if label == 1 else None for i, label in enumerate(LABELS)],
        again=[f"n{place}" for place in range(600)],
        row=np.arange(600) * 17,
        when=np.arange("2020-01-01", "2021-08-23", dtype="datetime64[D]"),
        flag=RNG.random(600) < 0.5,
    )
    expected = {"copied": "copy", "code": "copy", "nearly": "label", "closed_on": "class"}
    assert kinds(frame) == expected | {"again": "id", "row": "id"}
    assert kinds(table()) == {}
    amounts = [f"{value:.4f}" for value in RNG.lognormal(6, 1, size=600)]
    assert kinds(table(balance=amounts)) == {}
    assert kinds(table(serial=[str(1000 + number) for number in range(600)])) == {"serial": "id"}
    mixed = [1, "two", None, 3.5, [4]] * 120
    frame = table(empty=[None] * 600, mixed=mixed, half=[1.5, None] * 300)
    frame.loc[3, "topic"] = None
    assert kinds(frame) == {}
    assert kinds(frame.assign(topic="")) == {}


def test_a_column_that_is_not_there():
    frame = table()
    with pytest.raises(ValueError, match=r"column 'Topic'; it has: key, topic, amount"):
        leaks_in_table(frame, "Topic", "key")
    with pytest.raises(ValueError, match="column 'name'"):
        leaks_in_table(frame, "topic", "name")


# The signal of one column.


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
    monkeypatch.setattr(module, "MOST_ROWS", 60)
    labels = np.array([0] * 500 + [1] * 12 + [-1] * 50 + [2] * 20)
    rows = sample_rows(labels, 3)
    assert np.bincount(labels[rows]).tolist() == [20, 12, 20]
    assert len(set(rows.tolist())) == len(rows)
    assert (rows == sample_rows(labels, 3)).all()
