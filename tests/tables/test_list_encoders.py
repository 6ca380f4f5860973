"""Lists to 0/1 features, vectors to numbers."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.preprocessing import MultiLabelBinarizer

from evengraph.tables import FeatureEncoder
from evengraph.tables import encoders as list_encoders
from evengraph.tables.encoders import Category, Items, Vector, fit_column, without_item

EDGES = torch.tensor([[0, 1], [1, 0]])
WORDS = [f"w{i}" for i in range(12)]


def lists(size=60, seed=0):
    random = np.random.default_rng(seed)
    return [list(random.choice(WORDS, random.integers(0, 5), replace=False)) for _ in range(size)]


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
    assert encoder.transform(values, "t").dense().tolist() == theirs.transform(cells).tolist()
    assert set(encoder.items) == set(WORDS)
    assert encoder.names[0] == "tags=w0"
    nodes = sum(map(bool, cells))
    assert encoder.describe() == f"Column 'tags': 12 items of {nodes} nodes as 0/1 features."


def test_two_lists_in_a_cell_are_not_one():
    values = pd.Series(["[1],[2]", "[1]", "[2]"] * 20, name="tags")
    assert fit_column(values, "t").names == ("tags=[1]", "tags=[2]")  # separated by commas
    encoder = fit_column(pd.Series(["[1, 2]", "[1]", "[2]"] * 20, name="tags"), "t")
    with pytest.raises(ValueError, match=re.escape("row 1 holds '[1],[2]'; expected a list")):
        encoder.transform(values, "t")


def test_parquet_and_json_and_back(tmp_path):
    table = pd.DataFrame(
        {"tags": lists(), "v": list(np.random.default_rng(0).normal(size=(60, 3)))}
    )
    table.to_parquet(tmp_path / "t.parquet")
    table = pd.read_parquet(tmp_path / "t.parquet")
    encoder = FeatureEncoder.fit(table, ["tags", "v"], edge_index=EDGES)
    same = FeatureEncoder.from_dict(json.loads(json.dumps(encoder.as_dict(), allow_nan=False)))
    assert same == encoder
    as_text = table.assign(tags=[json.dumps(list(t)) for t in table.tags], v=table.v.map(list))
    assert torch.equal(same.transform(as_text), encoder.transform(table))
    assert len(encoder.notes) == 2


def test_rare_items_are_not_stored_and_unknown_ones_ignored():
    cells = [["a", "b"], ["a", "a"], ["b", "secret"], [], None, ["a", " b ", "", None]]
    encoder = fit_column(pd.Series(cells, name="tags"), "t")
    assert encoder.items == ("a", "b")
    assert "secret" not in json.dumps(FeatureEncoder(columns=(encoder,)).as_dict())
    assert encoder.describe().endswith(
        "2 items of 4 nodes as 0/1 features; rare items left out: 1."
    )
    new = pd.Series([["a", "new"], None, "b", "ab"], name="tags", dtype=object)
    assert encoder.transform(new, "t").dense().tolist() == [[1, 0], [0, 0], [0, 1], [0, 0]]


def test_numbers_of_items_are_spelt_in_any_way():
    encoder = fit_column(pd.Series([[1, 2], [2], [1, 3], [3]] * 3, name="ids"), "t")
    assert encoder.items == ("1", "2", "3")
    assert encoder.transform(pd.Series(["[1.0]", '["2"]']), "t").dense().tolist() == [
        [1, 0, 0],
        [0, 1, 0],
    ]


def test_memory_is_bounded(monkeypatch):
    cells = lists(400)
    monkeypatch.setattr(list_encoders, "MAX_BYTES", 400 * 4 * 5)
    encoder = fit_column(pd.Series(cells, name="tags"), "t")
    counts = pd.Series([item for items in cells for item in items]).value_counts()
    assert min(counts[item] for item in encoder.items) >= counts.iloc[5]
    assert len(encoder.items) == 5
    assert encoder.describe().endswith("features; less frequent items left out to save memory: 7.")


@pytest.mark.parametrize(
    "cells",
    [
        ["Smith, John", "Smith, Ann", "Lee, John", "Lee, Ann", "Lee, Bo"],
        ["1,5", "2,5", "1,7", "2,7", "1,5", "1,9"],
        ["a;b", "c;d", "a;b", "c;d"],
        ["[removed]", "[deleted]"] * 5,
        ["a"] * 50 + ["b"] * 50 + ["a;b"],
    ],
)
def test_no_lists(cells):
    values = pd.Series(cells * 4, name="c", dtype=object)
    assert isinstance(fit_column(values, "t"), Category)


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
    assert encoder.describe() == "Column 'v': vectors of 3 numbers, scaled together."


def test_whole_numbers_are_items_unless_they_repeat():
    assert isinstance(fit_column(pd.Series([[1, 0, 0], [0, 1, 0]] * 9, name="v"), "t"), Vector)
    assert isinstance(fit_column(pd.Series([[1, 2, 3], [2, 3, 4]] * 9, name="v"), "t"), Items)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([[0.5, 1.5], [0.5], [1.5, 2.5]], "column 'v', row 2 holds 1 numbers, expected 2"),
        ([[0.5, 1.5], [0.5, None]], "column 'v', row 2 holds a list in which an item is not"),
        ([[0.5, np.inf], [0.5, 1]], "column 'v', row 1 holds a list in which an item is not"),
    ],
)
def test_bad_vectors(cells, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        fit_column(pd.Series(cells, name="v"), "t")


def test_a_new_cell_that_is_no_list():
    encoder = fit_column(pd.Series(['["a"]', '["a", "b"]', '["b"]'] * 3, name="tags"), "t")
    with pytest.raises(ValueError, match=r"column 'tags', row 2 holds '\[a'; expected a list"):
        encoder.transform(pd.Series(["[]", "[a"], name="tags"), "t")


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ([[f"u{i}"] for i in range(20)], "none of its 20 items occurs on 5 nodes"),
        ([["a", "b"]] * 20, "every node has the same items"),
        ([[0.5, 0.5]] * 20, "it is constant"),
        ([[]] * 20, "none of its 0 items"),
    ],
)
def test_lists_without_information(cells, reason):
    frame = pd.DataFrame({"c": cells, "n": range(20)})
    assert reason in FeatureEncoder.fit(frame, ["c", "n"], edge_index=EDGES).notes[0]


@pytest.mark.parametrize(
    "cells", [["a;b", None, "b", "b;a", "a"], ['["a", "b"]', None, '["b"]', "[]", '["a"]']]
)
def test_an_item_is_left_out(cells):
    values = pd.Series(cells, name="tags", index=[5, 6, 7, 8, 9])
    found = without_item(values, "t", "b")
    assert found.index.tolist() == [5, 6, 7, 8, 9]
    assert found.tolist()[:3] == [["a"], [], []]
    with pytest.raises(ValueError, match="no list holds the item 'd'"):
        without_item(values, "t", "d")


def test_vectors_with_huge_numbers_are_refused():
    column = pd.Series([[1e200, 1.0], [2.0, 1.0]], name="v")
    with pytest.raises(ValueError, match="mine, column 'v' holds a vector with a number above"):
        Vector.fit(column, "mine")
