"""Cells of a table: which are empty, what they are called, what they are as numbers or dates.

Everything that reads a user's column goes through here, so that an id, a label and a feature are
understood alike and a complaint about one names the table, the column and the row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evengraph.core.errors import ArgumentError

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

# What programs write for a value that is not there. Only columns of numbers, dates and labels know
# them: as an id or a category, NA is a country. "none" is a grade of many a disease, so no label.
EMPTY_LABELS = frozenset({"", "nan", "na", "n/a", "#n/a", "<na>", "null"})
EMPTY_NUMBERS = EMPTY_LABELS | {"none", "nat"}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ].*)?")
_MOSTLY = 0.8  # a column of which at least so much is numbers, or dates, is meant to be one
_SHOWN_CELLS = 3


def need_pandas() -> Any:
    """The module pandas, or one line that says how to get it and scikit-learn."""
    try:
        import pandas
        import sklearn  # noqa: F401
    except ImportError:
        raise ValueError(
            "Tables need pandas and scikit-learn: pip install 'evengraph[tables]'."
        ) from None
    return pandas


def table_name(table: Any, fallback: str) -> str:
    """What to call a table: its file where it came from one."""
    return str(table.attrs.get("file", fallback))


def place(table: str, column: str, index: int | None = None) -> str:
    """How a complaint begins; rows are counted from 1, without the header."""
    return f"{table}, column {column!r}" + ("" if index is None else f", row {index + 1}")


def were(many: int, what: str) -> str:
    """How a note begins: `1 edge was`, `3 edges were`."""
    return f"{many} {what} was" if many == 1 else f"{many} {what}s were"


def empty(values: Any, words: Iterable[str] = ("",)) -> Bools:
    """Which cells hold nothing: missing, blank, or a word for it, (N,)."""
    missing: Bools = np.asarray(values.isna(), dtype=bool)
    if _may_hold_text(values):
        words = frozenset(words)
        text = [isinstance(v, str) and v.strip().lower() in words for v in values.to_numpy(object)]
        missing = missing | np.array(text, dtype=bool)
    return missing


def name_of(value: Any) -> str:
    """One name for a value however a table spells it: 3, 3.0 and "3" are all "3"."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    return str(value)


def names_of(values: Any) -> NDArray[Any]:
    """The names of a column's values, (N,); each different value is named once."""
    codes, different = coded(values, use_na_sentinel=False)
    names = np.array([name_of(value) for value in different], dtype=object)
    return names[codes] if len(names) else names


def coded(values: Any, **options: Any) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Numbers in place of values, (N,), and the different values, for cells that hold one each."""
    try:
        codes, different = need_pandas().factorize(values.to_numpy(object), **options)
    except TypeError:  # lists and the like cannot be compared
        raise ValueError(
            f"Column {values.name!r} holds lists or the like; a cell must hold one number or text."
        ) from None
    return codes, different


def kind_of(values: Any, table: str, *, needed: bool = False) -> str:
    """What a column holds: empty, boolean, number, date or text; refuses a mixture.

    Text that is a number in every cell is a number, unless one begins with a zero, as codes do.
    Text counts as a mixture when four cells in five or more are numbers and the others are not,
    or dates and the others are not.

    Args:
        values: The column.
        table: What to call its table.
        needed: Whether it cannot be left out, as a feature can.
    """
    pandas = need_pandas()
    column = str(values.name)
    full = values[~empty(values, EMPTY_NUMBERS)]
    if not len(full):
        # words for nothing are text after all when there is nothing else
        return "empty" if empty(values).all() else "text"
    types = pandas.api.types
    if types.is_datetime64_any_dtype(full.dtype):
        return "date"
    if types.is_timedelta64_dtype(full.dtype):
        return "number"
    kind = types.infer_dtype(full.astype(object), skipna=True)
    if kind == "boolean":
        return "boolean"
    if kind in ("integer", "floating", "mixed-integer-float", "decimal"):
        return "number"
    if kind in ("date", "datetime", "datetime64"):
        return "date"
    if kind == "string":
        return _kind_of_text(values, table, needed)
    row, value = _odd_one(values, full)
    if isinstance(value, list | tuple | dict | set | np.ndarray):
        raise ValueError(
            f"{place(table, column, row)} holds a {type(value).__name__}; a cell must hold one "
            "number, text, date or boolean: spread it over several columns."
        )
    raise ValueError(
        f"{place(table, column, row)} holds {_shown(value)}, other rows hold "
        f"{_shown(full.iloc[0])}: mixed types; make them all numbers or all text."
    )


def odd_cells(values: Any) -> tuple[str, int, int, str] | None:
    """What half a column or more is, and the cells that are not: numbers or dates first.

    That is "number" or "date", how many cells are none, of how many, and the first one with its
    row; None where all cells are alike, or neither numbers nor dates are half of them.
    """
    rows = np.flatnonzero(~empty(values, EMPTY_NUMBERS))
    if not len(rows) or not _may_hold_text(values):
        return None
    for what, wrong in _wrong_cells(values, rows).items():
        many = int(wrong.sum())
        if not many:
            return None
        if many <= len(rows) / 2:
            return what, many, len(rows), _cell(values, int(rows[wrong.argmax()]))
    return None


def numbers(values: Any, table: str) -> Floats:
    """A column as numbers with NaN where it is empty, (N,); infinity and text are refused."""
    pandas = need_pandas()
    column = str(values.name)
    if pandas.api.types.is_timedelta64_dtype(values.dtype):
        return np.asarray(values.dt.total_seconds(), dtype=np.float64)
    gone = empty(values, EMPTY_NUMBERS)
    plain = values.astype(object).where(~gone, None)
    if _may_hold_text(values):
        plain = plain.map(lambda value: value.strip() if isinstance(value, str) else value)
    found = np.array(pandas.to_numeric(plain, errors="coerce"), dtype=np.float64)
    wrong = np.isnan(found) & ~gone
    if wrong.any():
        raise ValueError(
            f"{_holds(values, table, wrong, ~gone, 'number')}; a number is needed, or an empty "
            "cell where there is none."
        )
    found[gone] = np.nan
    infinite = np.isinf(found)
    if infinite.any():
        raise ValueError(
            f"{place(table, column, int(infinite.argmax()))} is infinite; leave the cell empty "
            "where there is no number."
        )
    return found


def seconds(values: Any, table: str) -> Floats:
    """A column of dates as seconds since 1970 in UTC, NaN where it is empty, (N,)."""
    pandas = need_pandas()
    gone = empty(values, EMPTY_NUMBERS)
    plain = values.astype(object).where(~gone, None) if _may_hold_text(values) else values
    dates = pandas.to_datetime(plain, format="ISO8601", utc=True, errors="coerce")
    wrong = np.asarray(dates.isna(), dtype=bool) & ~gone
    if wrong.any():
        raise ValueError(
            f"{_holds(values, table, wrong, ~gone, 'date')}; a date is needed, such as 2024-05-31 "
            "or 2024-05-31T18:00:00Z, or an empty cell where there is none."
        )
    since = (dates - pandas.Timestamp(0, tz="UTC")) / pandas.Timedelta(seconds=1)
    return np.asarray(since, dtype=np.float64)


def booleans(values: Any, table: str) -> Floats:
    """A column of booleans as 1, -1 and, where it is empty, 0, (N,)."""
    known = {"true": 1.0, "1": 1.0, "false": -1.0, "0": -1.0}
    words = [name.lower() for name in names_of(values)]
    gone = empty(values, EMPTY_NUMBERS)
    found = np.array([known.get(word, np.nan) for word in words], dtype=np.float64)
    found[gone] = 0
    wrong = np.isnan(found)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"{place(table, str(values.name), row)} holds {_shown(values.iloc[row])}; true or "
            "false is needed, or an empty cell."
        )
    return found


def _may_hold_text(values: Any) -> bool:
    types = need_pandas().api.types
    return not (
        types.is_bool_dtype(values.dtype)
        or types.is_numeric_dtype(values.dtype)
        or types.is_datetime64_any_dtype(values.dtype)
        or types.is_timedelta64_dtype(values.dtype)
    )


def _kind_of_text(values: Any, table: str, needed: bool) -> str:
    rows = np.flatnonzero(~empty(values, EMPTY_NUMBERS))
    text = values.iloc[rows].astype(object).str.strip()
    kinds = _wrong_cells(values, rows)
    if not kinds["number"].any():
        return "text" if text.str.match(r"[+-]?0\d").any() else "number"
    if text.str.lower().isin(("true", "false")).all():
        return "boolean"
    if not kinds["date"].any():
        return "date"
    for what, odd in kinds.items():
        if (~odd).mean() >= _MOSTLY:
            wrong, full = np.zeros((2, len(values)), dtype=bool)
            wrong[rows], full[rows] = odd, True
            fix = f"fix or empty {'it' if odd.sum() == 1 else 'them'}"
            message = f"{_told(values, table, wrong, full, what)}: mixed types; {fix}"
            if needed:
                raise ValueError(f"{message}.")
            raise ArgumentError(
                f"{message}, or drop the column.", argument="drop", value=str(values.name)
            )
    return "text"


def _wrong_cells(values: Any, rows: NDArray[np.int64]) -> dict[str, Bools]:
    """Which cells of these rows are no numbers, and which are no dates, (R,) each."""
    full = values.iloc[rows].astype(object)
    text = full.map(lambda value: value.strip() if isinstance(value, str) else value)
    found = np.asarray(need_pandas().to_numeric(text, errors="coerce"), dtype=np.float64)
    words = np.isnan(found)
    dates = np.zeros(len(rows), dtype=bool)
    if words.any():
        dates[:] = [isinstance(cell, str) and bool(_DATE.fullmatch(cell)) for cell in text]
    return {"number": words, "date": ~dates}


def _told(values: Any, table: str, wrong: Bools, full: Bools, what: str) -> str:
    """How many cells are wrong, and the first of them."""
    many = int(wrong.sum())
    are = f"is no {what}" if many == 1 else f"are no {what}s"
    cells = ", ".join(_cell(values, int(row)) for row in np.flatnonzero(wrong)[:_SHOWN_CELLS])
    first = "first: " if many > _SHOWN_CELLS else ""
    beginning = f"{place(table, str(values.name))}: {many} of {int(full.sum())} cells"
    return f"{beginning} {are} ({first}{cells})"


def _holds(values: Any, table: str, wrong: Bools, full: Bools, what: str) -> str:
    """What a wrong cell holds; of several, what `_told` says."""
    if wrong.sum() > 1:
        return _told(values, table, wrong, full, what)
    row = int(wrong.argmax())
    return f"{place(table, str(values.name), row)} holds {_shown(values.iloc[row])}"


def _cell(values: Any, row: int) -> str:
    return f"{_shown(values.iloc[row])} in row {row + 1}"


def _odd_one(values: Any, full: Any) -> tuple[int, Any]:
    """The row and value of the first cell that is not like the first one, or of the first."""
    cells = values.to_numpy(object)
    rows = np.flatnonzero(~empty(values, EMPTY_NUMBERS))
    first = type(cells[rows[0]])
    if first not in (list, tuple, dict, set, np.ndarray):
        for row in rows:
            if type(cells[row]) is not first:
                return int(row), cells[row]
    return int(rows[0]), cells[rows[0]]


def _shown(value: Any) -> str:
    """A value as a message shows it: short, on one line."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 40 else text[:37] + "..."
