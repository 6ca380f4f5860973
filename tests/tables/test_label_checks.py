"""Columns that are no labels, and labels that may be missing."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from evengraph.tables.columns import MISSING_WORDS, encode_labels, is_unlabelled
from evengraph.tables.notes import NoteKind, Notes

RNG = np.random.default_rng(0)


def encode(values, name="kind", **options):
    notes = Notes()
    labels, names = encode_labels(pd.Series(values, name=name), "t", notes, **options)
    return labels, names, notes


@pytest.mark.parametrize(
    ("name", "values", "error"),
    [
        ("days", RNG.integers(0, 2000, 3000), r"'days' is continuous \(\d+ distinct numbers in"),
        ("spent", np.round(RNG.exponential(9, 3000), 1), "'spent' is continuous"),
        ("rank", range(30), "'rank' is continuous"),
        ("user_id", range(30), "all 30 labels are different, like an id; .* label column"),
        ("who", [f"n{i}" for i in range(30)], "all 30 labels are different, like an id or a name"),
    ],
)
def test_columns_that_are_no_labels(name, values, error):
    with pytest.raises(ValueError, match=error):
        encode(values, name)


@pytest.mark.parametrize(
    "values",
    [
        np.repeat(np.arange(40), 6),  # class ids
        RNG.integers(1960, 2010, 3000),  # years, each with many nodes
        np.tile([0.5, 1.5, 2.5], 10),
        [f"topic {i // 2}" for i in range(60)],
        range(20),
    ],
)
def test_columns_that_may_be_labels(values):
    assert len(encode(values)[1]) == len(set(values))


@pytest.mark.parametrize("word", sorted(MISSING_WORDS))
def test_words_for_missing_are_asked_about(word):
    labels, _, notes = encode([word.upper(), "7", "8"] * 3)
    assert (labels >= 0).all()
    assert [note.kind for note in notes] == [NoteKind.MISSING_LABELS]
    assert notes == [
        f"Is label {word.upper()!r} (3 nodes) a class? If it means unlabelled, set unlabelled to "
        f"{word.upper()}."
    ]
    assert encode([word.upper(), "7", "8"] * 3, unlabelled=[word])[2] == []


def test_a_question_mark_among_numbers():
    labels, names, notes = encode(["0", "1"] * 9 + ["?"])
    assert (labels.tolist()[-3:], names) == ([0, 1, 2], ("0", "1", "?"))
    assert notes[0].kind == NoteKind.MISSING_LABELS
    with pytest.raises(ValueError, match="mixed types"):
        encode(["0", "1"] * 9 + ["what"])
    with pytest.raises(ValueError, match="is continuous"):
        encode([*map(str, range(50)), "?"])


@pytest.mark.parametrize("values", [[-1, 1] * 5, ["fraud", "unknown"] * 5, ["none", "mild"] * 5])
def test_nothing_is_asked_where_two_classes_would_not_remain(values):
    assert encode(values)[2] == []


def test_one_note_for_all_rare_classes():
    notes = encode(["a", "a", "b"] + ["x", "y"] * 9)[2]
    assert notes == [
        "2 classes have 1 or 2 labelled nodes ('a', 'b'): a stratified split (Natural) needs 3 per "
        "class; label more, or empty their cells to leave them out."
    ]
    many = Counter({f"c{i:02}": 1 for i in range(30)})
    (note,) = encode([*many, "c00"])[2]
    assert note.startswith("30 classes have 1 or 2 labelled nodes ('c00', 'c01', 'c02', ...): ")


def test_declared_words():
    assert is_unlabelled(["-1", "A", "b"], [-1.0, "a"]).tolist() == [True, True, False]
