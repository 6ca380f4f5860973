"""Cells: names, gaps, kinds."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evengraph.core.errors import ArgumentError
from evengraph.tables import cells as values
from evengraph.tables.cells import (
    EMPTY_NUMBERS,
    canonical_name,
    canonical_names,
    column_kind,
    describe_mismatch,
    is_empty,
    to_numbers,
)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (3, "3"),
        (3.0, "3"),
        (np.float32(3), "3"),
        (np.int8(-3), "-3"),
        ("3", "3"),
        (" a b ", "a b"),
        ("007", "007"),
        (0.5, "0.5"),
        (True, "True"),
        (np.bool_(False), "False"),
        (2**70, str(2**70)),
    ],
)
def test_one_name_for_a_value(value, name):
    assert canonical_name(value) == name


@given(st.lists(st.one_of(st.integers(), st.text(), st.floats(allow_nan=False))))
def test_names_of_a_column_are_the_names_of_its_cells(cells):
    assert canonical_names(pd.Series(cells, dtype=object)).tolist() == [
        canonical_name(cell) for cell in cells
    ]


def test_empty_cells():
    column = pd.Series(["", " ", None, np.nan, "NA", "x", 0, False], dtype=object)
    assert is_empty(column).tolist() == [True] * 4 + [False] * 4
    assert is_empty(column, EMPTY_NUMBERS).tolist() == [True] * 5 + [False] * 3


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([1, 2], "number"),
        ([1, 2.5], "number"),
        (["1", "2e3", ""], "number"),
        (["01", "20"], "text"),
        (["1", "b"], "text"),
        ([True, None], "boolean"),
        (["true", "no"], "text"),
        (["2024-01-01", "2024-01-01 10:00"], "date"),
        (["01/02/2024"], "text"),
        ([pd.Timestamp(0)], "date"),
        ([None, ""], "empty"),
        (["NA", "NA"], "text"),
    ],
)
def test_kinds(cells, kind):
    assert column_kind(pd.Series(cells, name="c", dtype=object), "t") == kind


NUMBERS, DATES = ["1", "-2.5", " 3 "], ["2024-05-31", " 2024-05-31T10:00", "1999-01-01 "]


@pytest.mark.parametrize(("what", "good"), [("number", NUMBERS), ("date", DATES)])
@given(st.data())
def test_odd_cells_by_hand(what, good, data):
    some = st.sampled_from([*good, "low", "high", "", "n/a", None])
    cells = data.draw(st.lists(some, max_size=12))
    known = set(good)
    words = [(row, cell) for row, cell in enumerate(cells) if cell in ("low", "high")]
    total = len(words) + sum(cell in known for cell in cells)
    expected = None
    if words and 2 * len(words) <= total:
        are = f"is not a {what}" if len(words) == 1 else f"are not {what}s"
        shown = ", ".join(f"{cell!r} in row {row + 1}" for row, cell in words[:3])
        first = "first: " if len(words) > 3 else ""
        expected = what, f"{len(words)} of {total} cells {are} ({first}{shown})"
    assert describe_mismatch(pd.Series(cells, name="c", dtype=object)) == expected


@pytest.mark.parametrize("cells", [[True, False], [1, 2.5], ["007", "12"], [pd.Timestamp(0)], []])
def test_no_odd_cells_among_other_kinds(cells):
    assert describe_mismatch(pd.Series(cells, dtype=object)) is None
    assert describe_mismatch(pd.Series(cells)) is None


@given(st.lists(st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False))))
def test_numbers_and_their_text_agree(cells):
    plain = pd.Series(cells, name="c", dtype=float)
    text = pd.Series(["" if c is None else repr(c) for c in cells], name="c", dtype=object)
    np.testing.assert_array_equal(to_numbers(plain, "t"), to_numbers(text, "t"))


def test_long_cells_are_cut_in_messages():
    with pytest.raises(ValueError, match=r"row 2 holds 'x{36}\.\.\.; expected a number") as caught:
        to_numbers(pd.Series(["1", "x" * 500], name="c"), "t")
    assert len(str(caught.value)) < 200


def test_a_mixed_column_can_be_dropped_unless_it_is_needed():
    cells = pd.Series([*"123456789", "x"], name="spent a month")
    with pytest.raises(ArgumentError, match=r"fix or empty it, or drop the column\.$") as caught:
        column_kind(cells, "t")
    assert (caught.value.argument, caught.value.value) == ("drop", "spent a month")
    with pytest.raises(ValueError, match=r"fix or empty it\.$") as caught:
        column_kind(cells, "t", required=True)
    assert not isinstance(caught.value, ArgumentError)


def test_without_pandas_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ValueError, match=r"pip install 'evengraph\[tables\]'"):
        values.import_pandas()


def test_complex_numbers_are_refused_and_long_names_cut():
    with pytest.raises(ValueError, match=r"t, column 'c' holds complex numbers\."):
        to_numbers(pd.Series([1 + 2j], name="c"), "t")
    assert len(values.location("t", "x" * 5000)) < 120


def test_an_integer_of_400_digits_is_infinite():
    with pytest.raises(ValueError, match=r"t, column 'c', row 2 is infinite"):
        to_numbers(pd.Series([1, 10**400, "x"][:2], name="c", dtype=object), "t")
