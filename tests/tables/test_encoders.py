"""Encoders: columns to features, to JSON and back, against scikit-learn and NetworkX."""

import json
from datetime import date
from decimal import Decimal

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MultiLabelBinarizer,
    OneHotEncoder,
    QuantileTransformer,
    StandardScaler,
)

from evengraph.ops import context
from evengraph.tables import FeatureEncoder, feature_encoder
from evengraph.tables import encoders as list_encoders
from evengraph.tables.cells import column_kind, to_numbers
from evengraph.tables.encoders import (
    MAX_CATEGORIES,
    NUM_QUANTILES,
    Category,
    Items,
    Log,
    Number,
    Quantile,
    Vector,
    as_dict,
    describe_encoders,
    fit_column,
    fit_number,
    from_dict,
    is_heavy_tailed,
)
from evengraph.tables.feature_encoder import pagerank, structural_features
from evengraph.tables.text import (
    MAX_WORDS,
    MIN_CELLS,
    TEXT_BUCKETS,
    Entries,
    Grams,
    Text,
    UselessColumnError,
    Words,
    fill,
    fit_text,
)

RANDOM = np.random.default_rng(0)


def dense(part):
    features = np.zeros(part.shape, dtype=np.float32)
    fill(features, [part])
    return features


def test_parts_are_written_side_by_side():
    narrow = [np.array([[1.0], [2.0]]), np.array([[3], [4]])]
    sparse = Entries((2, 3), np.array([1, 0]), np.array([2, 0]), np.array([5.0, 6.0]))
    flags = Entries((2, 2), np.array([1]), np.array([1]))
    features = np.zeros((2, 8), dtype=np.float32)
    fill(features, [*narrow, sparse, flags, np.array([[7], [8]])])
    assert features.tolist() == [[1, 3, 6, 0, 0, 0, 0, 7], [2, 4, 0, 0, 5, 0, 1, 8]]


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
    encoder = fitted(pd.DataFrame({"w": ["a", "b", "a", "b"]}))
    found = encoder.transform(pd.DataFrame({"w": ["a", "z", None]}))
    assert found.tolist() == [[1, 0], [0, 0], [0, 0]]
    values = [f"v{i % 80}" for i in range(800)]
    encoder = fitted(pd.DataFrame({"w": values}))
    assert len(encoder.names) == MAX_CATEGORIES
    assert encoder.names[-1] == "w=(rare)"
    assert encoder.transform(pd.DataFrame({"w": values})).sum(dim=1).tolist() == [1] * 800
    frame = pd.DataFrame({"vip": ["yes", None, None, "yes"]})
    assert fitted(frame).transform(frame).flatten().tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize("grades", [["true", "false", "maybe"], ["1.0", "2.0", "beta"]])
def test_a_cell_means_the_same_in_other_company(grades):
    encoder = fitted(pd.DataFrame({"grade": grades * 4}))
    mixed, alike = (encoder.transform(pd.DataFrame({"grade": grades[::n]})) for n in (2, 1))
    assert torch.equal(mixed[0], encoder.transform(pd.DataFrame({"grade": grades[:2]}))[0])
    assert torch.equal(mixed[1], alike[2])


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


def test_text_as_scikit_learn_does_it():
    cells = ["the hen looks on and on", "the dog is a lazy dog", "", "the fox jumps over it"]
    encoder = fitted(pd.DataFrame({"t": cells}))
    hashing = HashingVectorizer(n_features=TEXT_BUCKETS, alternate_sign=False, norm=None)
    steps = make_pipeline(hashing, TfidfTransformer())
    expected = steps.fit(cells).transform([*cells, "a new word"]).toarray()
    found = encoder.transform(pd.DataFrame({"t": [*cells, "a new word"]}))
    assert found.numpy() == pytest.approx(expected, abs=1e-6)
    assert found[2].abs().sum() == 0


def test_booleans_dates_and_other_numbers():
    frame = pd.DataFrame({"b": [True, False, None, True], "d": ["2024-01-01", "2024-01-03"] * 2})
    found = fitted(frame).transform(frame)
    assert found.tolist() == [[1, -1], [-1, 1], [0, -1], [1, 1]]
    later = pd.DataFrame({"b": ["true", "0"], "d": pd.to_datetime(["2024-01-02", None])})
    assert fitted(frame).transform(later).tolist() == [[1, 0], [-1, 0]]
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
    encoder = fitted(pd.DataFrame({"zip": ["00501", "10001", "00501", "10001"]}))
    assert encoder.names == ("zip=00501", "zip=10001")
    # a table without such a code may hold them as numbers
    assert encoder.transform(pd.DataFrame({"zip": [10001, 2]})).tolist() == [[0, 1], [0, 0]]


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ([1, 1, None], "it is constant"),
        ([None, "", " "], "it is empty"),
        (["x", "y", "z"], "all its values are distinct, like ids"),
        (["q", "q", "q"], "it is constant"),
        ([True] * 3, "it is constant"),
        (["? ! . ,"] * 3, "it holds no words"),
        ([f"m{i // 2 if i < 20 else i}" for i in range(200)], "190 of its 200 values are distinct"),
        ([f"m{i // 4}" for i in range(48)], "none of its 12 values occurs 5 times"),
        ([[f"u{i}"] for i in range(20)], "none of its 20 items occurs on 5 nodes"),
        ([["a", "b"]] * 20, "every node has the same items"),
        ([[0.5, 0.5]] * 20, "it is constant"),
        ([[]] * 20, "none of its 0 items occurs on 2 nodes"),
    ],
)
def test_columns_that_cannot_help_are_left_out_and_told(cells, reason):
    encoder = fitted(pd.DataFrame({"c": cells, "good": range(len(cells))}))
    assert encoder.input_columns == ("good",)
    assert encoder.notes[0] == f"Left out column 'c': {reason}."


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
    array = np.array([[1e300], [2.0]])
    encoder = FeatureEncoder.passthrough(["x0"], array)
    assert encoder.transform(pd.DataFrame(array, columns=["x0"])).tolist() == [[float("inf")], [2]]


RNG = np.random.default_rng(0)
BODY = RNG.normal(size=1000)
TAIL = RNG.lognormal(mean=8, sigma=2, size=1000)

KINDS = {
    "normal": (BODY, Number),
    "uniform years": (RNG.integers(1990, 2025, 1000), Number),
    "rare flag": (np.arange(1000) < 10, Number),
    "few counts": (np.minimum(TAIL // 20_000, 5), Number),
    "views": (np.floor(TAIL), Log),
    "tiny": (TAIL * 1e-12, Log),
    "huge": (TAIL * 1e200, Log),
    "smallest": (TAIL * 1e-312, Log),
    "above a million": (1e6 * (1 + TAIL), Log),
    "negative": (-TAIL, Log),
    "zeros": (np.where(np.arange(1000) % 10, 0, TAIL), Log),
    "both signs": (np.sign(BODY) * TAIL, Log),
    "offset": (1e9 + TAIL, Quantile),
    "one wild cell": (np.append(BODY, 1e9), Quantile),
    "wild cells": (np.append(BODY, [1e300, -1e300]), Quantile),
    "left tail": (1e7 - np.minimum(TAIL, 1e7 - 1), Quantile),
}


@pytest.mark.parametrize("name", KINDS)
def test_tails_choose_the_encoder(name):
    numbers, kind = KINDS[name]
    encoder = fit_number("n", numbers.astype(float))
    assert type(encoder) is kind
    values = pd.Series(numbers.astype(float), name="n")
    features = encoder.transform(values, "nodes")
    assert np.isfinite(features).all()
    assert features.mean() == pytest.approx(0, abs=1e-6)
    assert features.std() == pytest.approx(1)
    if kind is not Number:
        assert abs(features).max() < 10
        order = np.argsort(values, kind="stable")
        assert (np.diff(features[order, 0]) >= 0).all()
    assert from_dict(json.loads(json.dumps(as_dict(encoder)))) == encoder


def test_logarithms():
    seconds = fit_number("n", TAIL).transform(pd.Series(TAIL), "")
    nanoseconds = fit_number("n", TAIL * 1e9).transform(pd.Series(TAIL * 1e9), "")
    assert nanoseconds == pytest.approx(seconds)
    numbers = np.append(np.floor(TAIL), np.nan)
    encoder = fit_number("n", numbers)
    new = pd.Series([None, np.nanmedian(numbers), 0, -5, numbers[:-1].max() * 1e6, 1e308])
    empty, median, zero, negative, large, largest = encoder.transform(new, "")[:, 0]
    assert empty == median
    assert negative < zero < median < large < largest < 400


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [
        ("number", RANDOM.poisson(0.9, 2000)),
        ("number", RANDOM.integers(0, 100_000, 2000) / 100 - 400),
        ("log", np.r_[np.zeros(100), RANDOM.geometric(0.01, 1900) ** 2]),
        ("date", RANDOM.integers(-12_000, 12_000, 2000) * 86_400),
    ],
)
def test_numbers_are_read_back_as_they_were_without_noise(kind, numbers):
    values = pd.Series(numbers, name="a", dtype=float)
    if kind == "date":
        values = pd.Series(pd.to_datetime(numbers, unit="s").astype(str), name="a")
    encoder = fit_column(values, "t")
    assert as_dict(encoder)["kind"] == kind
    read = encoder.decode(encoder.transform(values, "t")[:, 0].astype(np.float32).astype(float))
    np.testing.assert_allclose(read, numbers, rtol=1e-12, atol=0)


def test_numbers_read_back_from_quantiles_are_whole_if_they_were():
    numbers = np.r_[np.zeros(1700), RANDOM.geometric(0.002, 300) ** 3].astype(float)
    encoder = Quantile(column="a", median=0.0, mean=0.0, scale=1.0, quantiles=(0, 0, 1, 2, 9, 9.5))
    read = encoder.decode(encoder.transform(pd.Series(numbers, name="a"), "t")[:, 0])
    assert (read % 1 == 0).all()
    assert (read[numbers == 0] == 0).all()


def test_quantiles_as_scikit_learn_does_it():
    numbers = np.append(np.round(BODY, 1), [1e9, 1e9])  # with ties
    encoder = fit_number("n", numbers)
    theirs = QuantileTransformer(n_quantiles=NUM_QUANTILES, output_distribution="normal")
    expected = theirs.fit_transform(numbers[:, None])[:, 0]
    inner = abs(expected) < 2.5  # beyond, ranks are cut off
    assert encoder.curve(numbers)[inner] == pytest.approx(expected[inner])
    assert abs(encoder.curve(np.array([-1e300, 1e300]))) == pytest.approx(2.807, abs=1e-3)
    numbers = np.append(BODY[:98], [1e300, -1e300])
    encoder = fit_number("n", numbers)
    assert isinstance(encoder, Quantile)
    assert len(encoder.quantiles) == 20
    assert len(set(encoder.quantiles) & set(numbers)) <= 3
    assert not is_heavy_tailed(np.array([]))
    assert not is_heavy_tailed(np.zeros(3))
    encoder = Number.fit_numbers("a", np.array([0.0, 5e-324, 0.0]))
    assert encoder.scale > 0


def test_one_sentence_for_all_columns():
    frame = pd.DataFrame({f"views{i}": TAIL for i in range(7)} | {"days": BODY, "rank": 1e9 + TAIL})
    encoder = fitted(frame)
    assert encoder.notes == (
        "Logarithm of views0, views1, views2, views3, views4 and 2 more (heavy-tailed).",
        "Quantiles of rank (heavy-tailed).",
    )
    assert describe_encoders([]) == []
    (sentence,) = fitted(pd.DataFrame({"country": ["PL", "pl", "PL ", "DE"] * 9})).notes
    assert sentence == "Column 'country': PL, pl differ in capitals alone, and are values apart."


def test_encoders_saved_before_give_the_same_features():
    fields = {"column": "n", "median": 3.0, "mean": 10.0, "scale": 4.0}
    old = from_dict({"kind": "number", **fields})
    assert type(old) is Number
    assert old.transform(pd.Series([None, 2.0, 1e9]), "")[:, 0].tolist() == [-1.75, -2.0, 1e6]
    old = from_dict({"kind": "text", "column": "about", "idf": [1.0, 2.0]})
    assert type(old) is Text
    found = dense(old.transform(pd.Series(["hen", "hen fox dog", None]), ""))
    assert np.linalg.norm(found, axis=1).round(6).tolist() == [1, 1, 0]


DRAW = np.random.default_rng(0)
WORDS = np.array([f"word{i}" for i in range(30)])
CELLS = pd.Series([" ".join(DRAW.choice(WORDS, 8)) for _ in range(60)] + ["", None], name="about")


def test_common_words_as_scikit_learn_does_it():
    encoder = fit_column(CELLS, "nodes")
    assert type(encoder) is Words
    assert encoder.names[0] == "about: word0"
    expected = TfidfVectorizer(min_df=5).fit(CELLS.fillna("")).transform(CELLS.fillna("")).toarray()
    found = dense(encoder.transform(CELLS, "nodes"))
    assert found == pytest.approx(expected, abs=1e-6)
    assert not found[-2:].any()


@given(st.lists(st.text("aBc_9 .,-'éÜ中", max_size=30), min_size=5, max_size=40))
def test_words_are_those_of_scikit_learn(cells):
    theirs = TfidfVectorizer(min_df=MIN_CELLS)
    values = pd.Series([*cells, "ab cd"] * MIN_CELLS, name="about", dtype=object)
    encoder, expected = Words.fit(values), theirs.fit_transform(values).toarray()
    assert encoder.words == tuple(theirs.get_feature_names_out())
    assert dense(encoder.transform(values, "")) == pytest.approx(expected, abs=1e-6)


def test_words_of_new_and_odd_cells():
    cells = CELLS.fillna("").astype(object)
    cells.iloc[0] = "word1 \ud800 word2"
    assert dense(fit_text(cells).transform(cells, ""))[0].astype(bool).sum() == 2
    encoder = from_dict(json.loads(json.dumps(as_dict(fit_text(CELLS)))))
    new = pd.Series(["word1 word1 and then unheard", "unheard of at all"], name="about")
    one, none = dense(encoder.transform(new, "nodes"))
    assert one[encoder.words.index("word1")] == 1
    assert not none.any()


def test_common_words_are_saved_and_rare_ones_are_not():
    cells = CELLS.fillna("") + [f" Ann{row} Smith" if row < 4 else "" for row in range(62)]
    stored = json.dumps(as_dict(fit_text(cells))).lower()
    assert "ann" not in stored
    assert "smith" not in stored
    assert "smith" in json.dumps(as_dict(fit_text(cells + " Smith"))).lower()
    cells = pd.Series([f"sells a{i} b{i} c{i} d{i}" for i in range(40)], name="about")
    assert len(fit_text(cells).names) == TEXT_BUCKETS
    assert type(fit_text(cells[:3])) is Text
    lines = [" ".join(f"w{i}" for i in range(row, 1500)) for row in range(0, 600, 50)]
    encoder = fit_text(pd.Series(lines, name="about"))
    assert len(encoder.words) == MAX_WORDS
    assert "w1499" in encoder.words
    assert "w0" not in encoder.words


TAGS = [f"w{i}" for i in range(12)]


def lists(size=60, seed=0):
    random = np.random.default_rng(seed)
    return [list(random.choice(TAGS, random.integers(0, 5), replace=False)) for _ in range(size)]


WRITERS = {
    "objects": lambda items: items,
    "tuples": tuple,
    "sets": set,
    "arrays": lambda items: np.array(items, dtype=object),
    "JSON": lambda items: json.dumps(list(items)),
    "Python": lambda items: str([str(item) for item in items]),
    "semicolons": ";".join,
    "bars": " | ".join,
    "commas": ",".join,
}


@pytest.mark.parametrize("form", WRITERS)
def test_items_as_scikit_learn_does_it(form):
    cells = lists()
    values = pd.Series([WRITERS[form](items) for items in cells], name="tags", dtype=object)
    encoder = fit_column(values, "t")
    assert isinstance(encoder, Items)
    theirs = MultiLabelBinarizer(classes=encoder.items).fit(cells)
    assert dense(encoder.transform(values, "t")).tolist() == theirs.transform(cells).tolist()
    assert set(encoder.items) == set(TAGS)
    assert encoder.names[0] == "tags=w0"
    nodes = sum(map(bool, cells))
    (sentence,) = describe_encoders([encoder])
    assert sentence.endswith(f": 12 items of {nodes} nodes as 0/1 features.")


def test_parquet_and_json_and_back(tmp_path):
    table = pd.DataFrame(
        {"tags": lists(), "v": list(np.random.default_rng(0).normal(size=(60, 3)))}
    )
    table.to_parquet(tmp_path / "t.parquet")
    table = pd.read_parquet(tmp_path / "t.parquet")
    encoder = fitted(table)
    same = again(encoder)
    assert same == encoder
    as_text = table.assign(tags=[json.dumps(list(t)) for t in table.tags], v=table.v.map(list))
    assert torch.equal(same.transform(as_text), encoder.transform(table))
    assert len(encoder.notes) == 2


def test_rare_items_are_not_stored_and_unknown_ones_ignored():
    cells = [["a", "b"], ["a", "a"], ["b", "secret"], [], None, ["a", " b ", "", None]]
    encoder = fit_column(pd.Series(cells, name="tags"), "t")
    assert encoder.items == ("a", "b")
    assert "secret" not in json.dumps(FeatureEncoder(columns=(encoder,)).as_dict())
    (sentence,) = describe_encoders([encoder])
    assert sentence.endswith("2 items of 4 nodes as 0/1 features; rare items left out: 1.")
    new = pd.Series([["a", "new"], None, "b", "ab"], name="tags", dtype=object)
    assert dense(encoder.transform(new, "t")).tolist() == [[1, 0], [0, 0], [0, 1], [0, 0]]
    encoder = fit_column(pd.Series([[1, 2], [2], [1, 3], [3]] * 3, name="ids"), "t")
    assert encoder.items == ("1", "2", "3")
    found = dense(encoder.transform(pd.Series(["[1.0]", '["2"]']), "t"))
    assert found.tolist() == [[1, 0, 0], [0, 1, 0]]
    values = pd.Series(["[1],[2]", "[1]", "[2]"] * 20, name="tags")
    assert fit_column(values, "t").names == ("tags=[1]", "tags=[2]")  # separated by commas


def test_memory_is_bounded(monkeypatch):
    cells = lists(400)
    monkeypatch.setattr(list_encoders, "MAX_BYTES", 400 * 4 * 5)
    encoder = fit_column(pd.Series(cells, name="tags"), "t")
    counts = pd.Series([item for items in cells for item in items]).value_counts()
    assert min(counts[item] for item in encoder.items) >= counts.iloc[5]
    assert len(encoder.items) == 5
    assert describe_encoders([encoder])[0].endswith("left out to save memory: 7.")


@pytest.mark.parametrize(
    "cells",
    [
        ["Smith, John", "Smith, Ann", "Lee, John", "Lee, Ann", "Lee, Bo"],
        ["1,5", "2,5", "1,7", "2,7", "1,5", "1,x"],
        ["a;b", "c;d", "a;b", "c;d"],
        ["[removed]", "[deleted]"] * 5,
        ["a"] * 50 + ["b"] * 50 + ["a;b"],
    ],
)
def test_no_lists(cells):
    values = pd.Series(cells * 4, name="c", dtype=object)
    assert isinstance(fit_column(values, "t"), Category)


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["€ 12.50", "2,015.32", "$3", "6 EUR", "1e2"], None),
        (["€ 12.50", "2,015.32", "$3", "-6 EUR"], [12.5, 2015.32, 3, -6]),
        (["1.234,50", "12,5", "1.000", "9"], [1234.5, 12.5, 1000, 9]),
        (["1,234", "5.5"], [1234, 5.5]),
        (["12.50", "(44.70)", "(€ 1,000)", "3"], [12.5, -44.7, -1000, 3]),
        (["12.50", "(44.70", "(-3)"], None),
        (["1 234,50 kr", "-7,5 kr", "CHF 2'000.00", "5,0%"], [1234.5, -7.5, 2000, 5]),
        (["-€4.20", "0171 234 567"], None),
        (["0,125", "0,250"], None),  # of thousands or of decimals
        (["1.234,5", "1,234.5"], None),
    ],
)
def test_amounts_are_read_if_all_cells_agree_on_the_separators(cells, numbers):
    values = pd.Series(cells, name="c")
    kind = column_kind(values, "t")
    assert kind == ("text" if numbers is None else "number")
    if numbers is not None:
        assert to_numbers(values, "t").tolist() == numbers


WORDS = ["Golden Market", "Blue Coffee", "Royal Travel", "Happy Books", "Metro Fuel", "Sunny Hotel"]


def spellings(rows, seed=0):
    """Names with a letter wrong and a number, and which name each is."""
    rng = np.random.default_rng(seed)
    names = rng.integers(0, len(WORDS), rows)
    cells = []
    for name in names:
        letters = list(WORDS[name])
        letters[rng.integers(len(letters))] = chr(97 + rng.integers(26))
        cells.append("".join(letters) + f" {rng.integers(999)}")
    return pd.Series(cells, name="shop"), names


def test_spellings_of_a_name_are_close_and_no_text_is_stored():
    cells, names = spellings(300)
    encoder = fit_column(cells, "t")
    assert isinstance(encoder, Grams)
    stored = json.dumps(as_dict(encoder))
    assert not any(word.split()[0].lower() in stored.lower() for word in WORDS)
    new, truth = spellings(60, seed=1)
    found = from_dict(json.loads(stored)).transform(new, "t")
    means = np.stack([encoder.transform(cells, "t")[names == n].mean(0) for n in range(len(WORDS))])
    nearest = ((found[:, None] - means) ** 2).sum(2).argmin(1)
    assert (nearest == truth).mean() > 0.95
    upper = encoder.transform(pd.Series([*new.str.upper(), None], name="shop"), "t")
    np.testing.assert_allclose(upper[:-1], found)
    assert not upper[-1].any()


@pytest.mark.parametrize("form", ["{:08x}", "TX-{:09d}", "{:032x}", "u{}", "device-{:08x}"])
def test_ids_are_no_spellings(form):
    cells = np.random.default_rng(0).integers(0, 2**32, 500)
    with pytest.raises(UselessColumnError, match="distinct, like ids"):
        fit_column(pd.Series([form.format(cell) for cell in cells], name="c"), "t")


def test_a_time_of_day_is_a_cycle_and_a_comma_that_may_mean_two_things_is_named():
    clock = pd.Series([f"{place % 24}:30" for place in range(100)], name="hour")
    encoder = fit_column(clock, "t")
    assert encoder.cycles == ("day",)
    waves = encoder.transform(clock, "t")[:, 1:]
    np.testing.assert_allclose(waves[0], [np.sin(np.pi / 24), np.cos(np.pi / 24)], atol=1e-9)
    assert isinstance(fit_column(pd.Series(["23:10", "31:10"] * 20, name="length"), "t"), Category)
    commas = pd.Series([f"{place},125" for place in range(100)], name="c")
    with pytest.raises(UselessColumnError, match="the comma in '0,125' may be of thousands"):
        fit_column(commas, "t")
    amounts = [f"{place}.79" if place % 3 else f"1.{place + 100},79 €" for place in range(100)]
    table = pd.DataFrame({"amount": amounts, "age": range(100)})
    notes = FeatureEncoder.fit(table, list(table), edge_index=torch.zeros(2, 0).long()).notes
    assert str(notes[0]) == (
        "Warning: left out column 'amount': it looks like amounts in two forms, such as '1.79' and "
        "'1.100,79 €'; write all in one form, such as 5.79."
    )


@pytest.mark.parametrize(
    ("step", "cycles"),
    [
        ("7h", ("day", "week")),
        ("1D", ("week", "year")),
        ("7s", ("day",)),
        ("30D", ("week", "year")),
    ],
)
def test_dates_have_the_cycles_in_which_they_vary(step, cycles):
    dates = pd.Series(pd.date_range("2024-01-01", periods=250, freq=step), name="at")
    encoder = fit_column(dates, "t")
    assert encoder.cycles == cycles
    assert from_dict(as_dict(encoder)) == encoder
    features = encoder.transform(dates, "t")
    assert features.shape == (250, 1 + 2 * len(cycles)) == (250, len(encoder.names))
    np.testing.assert_allclose(features[:, 1::2] ** 2 + features[:, 2::2] ** 2, 1)
    later = encoder.transform(dates + pd.Timedelta(days=7), "t")
    week = 1 + 2 * cycles.index("week") if "week" in cycles else 1
    np.testing.assert_allclose(later[:, week : week + 2], features[:, week : week + 2], atol=1e-9)
    assert (later[:, 0] > features[:, 0]).all()


@pytest.mark.filterwarnings("error")
def test_infinite_items_give_no_warning():
    cells = pd.Series(["[1e999, 1e999, 2]", "[1, 2, 3]"] * 5, name="tags")
    assert isinstance(fit_column(cells, "t"), Items)


def test_vectors_are_scaled_together():
    vectors = np.random.default_rng(0).normal(size=(200, 3)) * [1, 10, 0.1] + 5
    cells = [*vectors.tolist(), None]
    for values in (pd.Series(cells), pd.Series([c and json.dumps(c) for c in cells])):
        encoder = fit_column(values.rename("v"), "t")
        assert isinstance(encoder, Vector)
        features = encoder.transform(values, "t")
        assert features[-1].tolist() == [0, 0, 0]
        assert features[:-1].mean(axis=0) == pytest.approx(np.zeros(3), abs=1e-6)
        assert (features[:-1] ** 2).mean() == pytest.approx(1)
        spread = features[:-1].std(axis=0)
        assert spread[1] / spread[0] == pytest.approx(vectors.std(0)[1] / vectors.std(0)[0])
    assert encoder.names == ("v[0]", "v[1]", "v[2]")
    assert describe_encoders([encoder]) == ["Column 'v': vectors of 3 numbers, scaled together."]
    assert isinstance(fit_column(pd.Series([[1, 0, 0], [0, 1, 0]] * 9, name="v"), "t"), Vector)
    assert isinstance(fit_column(pd.Series([[1, 2, 3], [2, 3, 4]] * 9, name="v"), "t"), Items)


BITS = (np.random.default_rng(0).random((40, 60)) < 0.2).astype(int)


def frame(bits=BITS):
    table = pd.DataFrame(bits, columns=[f"f{i}" for i in range(60)])
    table["age"] = range(40)
    return table


@pytest.mark.parametrize("dtype", [int, float, bool, str])
def test_flags_stay_as_they_are_with_one_note(dtype):
    table = frame(BITS.astype(dtype))
    encoder = fitted(table)
    assert encoder.notes == ("60 columns of 0 and 1 (f0, f1, ...) as 0/1 features.",)
    assert encoder.names == ("age", *(f"f{i}" for i in range(60)))
    assert encoder.transform(table)[:, 1:].tolist() == BITS.tolist()
    assert torch.equal(again(encoder).transform(frame()), encoder.transform(table))


def test_flags_empty_constant_few_and_broken():
    table = frame(BITS.astype(str).astype(object))
    table["f0"], table["f1"] = "0", [None, "1", " 0"] + ["true"] * 37
    encoder = fitted(table)
    assert "59 columns of 0 and 1 (f0, f1, ...)" in encoder.notes[0]
    assert encoder.notes[0].endswith("features; constant ones left out: 1.")
    assert encoder.transform(table)[:3, 1].tolist() == [0, 1, 0]
    encoder = fitted(frame()[["f0", "f1", "age"]])
    assert (encoder.indicators, len(encoder.columns)) == ((), 3)
    lists = frame().assign(tags=[["a"], ["b"]] * 20, f5=2)
    assert "f5" not in fitted(lists).indicators
    assert len(fitted(lists).indicators) == 59
    new = frame().astype({"f7": object})
    new.loc[2, "f7"] = "x"
    for check in (fitted(frame()).transform, fitted(frame()).check_rows):
        with pytest.raises(ValueError, match="column 'f7', row 3 holds 'x'; expected 0, 1 or an"):
            check(new)


def test_the_most_frequent_within_the_memory(monkeypatch):
    monkeypatch.setattr(feature_encoder, "MAX_BYTES", 40 * 4 * 7)
    encoder = fitted(frame())
    assert len(encoder.indicators) == 7
    others = BITS.sum(0)[[i for i in range(60) if f"f{i}" not in encoder.indicators]]
    assert min(BITS[:, int(name[1:])].sum() for name in encoder.indicators) >= others.max()
    assert encoder.notes[0].endswith("less frequent ones left out to save memory: 53.")


def edges_of(network):
    pairs = [pair for a, b in network.edges for pair in ((a, b), (b, a))]
    return torch.tensor(sorted(pairs), dtype=torch.long).reshape(-1, 2).T


def adjacency_of(network):
    return sp.csr_array(nx.to_scipy_sparse_array(network, weight=None, dtype=float))


@given(st.integers(1, 25), st.floats(0, 0.6), st.integers(0, 1000))
def test_against_networkx(size, density, seed):
    network = nx.gnp_random_graph(size, density, seed=seed)
    found = structural_features(edges_of(network), size)
    degree = [network.degree(node) for node in range(size)]
    assert found[:, 0] == pytest.approx(np.log1p(degree))
    ranks = nx.pagerank(network, tol=1e-12, max_iter=1000)
    assert np.exp(found[:, 1]) / size == pytest.approx([ranks[n] for n in range(size)], abs=1e-8)
    assert found[:, 2] == pytest.approx(list(nx.clustering(network).values()))


def test_triangles_in_small_pieces_and_around_a_hub(monkeypatch):
    network = nx.gnp_random_graph(60, 0.3, seed=1)
    monkeypatch.setattr(context, "TRIANGLE_BLOCK", 10)
    assert context.triangles(adjacency_of(network)).tolist() == list(nx.triangles(network).values())
    # the square of this matrix has 10^10 entries
    hub = nx.star_graph(100_000)
    found = structural_features(edges_of(hub), 100_001)
    assert found[:, 2].max() == 0
    assert found[0, 1] > found[1, 1]
    assert pagerank(adjacency_of(nx.empty_graph(4))).tolist() == [0.25] * 4
    assert pagerank(adjacency_of(nx.karate_club_graph())).sum() == pytest.approx(1)
