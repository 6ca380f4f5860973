"""Long text to features."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from evengraph.tables.encoders import as_dict, fit_column, from_dict
from evengraph.tables.text import MAX_WORDS, MIN_CELLS, TEXT_BUCKETS, Text, Words, fit_text

DRAW = np.random.default_rng(0)
WORDS = np.array([f"word{i}" for i in range(30)])
CELLS = pd.Series([" ".join(DRAW.choice(WORDS, 8)) for _ in range(60)] + ["", None], name="about")


def test_common_words_as_scikit_learn_does_it():
    encoder = fit_column(CELLS, "nodes")
    assert type(encoder) is Words
    assert encoder.words == tuple(sorted(WORDS))
    assert encoder.names[0] == "about: word0"
    expected = TfidfVectorizer(min_df=5).fit(CELLS.fillna("")).transform(CELLS.fillna("")).toarray()
    found = encoder.transform(CELLS, "nodes").dense()
    assert found == pytest.approx(expected, abs=1e-6)
    assert found.dtype == np.float32
    assert not found[-2:].any()


@given(st.lists(st.text("aBc_9 .,-'éÜ中", max_size=30), min_size=5, max_size=40))
def test_words_are_those_of_scikit_learn(cells):
    theirs = TfidfVectorizer(min_df=MIN_CELLS)
    values = pd.Series([*cells, "ab cd"] * MIN_CELLS, name="about", dtype=object)
    encoder, expected = Words.fit(values, ""), theirs.fit_transform(values).toarray()
    assert encoder.words == tuple(theirs.get_feature_names_out())
    assert encoder.transform(values, "").dense() == pytest.approx(expected, abs=1e-6)


def test_half_a_surrogate_pair_is_no_letter():
    cells = CELLS.fillna("").astype(object)
    cells.iloc[0] = "word1 \ud800 word2"
    assert fit_text(cells, "").transform(cells, "").dense()[0].astype(bool).sum() == 2


def test_json_and_back_encodes_new_words_as_nothing():
    encoder = from_dict(json.loads(json.dumps(as_dict(fit_text(CELLS, "nodes")))))
    new = pd.Series(["word1 word1 and then unheard", "unheard of at all"], name="about")
    one, none = encoder.transform(new, "nodes").dense()
    assert one[encoder.words.index("word1")] == 1
    assert not none.any()


def test_rare_words_are_not_saved():
    cells = CELLS.fillna("") + [f" Ann{row} Smith" if row < 4 else "" for row in range(62)]
    stored = json.dumps(as_dict(fit_text(cells, "nodes"))).lower()
    assert "ann" not in stored
    assert "smith" not in stored
    assert "smith" in json.dumps(as_dict(fit_text(cells + " Smith", "nodes"))).lower()


def test_few_common_words_are_hashed():
    cells = pd.Series([f"sells a{i} b{i} c{i} d{i}" for i in range(40)], name="about")
    assert len(fit_text(cells, "").names) == TEXT_BUCKETS
    assert type(fit_text(cells[:3], "")) is Text


def test_the_most_common_words_of_many():
    lines = [" ".join(f"w{i}" for i in range(row, 1500)) for row in range(0, 600, 50)]
    encoder = fit_text(pd.Series(lines, name="about"), "")
    assert len(encoder.words) == MAX_WORDS
    assert "w1499" in encoder.words
    assert "w0" not in encoder.words


def test_an_encoder_of_buckets_saved_before_gives_the_same_features():
    old = from_dict({"kind": "text", "column": "about", "idf": [1.0, 2.0]})
    assert type(old) is Text
    found = old.transform(pd.Series(["hen", "hen fox dog", None]), "").dense()
    assert np.linalg.norm(found, axis=1).round(6).tolist() == [1, 1, 0]
