"""Columns to features, and the encoder to JSON and back."""

import json
import re
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from evengraph.tables import FeatureEncoder
from evengraph.tables.encoders import MAX_CATEGORIES
from evengraph.tables.text import TEXT_BUCKETS

PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
PROSE = ["the", "quick", "fox", "jumps", "over", "a", "lazy", "dog", "and", "slow", "hens"]

number = st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False))
word = st.sampled_from(["", "a", "b", "c", "é", "=1+1", "x1", "NA", None])
text = st.one_of(st.none(), st.lists(st.sampled_from(PROSE), min_size=5, max_size=9).map(" ".join))
truth = st.sampled_from([True, False, None])
day = st.one_of(st.none(), st.dates(date(1700, 1, 1), date(2200, 1, 1)).map(str))
row = st.tuples(number, st.integers(-(2**60), 2**60), word, text, truth, day)


def table(rows):
    frame = pd.DataFrame(rows, columns=["n", "i", "w", "t", "b", "d"])
    return frame.astype({"w": object, "t": object, "b": object, "d": object})


def fitted(frame):
    return FeatureEncoder.fit(frame, list(frame.columns), edge_index=PATH)


def again(encoder):
    return FeatureEncoder.from_dict(json.loads(json.dumps(encoder.as_dict(), allow_nan=False)))


@given(st.lists(row, min_size=3, max_size=12), st.lists(row, min_size=1, max_size=4))
def test_json_and_back_is_the_same_encoder(rows, new):
    frame = table(rows)
    encoder = fitted(frame)
    same = again(encoder)
    assert same == encoder
    for rows_of in (frame, table(new)):
        edges = PATH if len(rows_of) > 2 else PATH[:, :0]
        features = encoder.transform(rows_of, edge_index=edges)
        assert torch.equal(features, same.transform(rows_of, edge_index=edges))
        assert features.shape == (len(rows_of), len(encoder.names))
        assert torch.isfinite(features).all()


@given(st.lists(number, min_size=2, max_size=20))
def test_rows_one_by_one_are_the_rows_at_once(values):
    frame = pd.DataFrame({"n": pd.Series(values, dtype=float)})
    frame["w"] = [("a", "b", None)[i % 3] for i in range(len(frame))]
    frame["k"] = range(len(frame))
    encoder = fitted(frame)
    whole = encoder.transform(frame)
    for index in range(len(frame)):
        assert torch.equal(encoder.transform(frame[index : index + 1])[0], whole[index])


def test_numbers_as_scikit_learn_does_it():
    values = np.array([1, 5, np.nan, -2, 30, 5.5])
    found = fitted(pd.DataFrame({"n": values})).transform(pd.DataFrame({"n": values}))
    steps = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    assert found.numpy() == pytest.approx(steps.fit_transform(values[:, None]), abs=1e-6)


def test_categories_as_scikit_learn_does_it():
    values = np.array(["a", "b", "a", "c", "b", "a", "d"], dtype=object)
    encoder = fitted(pd.DataFrame({"w": values}))
    known = {"min_frequency": 2, "handle_unknown": "infrequent_if_exist", "sparse_output": False}
    theirs = OneHotEncoder(**known)
    theirs.fit(values[:, None])
    new = np.array(["a", "b", "c", "d", "z"], dtype=object)
    assert encoder.names == ("w=a", "w=b", "w=(rare)")
    found = encoder.transform(pd.DataFrame({"w": new})).numpy()
    assert found.tolist() == theirs.transform(new[:, None]).tolist()
    assert found[-1].tolist() == [0, 0, 1]  # a value that was never there


def test_a_new_value_is_an_empty_cell_where_none_was_rare():
    encoder = fitted(pd.DataFrame({"w": ["a", "b", "a", "b"]}))
    assert encoder.transform(pd.DataFrame({"w": ["a", "z", None]})).tolist() == [
        [1, 0],
        [0, 0],
        [0, 0],
    ]


@given(st.lists(st.integers(1, 9), min_size=2, max_size=20))
def test_rare_values_are_not_kept(sizes):
    values = [f"value-{place}" for place, size in enumerate(sizes) for _ in range(size)]
    stored = json.dumps(fitted(pd.DataFrame({"w": values, "n": range(len(values))})).as_dict())
    least = 2 if len(sizes) <= 10 else 5
    often = [place for place, size in enumerate(sizes) if size >= least]
    used = '"column": "w"' in stored
    for place in range(len(sizes)):
        assert (f'"value-{place}"' in stored) == (used and place in often)
    assert used == bool(often)


def test_a_name_in_a_column_of_categories_is_not_kept():
    values = ["DE", "FR"] * 20 + ["ann@mail.example"]
    encoder = fitted(pd.DataFrame({"w": values}))
    assert encoder.names == ("w=DE", "w=FR", "w=(rare)")
    assert "ann" not in json.dumps(encoder.as_dict())
    assert encoder.transform(pd.DataFrame({"w": values}))[-1].tolist() == [0, 0, 1]


def test_text_as_scikit_learn_does_it():
    cells = ["the hen looks on and on", "the dog is a lazy dog", "", "the fox jumps over it"]
    encoder = fitted(pd.DataFrame({"t": cells}))
    hashing = HashingVectorizer(n_features=TEXT_BUCKETS, alternate_sign=False, norm=None)
    steps = make_pipeline(hashing, TfidfTransformer())
    expected = steps.fit(cells).transform([*cells, "a new word"]).toarray()
    found = encoder.transform(pd.DataFrame({"t": [*cells, "a new word"]}))
    assert found.numpy() == pytest.approx(expected, abs=1e-6)
    assert found[2].abs().sum() == 0


def test_categories_are_capped():
    values = [f"v{i % 80}" for i in range(800)]
    encoder = fitted(pd.DataFrame({"w": values}))
    assert len(encoder.names) == MAX_CATEGORIES
    assert encoder.names[-1] == "w=(rare)"
    assert encoder.transform(pd.DataFrame({"w": values})).sum(dim=1).tolist() == [1] * 800


def test_booleans_and_dates():
    frame = pd.DataFrame({"b": [True, False, None, True], "d": ["2024-01-01", "2024-01-03"] * 2})
    found = fitted(frame).transform(frame)
    assert found.tolist() == [[1, -1], [-1, 1], [0, -1], [1, 1]]
    later = pd.DataFrame({"b": ["true", "0"], "d": pd.to_datetime(["2024-01-02", None])})
    assert fitted(frame).transform(later).tolist() == [[1, 0], [-1, 0]]
    with pytest.raises(ValueError, match="column 'b', row 1 holds 'maybe'; expected true"):
        fitted(frame).transform(later.assign(b="maybe"))


def test_other_numbers():
    frame = pd.DataFrame(
        {
            "decimal": [Decimal(1), Decimal(2), Decimal(3)],
            "text": ["1", " 2.5", "none"],
            "delta": pd.to_timedelta(["1s", "2s", None]),
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "category": pd.Categorical(["x", "x", "y"]),
        }
    )
    encoder = fitted(frame)
    kinds = [type(column).__name__ for column in encoder.columns]
    assert kinds == ["Number"] * 4 + ["Category"]
    assert torch.isfinite(encoder.transform(frame)).all()


def test_numbers_with_leading_zeros_are_codes():
    encoder = fitted(pd.DataFrame({"zip": ["00501", "10001", "00501", "10001"]}))
    assert encoder.names == ("zip=00501", "zip=10001")
    # a table without such a code may hold them as numbers
    assert encoder.transform(pd.DataFrame({"zip": [10001, 2]})).tolist() == [[0, 1], [0, 0]]


def test_columns_that_cannot_help_are_left_out_and_told():
    frame = pd.DataFrame(
        {
            "same": [1, 1, None],
            "empty": [None, "", " "],
            "name": ["x", "y", "z"],
            "word": ["q", "q", "q"],
            "true": [True] * 3,
            "dots": ["? ! . ,"] * 3,
            "good": [1, 2, 3],
        }
    )
    encoder = fitted(frame)
    assert encoder.input_columns == ("good",)
    assert encoder.notes == (
        "Left out column 'same': it is constant.",
        "Left out column 'empty': it is empty.",
        "Left out column 'name': all its values are distinct, like ids.",
        "Left out column 'word': it is constant.",
        "Left out column 'true': it is constant.",
        "Left out column 'dots': it holds no words.",
    )


def test_a_column_that_is_nearly_an_id_is_left_out():
    frame = pd.DataFrame({"mail": [f"m{i // 2 if i < 20 else i}" for i in range(200)]})
    assert fitted(frame).notes[0] == "Left out column 'mail': 190 of its 200 values are distinct."


def test_a_column_of_rare_values_is_left_out():
    frame = pd.DataFrame({"mail": [f"m{i // 4}" for i in range(48)]})
    told = "Left out column 'mail': none of its 12 values occurs 5 times."
    assert fitted(frame).notes[0] == told


def test_yes_or_nothing_is_kept():
    frame = pd.DataFrame({"vip": ["yes", None, None, "yes"]})
    assert fitted(frame).transform(frame).flatten().tolist() == [1, 0, 0, 1]


def test_features_from_edges():
    frame = pd.DataFrame({"same": [1, 1, 1]})
    encoder = fitted(frame)
    found = encoder.transform(frame, edge_index=PATH)
    assert encoder.names == ("log_degree", "log_pagerank", "clustering")
    assert found[:, :2].mean(dim=0).abs().max() < 1e-6
    assert found[:, 2].tolist() == [0, 0, 0]
    assert encoder.notes[-1].startswith("No feature columns")
    with pytest.raises(ValueError, match="edge_index is required"):
        encoder.transform(frame)


def test_features_as_they_are():
    array = np.array([[1, np.nan], [3, 4], [5, 6]], dtype=np.float32)
    encoder = FeatureEncoder.passthrough(["x0", "x1"], array)
    frame = pd.DataFrame(array, columns=["x0", "x1"])
    assert again(encoder) == encoder
    assert encoder.transform(frame).tolist() == [[1, 5], [3, 4], [5, 6]]
    with pytest.raises(ValueError, match="column 'x1', row 1 is infinite"):
        encoder.transform(pd.DataFrame({"x0": [1.0], "x1": [np.inf]}))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, -np.inf, 2.0], "nodes, column 'n', row 2 is infinite"),
        (["1", "2", "3", "4", "inf"], "nodes, column 'n', row 5 is infinite"),
        (
            ["1", "2", "3", "four", "5"],
            "nodes, column 'n': 1 of 5 cells is not a number ('four' in row 4): mixed types; fix "
            "or empty it, or drop the column.",
        ),
        (
            [*map(str, range(20)), "", "a", "b", "c", "d"],
            "4 of 24 cells are not numbers (first: 'a' in row 22, 'b' in row 23, 'c' in row 24): "
            "mixed types; fix or empty them, or drop the column.",
        ),
        (
            [*(f"2024-01-{day}" for day in range(10, 19)), "yesterday"],
            "nodes, column 'n': 1 of 10 cells is not a date ('yesterday' in row 10): mixed types; "
            "fix or empty it, or drop the column.",
        ),
        (
            ["22.12.2016", *["2024-01-10"] * 4, None, *["2024-01-11"] * 4, "5"],
            "2 of 10 cells are not dates ('22.12.2016' in row 1, '5' in row 11): mixed types",
        ),
        ([1, "a", 2], "row 2 holds 'a', other rows hold 1: mixed types"),
        ([{"a": 1}, None], "row 1 holds a dict; a cell must hold one"),
        (["2024-01-01", "2024-02-31"], "row 2 holds '2024-02-31'; expected a date"),
    ],
)
def test_bad_columns(values, message):
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        fitted(pd.DataFrame({"n": pd.Series(values, dtype=object)}))
    assert "\n" not in str(caught.value)


def test_bad_rows_of_later():
    encoder = fitted(pd.DataFrame({"n": [1, 2, 3]}))
    with pytest.raises(ValueError, match="column 'n', row 2 holds 'x'; expected a number"):
        encoder.transform(pd.DataFrame({"n": ["1", "x"]}))
    with pytest.raises(ValueError, match=r"2 of 3 cells .* \('x' in row 2, 'y' in row 3\); exp"):
        encoder.transform(pd.DataFrame({"n": ["1", "x", "y"]}))
    with pytest.raises(ValueError, match="nodes has no column 'n'; its columns are: m"):
        encoder.transform(pd.DataFrame({"m": [1]}))


def test_bad_stored_encoders():
    stored = fitted(pd.DataFrame({"n": [1, 2, 3]})).as_dict()
    with pytest.raises(ValueError, match=r"version .* must be 2, got 9; .* train again"):
        FeatureEncoder.from_dict(stored | {"version": 9})
    with pytest.raises(ValueError, match=r"kind of an encoder must be one of .*, got 'magic'"):
        FeatureEncoder.from_dict(stored | {"columns": [{"kind": "magic"}]})
    with pytest.raises(ValueError, match="kind 'number' is incomplete"):
        FeatureEncoder.from_dict(stored | {"columns": [{"kind": "number", "column": "n"}]})


def test_features_of_words_are_known():
    prose = ["sells red shoes here", "sells old hats there", "buys what others sell"]
    encoder = fitted(pd.DataFrame({"n": [1, 2, 3], "t": prose, "b": [True, False, True]}))
    assert encoder.hashed.tolist() == ["#" in name for name in encoder.names]
    assert encoder.hashed.sum() == 256
    plain = FeatureEncoder.passthrough(["a", "b"], np.ones((2, 2)))
    assert plain.hashed.tolist() == [False, False]


def test_numbers_beyond_single_precision_are_infinite_without_a_warning():
    array = np.array([[1e300], [2.0]])
    encoder = FeatureEncoder.passthrough(["x0"], array)
    assert encoder.transform(pd.DataFrame(array, columns=["x0"])).tolist() == [[float("inf")], [2]]
