"""TextColumn: what Arrow does to a column is what Python does to each cell."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evengraph.tables.cells import EMPTY_NUMBERS
from evengraph.tables.text_column import TextColumn

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
