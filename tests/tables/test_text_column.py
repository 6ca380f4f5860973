"""TextColumn: what Arrow does to a column is what Python does to each cell."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evengraph.tables.cells import EMPTY_NUMBERS
from evengraph.tables.text import TextColumn, read_bits

SOME = ["", "nan", "1", "+1", " -2.5e3", "1_000", "0x10", "inf", "1,5", "a b", "2024-05-31 x\ny"]
TEXTS = st.lists(st.one_of(st.text(max_size=5), st.sampled_from(SOME), st.none()))


@pytest.mark.parametrize("dtype", [object, "str"])
@given(TEXTS)
def test_cells_as_python_reads_them(dtype, cells):
    values = pd.Series(cells, dtype=dtype)
    text = TextColumn.of(values)
    known = [cell is not None for cell in cells]
    stripped = [cell.strip() if cell is not None else None for cell in cells]
    assert text.cells.to_pylist() == stripped
    words = [cell is not None and cell.lower() in EMPTY_NUMBERS for cell in stripped]
    assert text.is_one_of(EMPTY_NUMBERS).tolist() == words
    days = [bool(re.fullmatch(r"[0-9]{4}-.*", cell or "")) for cell in stripped]
    assert text.matches(r"[0-9]{4}-.*").tolist() == days
    codes, distinct = text.distinct()
    assert len(set(distinct)) == len(distinct)
    assert [distinct[code] if code >= 0 else None for code in codes] == stripped
    numbers = pd.to_numeric(pd.Series(stripped, dtype=object), errors="coerce")
    np.testing.assert_array_equal(text.numbers(), np.asarray(numbers, dtype=float))
    assert text.take(np.array(known, dtype=bool)).cells.to_pylist() == [
        cell for cell in stripped if cell is not None
    ]


def test_words_are_counted():
    text = TextColumn.of(pd.Series(["one", " two  words ", None, "", "a, b\nc"]))
    assert text.num_words().tolist() == [1, 2, 0, 0, 3]


@pytest.mark.parametrize("cells", [[1, "a"], [1.5], [["a"]], [{"a": 1}], ["\ud800"]])
def test_anything_else_is_no_text(cells):
    assert TextColumn.of(pd.Series(cells, dtype=object)) is None


def test_cells_without_words_are_a_column_of_their_own():
    text = TextColumn.of(pd.Series(["a", None, " NA ", "", "b"], dtype="str"))
    assert text.without(EMPTY_NUMBERS).cells.to_pylist() == ["a", "b"]
    assert text.without(EMPTY_NUMBERS) is text.without(EMPTY_NUMBERS)
    assert text.without([""]).cells.to_pylist() == ["a", "NA", "b"]
    whole = TextColumn.of(pd.Series(["a", "b"], dtype="str"))
    assert whole.without(EMPTY_NUMBERS) is whole


def test_a_column_is_parsed_once_as_long_as_it_is_the_same():
    frame = pd.DataFrame({"n": ["1", "2"]}, dtype="str")
    text = TextColumn.of(frame["n"])
    assert TextColumn.of(frame["n"]) is text
    assert TextColumn.of(frame["n"].iloc[:1]).numbers().tolist() == [1]
    frame.loc[0, "n"] = "5"
    assert TextColumn.of(frame["n"]).numbers().tolist() == [5, 2]
    assert text.numbers().tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        text.numbers()[0] = 7


@pytest.mark.parametrize("cells", [["0", "10"], ["0", None], ["0", "2"], [" 1", "0"], ["é", "1"]])
def test_bits_are_nothing_but_0_and_1(cells):
    bits = pd.Series(["1", "0", "0", "1"], dtype="str")
    assert read_bits(bits).tolist() == [1, 0, 0, 1]
    assert read_bits(bits.iloc[1:3]).tolist() == [0, 0]
    assert read_bits(pd.Series(cells, dtype="str")) is None
    assert read_bits(bits.iloc[:0]) is None
    assert read_bits(bits.astype(int)) is None
