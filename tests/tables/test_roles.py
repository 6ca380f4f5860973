"""Labels, splits and times out of columns."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evengraph.tables.columns import (
    NoLabelError,
    encode_labels,
    is_split_column,
    label_candidates,
    read_split,
    read_times,
)
from evengraph.tables.notes import Notes


def column(values, dtype=None):
    return pd.Series(values, name="kind", dtype=dtype)


@pytest.mark.parametrize(
    ("values", "codes", "names"),
    [
        (["b", "a", None, "b"], [1, 0, -1, 1], ("a", "b")),
        ([10, 9, 10, 100], [1, 0, 1, 2], ("9", "10", "100")),
        ([1.0, np.nan, -1.0, 1.0], [1, -1, 0, 1], ("-1", "1")),
        (["10", "9", "", "10"], [1, 0, -1, 1], ("9", "10")),
        ([0.5, 0.25, 0.5], [1, 0, 1], ("0.25", "0.5")),
        ([True, False, True], [1, 0, 1], ("False", "True")),
        (["a ", "a", "=1+1"], [1, 1, 0], ("=1+1", "a")),
        (["none", "mild", "none"], [1, 0, 1], ("mild", "none")),
    ],
)
def test_classes_in_order(values, codes, names):
    found, order = encode_labels(column(values), "t", Notes())
    assert found.tolist() == codes
    assert order == names


def test_booleans_with_gaps():
    found, order = encode_labels(column([True, None, False], dtype=object), "t", Notes())
    assert found.tolist() == [1, -1, 0]
    assert order == ("False", "True")


def test_words_for_nothing_are_told():
    notes = Notes()
    found, _ = encode_labels(column(["a", "b", "NA", "NaN"] + ["a", "b"] * 3), "t", notes)
    assert found.tolist()[:4] == [0, 1, -1, -1]
    assert notes == ["Labels 'NA' or similar, treated as unlabelled: 2."]


def test_declared_labels_are_unlabelled():
    values = column([1, 0, -1, -1.0, 1, 0, 0, 1])
    found, names = encode_labels(values, "t", Notes(), unlabelled=[-1])
    assert found.tolist() == [1, 0, -1, -1, 1, 0, 0, 1]
    assert names == ("0", "1")
    notes = Notes()
    words = column(["Unknown", "a", "b", "?", None] + ["a", "b"] * 2)
    assert encode_labels(words, "t", notes, unlabelled=("unknown", "?"))[1] == ("a", "b")
    assert notes == []
    assert encode_labels(words, "t", notes, unlabelled="unknown")[1] == ("?", "a", "b")
    misspelt = Notes()
    encode_labels(words, "t", misspelt, unlabelled=["unknwon", "?", -1])
    assert misspelt[0] == "No label is 'unknwon' or '-1', which unlabelled names."


def test_infinity_is_no_class():
    with pytest.raises(ValueError, match="column 'kind', row 2 is infinite"):
        encode_labels(column([1, np.inf, 2]), "t", Notes())


@given(st.lists(st.sampled_from(["x", "y", "z", "", None]), min_size=1))
def test_names_give_the_labels_back(values):
    if len(set(values) - {"", None}) < 2:
        return
    codes, names = encode_labels(column(values, dtype=object), "t", Notes())
    assert [names[c] if c >= 0 else "" for c in codes] == [value or "" for value in values]


def test_columns_that_could_hold_the_classes():
    size = 60
    table = pd.DataFrame(
        {
            "id": range(size),
            "who": [f"n{row}" for row in range(size)],
            "country": ["DE", "FR"] * 30,
            "spent": [row / 7 for row in range(size)],
            "grade": [1, 2, 3, 4] * 15,
            "kind": ["a", "b", "c", "n/a"] * 15,
            "same": ["x"] * size,
            "list": [[1], [2]] * 30,
            "part": ["train", "test"] * 30,
            "": ["a", "b"] * 30,
        }
    )
    found = label_candidates(table, ["id", "part"])
    assert found == ("kind", "country", "grade")
    error = NoLabelError(found)
    assert (error.candidates, error.argument) == (found, "label")
    assert str(error) == (
        "No label column: every node is unlabelled; set label to the column with the classes, "
        "perhaps 'kind', 'country' or 'grade'."
    )
    assert str(NoLabelError(["a"])).endswith("perhaps 'a'.")
    assert str(NoLabelError(list("abcdefg"))).endswith("perhaps 'a', 'b', 'c', 'd' or 'e'.")
    assert label_candidates(table[["id", "who"]], []) == ()
    assert str(NoLabelError()) == "No label column: every node is unlabelled."


def test_split_words():
    values = column(["Train", "training", "val", "VALID", "validation", "test", None, " "])
    found = read_split(values, "t")
    assert found["train"].tolist() == [True, True] + [False] * 6
    assert found["val"].tolist() == [False] * 2 + [True] * 3 + [False] * 3
    assert found["test"].tolist() == [False] * 5 + [True] + [False] * 2
    assert is_split_column(values)
    assert not is_split_column(column([None, None]))
    assert not is_split_column(column(["train", "left"]))


def test_times():
    assert read_times(column([3, None, 1]), "t")[[0, 2]].tolist() == [3, 1]
    days = read_times(column(["1970-01-02", "", "1970-01-01T00:00:10Z"]), "t")
    assert days[[0, 2]].tolist() == [86400, 10]
    assert np.isnan(days[1])
    stamps = read_times(column(pd.to_datetime(["1970-01-01 00:00:01", None])), "t")
    assert stamps[0] == 1
    with pytest.raises(
        ValueError, match=r"column 'kind', row 2 holds '2024-13-01'; expected a date"
    ):
        read_times(column(["2024-01-01", "2024-13-01"]), "t")
    with pytest.raises(ValueError, match=r"not a date \('soon' in row 5\): .*; fix or empty it\.$"):
        read_times(column([*["2024-01-01"] * 4, "soon"]), "t")  # not: leave the column out
