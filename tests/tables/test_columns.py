"""Columns: which holds the ids, labels, splits and times."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evengraph.core.errors import ArgumentError
from evengraph.tables import from_frames
from evengraph.tables.columns import (
    MISSING_WORDS,
    NoLabelError,
    TableColumns,
    encode_labels,
    feature_columns,
    is_id_name,
    label_candidates,
    read_split,
    read_times,
    resolve_columns,
)
from evengraph.tables.notes import NoteKind, Notes

ORDER = np.random.default_rng(0).permutation(40)
EDGES = pd.DataFrame({"from": range(39), "to": range(1, 40)})


def people(**columns):
    frame = pd.DataFrame({"kind": ["a", "b"] * 20, "age": np.arange(40) % 7})
    return frame.assign(**columns)


def opened(nodes, edges=EDGES, **options):
    return from_frames(nodes, edges, label="kind", **options)


def test_the_usual_column_is_not_the_one():
    own = opened(people(id=ORDER + 5000, new_id=ORDER))
    assert own.columns.id == "new_id"
    named = "Using column 'new_id' as the id: the edges name its values, not those of 'id'."
    assert own.notes[0] == named
    assert "Left out column 'id': its values are distinct, like ids." in own.notes
    assert own.encoder.names == ("age",)
    row = int(np.flatnonzero(ORDER == 0)[0])
    neighbours = own.graph.edge_index[1][own.graph.edge_index[0] == row]
    assert own.ids[neighbours.numpy()].tolist() == [1]


@pytest.mark.parametrize("name", ["id", "Node_ID"])
def test_the_usual_column_comes_first(name):
    own = opened(people(other_id=ORDER, **{name: range(40)}))
    assert own.columns.id == name
    assert not any("as the id" in note for note in own.notes)


def test_which_column_fits_the_edges():
    own = opened(people(user_id=ORDER))
    assert own.columns.id == "user_id"
    assert own.notes[0] == "Using column 'user_id' as the id: the edges name its values."
    own = opened(people(rank=ORDER))
    assert own.columns.id is None
    assert "No id column: ids are row numbers, counted from 0." in own.notes
    names = [f"n{i}" for i in range(40)]
    edges = EDGES.map(lambda i: f"n{i}")
    assert opened(people(who=names), edges).columns.id == "who"
    with pytest.raises(ArgumentError, match="none that holds both ends of every edge; set id to"):
        opened(people(who=names[::-1]), edges.assign(to="z"))
    with pytest.raises(ValueError, match="'who', row 40 repeats the id 'n0' of row 1"):
        opened(people(who=[*names[:-1], "n0"]), edges[:-1])
    own = opened(people(id=ORDER + 5000, new_id=ORDER), features=["id"])
    assert own.encoder.names == ("id",)


def test_what_is_asked_about_ids():
    with pytest.raises(ArgumentError, match="'a_id' and 'b_id' of nodes all fit the") as error:
        opened(people(a_id=ORDER, b_id=range(40)))
    assert error.value.argument == "id"
    assert opened(people(a_id=ORDER, b_id=range(40)), id="b_id").columns.id == "b_id"
    with pytest.raises(ValueError, match="names '40', which is not the id of a node; 1 of 39"):
        opened(people(id=range(40), age=ORDER), EDGES.assign(to=[*range(1, 39), 40]))
    nodes = people(id=ORDER + 5000).assign(kind=ORDER)
    with pytest.raises(ArgumentError, match="'kind' of nodes holds the ids that the edges name"):
        opened(nodes)


@pytest.mark.parametrize("ids", [{}, {"id": range(40)}, {"user_id": [f"{i}" for i in range(40)]}])
def test_a_label_that_copies_the_ids(ids):
    nodes = people(**ids).assign(kind=[float(i) for i in range(40)])
    with pytest.raises(ArgumentError, match=r"'kind' copies the ids .* set label to another"):
        opened(nodes)


def test_names_of_ids():
    for name in ("id", "ID", "user_id", "new id", "userId", "UserID", "node", "my-key", "uuid"):
        assert is_id_name(name), name
    for name in ("paid", "kid", "idle", "age", "nodes_seen", "valid", "Madrid"):
        assert not is_id_name(name), name


def test_spare_ids():
    others = ([1, 1, 2], [1.5, 2.5], ["a", None], [[1], [2]], [3])
    for values in (range(5), list("abcde"), *others):
        table = pd.DataFrame({"user_id": values, "age": values})
        kept = feature_columns(table, TableColumns(), Notes())
        assert kept == (["user_id", "age"] if values in others else ["age"])


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


def test_labels_that_are_empty():
    found, order = encode_labels(column([True, None, False], dtype=object), "t", Notes())
    assert found.tolist() == [1, -1, 0]
    assert order == ("False", "True")
    notes = Notes()
    found, _ = encode_labels(column(["a", "b", "NA", "NaN"] + ["a", "b"] * 3), "t", notes)
    assert found.tolist()[:4] == [0, 1, -1, -1]
    assert notes == ["Labels 'NA' or similar, treated as unlabelled: 2."]
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
    labels, names, notes = encode(["0", "1"] * 9 + ["?"])
    assert (labels.tolist()[-3:], names) == ([0, 1, 2], ("0", "1", "?"))
    assert notes[0].kind == NoteKind.MISSING_LABELS


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


def test_splits_and_times():
    values = column(["Train", "training", "val", "VALID", "validation", "test", None, " "])
    found = read_split(values, "t")
    assert found["train"].tolist() == [True, True] + [False] * 6
    assert found["val"].tolist() == [False] * 2 + [True] * 3 + [False] * 3
    assert found["test"].tolist() == [False] * 5 + [True] + [False] * 2
    edges = pd.DataFrame({"source": [0], "target": [1]})
    for cells, found in ((values, "split"), ([None, None], None), (["train", "left"], None)):
        table = pd.DataFrame({"split": cells})
        assert resolve_columns(table, edges, TableColumns(), Notes(), guess=True).split == found
    assert read_times(column([3, None, 1]), "t")[[0, 2]].tolist() == [3, 1]
    days = read_times(column(["1970-01-02", "", "1970-01-01T00:00:10Z"]), "t")
    assert days[[0, 2]].tolist() == [86400, 10]
    assert np.isnan(days[1])
    stamps = read_times(column(pd.to_datetime(["1970-01-01 00:00:01", None])), "t")
    assert stamps[0] == 1


RNG = np.random.default_rng(0)


def encode(values, name="kind", **options):
    notes = Notes()
    labels, names = encode_labels(pd.Series(values, name=name), "t", notes, **options)
    return labels, names, notes


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
    text = f"Is label {word.upper()!r} (3 nodes) a class? If it means unlabelled, set unlabelled"
    assert notes == [f"{text} to {word.upper()}."]
    assert encode([word.upper(), "7", "8"] * 3, unlabelled=[word])[2] == []


@pytest.mark.parametrize("values", [[-1, 1] * 5, ["fraud", "unknown"] * 5, ["none", "mild"] * 5])
def test_nothing_is_asked_where_two_classes_would_not_remain(values):
    assert encode(values)[2] == []


def test_labels_that_differ_in_case_are_asked_about():
    notes = encode(["Fraud", "fraud ", "fraud", "no", "not", "n o"] * 3)[2]
    words = "differ only in case or spaces and count as different classes; if they mean the same"
    names = ("'Fraud' (3 nodes) and 'fraud' (6 nodes)", "'n o' (3 nodes) and 'no' (3 nodes)")
    assert notes == [f"Labels {n} {words}, spell them alike in the table." for n in names]


def test_one_note_for_all_rare_classes():
    notes = encode(["a", "a", "b"] + ["x", "y"] * 9)[2]
    assert notes == [
        "2 classes have 1 or 2 labelled nodes ('a', 'b'): a stratified split (Natural) needs 3 per "
        "class; label more, or empty their cells to leave them out."
    ]
    many = Counter({f"c{i:02}": 1 for i in range(30)})
    (note,) = encode([*many, "c00"])[2]
    assert note.startswith("30 classes have 1 or 2 labelled nodes ('c00', 'c01', 'c02', ...): ")
