"""Cells of a table, parsed alike wherever they occur: empty ones, names, numbers, dates."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Collection, Iterable
from contextlib import suppress
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evengraph.core.errors import ArgumentError, listed, short

if TYPE_CHECKING:
    from evengraph.tables.text import TextColumn


Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ColumnKind = Literal["empty", "boolean", "number", "date", "text", "list"]

# What programs write for a missing value. Only columns of numbers, dates and labels treat them as
# missing: as an id or a category, NA is a country. "none" is a common class, so no missing label.
EMPTY_LABELS = frozenset({"", "nan", "na", "n/a", "#n/a", "<na>", "null"})
EMPTY_NUMBERS = EMPTY_LABELS | {"none", "nat"}
_DATE = r"\d{4}-\d{2}-\d{2}(?:[T ].*)?"
_KINDS: dict[str, ColumnKind] = {
    "boolean": "boolean",
    **dict.fromkeys(("integer", "floating", "mixed-integer-float", "decimal"), "number"),
    **dict.fromkeys(("date", "datetime", "datetime64"), "date"),
}
_MOSTLY = 0.8  # from this share of numbers or dates on, the other cells are errors
_SHOWN_CELLS = 3
LISTS = (list, tuple, set, frozenset, np.ndarray)
_CONTAINERS = (*LISTS, dict)


def table_name(table: Any, default: str) -> str:
    """The name of a table in messages: its file, if it was read from one."""
    return str(table.attrs.get("file", default))


def check_columns(table: Any, columns: Iterable[str], default_name: str) -> None:
    """Raise an error if the table lacks some of the columns."""
    missing = [repr(column) for column in columns if column not in table.columns]
    if missing:
        noun = "column" if len(missing) == 1 else "columns"
        raise ValueError(
            f"{table_name(table, default_name)} has no {noun} {listed(missing)}; its columns are: "
            f"{listed(table.columns)}."
        )


def is_unnamed(column: str) -> bool:
    """Whether a column has no name in its file."""
    return not column or column.startswith("Unnamed: ")


def location(table: str, column: Any, row: int | None = None) -> str:
    """Where an error is; rows are counted from 1, without the header."""
    return f"{table}, column {short(str(column))}" + ("" if row is None else f", row {row + 1}")


def plural(count: int, noun: str) -> str:
    """`1 edge`, `3 edges`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def is_empty(values: Any, words: Collection[str] = ("",)) -> Bools:
    """Which cells are missing, blank or one of the words for a missing value, (N,)."""
    missing: Bools = np.array(values.isna(), dtype=bool)
    text = as_text(values)
    if text is not None:
        missing |= text.is_one_of(words)
    elif _may_hold_text(values):  # several types
        cells = values.to_numpy(object)
        missing |= [isinstance(cell, str) and cell.strip().lower() in words for cell in cells]
    return missing


def as_text(values: Any) -> TextColumn | None:
    """A column as text, for operations on all cells at once; None if it holds anything else."""
    if not _may_hold_text(values):
        return None
    from evengraph.tables.text import TextColumn

    return TextColumn.of(values)


def text_without(values: Any, words: Collection[str] = ("",)) -> TextColumn | None:
    """The cells that `is_empty` does not name, as text; None if one is anything else."""
    text = as_text(values)
    return as_text(values[~is_empty(values, words)]) if text is None else text.without(words)


def canonical_name(value: Any) -> str:
    """One name for a value, however a table spells it: 3, 3.0 and "3" are all "3"."""
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


def canonical_names(values: Any) -> NDArray[Any]:
    """The canonical name of every cell, (N,)."""
    codes, names = distinct_names(values)
    return np.append(names, "nan")[codes].astype(object)


def distinct_names(values: Any) -> tuple[Ints, NDArray[Any]]:
    """The index of every cell's canonical name, -1 for a missing cell, (N,), and the names."""
    text = as_text(values)
    if text is not None:
        return text.distinct
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "iu":
        codes, distinct = pd.factorize(values.to_numpy())
        return codes, distinct.astype(str).astype(object)
    try:
        codes, distinct = pd.factorize(values.to_numpy(object))
    except TypeError:  # lists are not hashable
        file = values.attrs.get("file")  # of the table that the column was taken from
        where = location(file, values.name) if file else f"Column {values.name!r}"
        where += " holds lists or other containers"
        raise ValueError(f"{where}; a cell must hold one number or text.") from None
    names = np.array([canonical_name(value) for value in distinct], dtype=object)
    merged, names = pd.factorize(names)  # 3 and "3" have the same name
    return np.append(merged, -1)[codes], names


def column_kind(values: Any, table: str, *, required: bool = False) -> ColumnKind:
    """Infer what a column holds; mixed columns raise an error.

    Text that is a number in every cell is a number, unless a cell starts with a zero, as codes do.
    It is mixed if 80% of its cells are. A `required` column cannot be dropped, as a feature can.
    """
    rows = np.flatnonzero(~is_empty(values, EMPTY_NUMBERS))
    cells = values.iloc[rows]
    if not len(cells):
        # a column of nothing but words for missing values is text
        return "empty" if is_empty(values).all() else "text"
    if cells.dtype.kind in "biufmM":
        return {"b": "boolean", "M": "date"}.get(cells.dtype.kind, "number")  # type: ignore[return-value]
    text = text_without(values, EMPTY_NUMBERS)
    if text is not None:
        return _kind_of_text(text, values, rows, table, required)
    inferred = pd.api.types.infer_dtype(cells.astype(object), skipna=True)
    if inferred in _KINDS:
        return _KINDS[inferred]
    index, first = 0, cells.iloc[0]
    if not isinstance(first, _CONTAINERS):
        index = next((i for i, cell in enumerate(cells) if type(cell) is not type(first)), 0)
    value, where = cells.iloc[index], location(table, values.name, rows[index])
    if isinstance(value, LISTS) and not required:
        return "list"
    if isinstance(value, _CONTAINERS):
        raise ValueError(
            f"{where} holds a {type(value).__name__}; a cell must hold one number, text, date or "
            "boolean: use several columns."
        )
    raise ValueError(
        f"{where} holds {_short_repr(value)}, other rows hold {_short_repr(first)}: mixed types; "
        "make them all numbers or all text."
    )


def describe_mismatch(values: Any) -> tuple[str, str] | None:
    """The kind of at least half of a column, number or date, and the cells of another kind."""
    rows = np.flatnonzero(~is_empty(values, EMPTY_NUMBERS))
    if not _may_hold_text(values) or not len(rows) or isinstance(values.iloc[rows[0]], _CONTAINERS):
        return None
    for kind, wrong in _mismatches(values, rows).items():
        if not wrong.any():
            return None
        if wrong.sum() <= len(rows) / 2:
            return kind, _describe_cells(values, rows[wrong], len(rows), kind)
    return None


def to_numbers(values: Any, table: str) -> Floats:
    """A column as numbers, NaN where empty, (N,); infinity and text raise an error."""
    if values.dtype.kind == "m":
        return np.asarray(values.dt.total_seconds(), dtype=np.float64)
    if values.dtype.kind == "c":
        raise ValueError(f"{location(table, values.name)} holds complex numbers.")
    if _may_hold_text(values):
        empty = is_empty(values, EMPTY_NUMBERS)
        numbers = np.full(len(values), np.nan)
        numbers[~empty] = _parse_numbers(values, empty)
        _check_parsed(values, table, np.isnan(numbers), empty, "number", "")
    else:
        numbers = values.to_numpy(np.float64, na_value=np.nan)
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        where = location(table, values.name, infinite[0])
        raise ValueError(f"{where} is infinite; leave the cell empty if there is no number.")
    return numbers


def _iso_seconds(values: Any, table: str) -> Floats:
    """A column of dates as in ISO 8601 as seconds since 1970 in UTC, NaN where empty, (N,)."""
    empty, text = is_empty(values, EMPTY_NUMBERS), as_text(values)
    codes: Ints | slice = slice(None)
    cells = values.where(~empty, None) if _may_hold_text(values) and text is None else values
    if text is not None:  # few dates are distinct
        codes, names = text.distinct
        cells = pd.Series([*names, None], dtype=object)  # code -1, missing
    dates = pd.to_datetime(cells, format="ISO8601", utc=True, errors="coerce")
    try:
        since = (dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
    except pd.errors.OutOfBoundsDatetime:
        where = location(table, values.name)
        raise ValueError(f"{where} holds a date outside the years 1678 to 2261.") from None
    seconds = np.asarray(since, dtype=np.float64)[codes]
    examples = ", such as 2024-05-31 or 2024-05-31T18:00:00Z,"
    _check_parsed(values, table, np.isnan(seconds), empty, "date", examples)
    return np.where(empty, np.nan, seconds)


def to_signs(values: Any, table: str) -> Floats:
    """A column of booleans as 1 for true, -1 for false and 0 where empty, (N,)."""
    signs = {"true": 1.0, "1": 1.0, "false": -1.0, "0": -1.0}
    codes, names = distinct_names(values)
    numbers = np.array([*(signs.get(name.lower(), np.nan) for name in names), np.nan])[codes]
    numbers[is_empty(values, EMPTY_NUMBERS)] = 0
    wrong = np.flatnonzero(np.isnan(numbers))
    if len(wrong):
        where, cell = location(table, values.name, wrong[0]), _short_repr(values.iloc[wrong[0]])
        raise ValueError(f"{where} holds {cell}; expected true, false or an empty cell.")
    return numbers


def _may_hold_text(values: Any) -> bool:
    return values.dtype.kind not in "biufcmM"


def _kind_of_text(
    cells: TextColumn, values: Any, rows: Ints, table: str, required: bool
) -> ColumnKind:
    mismatches = _mismatches(values, rows)
    if not mismatches["number"].any():
        return "text" if cells.matches(r"[+-]?0\d.*").any() else "number"
    if cells.is_one_of(("true", "false")).all():
        return "boolean"
    if not mismatches["date"].any():
        return "date"
    if not required and cells.list_separator is not None:
        return "list"
    for kind, wrong in mismatches.items():
        if (~wrong).mean() >= _MOSTLY:
            text = f"{location(table, values.name)}: "
            text += _describe_cells(values, rows[wrong], len(rows), kind)
            text += f": mixed types; fix or empty {'it' if wrong.sum() == 1 else 'them'}"
            if required:
                raise ValueError(f"{text}.")
            text += ", or drop the column."
            raise ArgumentError(text, argument="drop", value=str(values.name))
    return "text"


def _mismatches(values: Any, rows: Ints) -> dict[str, Bools]:
    """Which cells of these rows are no numbers, and which are no dates, (R,) each."""
    empty = np.ones(len(values), dtype=bool)
    empty[rows] = False
    no_number = np.isnan(_parse_numbers(values, empty))
    text = text_without(values, EMPTY_NUMBERS)
    if not no_number.any():
        dates = np.zeros(len(rows), dtype=bool)
    elif text is not None:
        dates = text.matches(_DATE)
    else:
        cells = values.iloc[rows]
        matches = [isinstance(cell, str) and re.fullmatch(_DATE, cell.strip()) for cell in cells]
        dates = np.array(matches, dtype=bool)
    return {"number": no_number, "date": ~dates}


def _parse_numbers(values: Any, empty: Bools) -> Floats:
    """Cells that are not empty as numbers, NaN where there is none, (M,)."""
    text = text_without(values, EMPTY_NUMBERS)
    if text is not None:
        return text.numbers

    def readable(cell: Any) -> Any:
        if isinstance(cell, int) and abs(cell) > sys.float_info.max:
            return math.inf
        return cell.strip() if isinstance(cell, str) else cell

    cells = values[~empty].astype(object).map(readable)
    return np.asarray(pd.to_numeric(cells, errors="coerce"), dtype=np.float64)


def _check_parsed(
    values: Any, table: str, failed: Bools, empty: Bools, kind: str, examples: str
) -> None:
    rows = np.flatnonzero(failed & ~empty)
    if len(rows) == 1:
        cells = f"{location(table, values.name, rows[0])} holds {_short_repr(values.iloc[rows[0]])}"
    elif len(rows):
        cells = f"{location(table, values.name)}: "
        cells += _describe_cells(values, rows, int((~empty).sum()), kind)
    else:
        return
    raise ValueError(f"{cells}; expected a {kind}{examples} or an empty cell.")


def _describe_cells(values: Any, rows: Ints, total: int, kind: str) -> str:
    are = f"is not a {kind}" if len(rows) == 1 else f"are not {kind}s"
    shown = [f"{_short_repr(values.iloc[row])} in row {row + 1}" for row in rows[:_SHOWN_CELLS]]
    first = "first: " if len(rows) > _SHOWN_CELLS else ""
    return f"{len(rows)} of {total} cells {are} ({first}{', '.join(shown)})"


def _short_repr(value: Any) -> str:
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 40 else text[:37] + "..."


def is_id_name(column: str) -> bool:
    """Whether a column is called like an id: id, user_id, new id, userId, node."""
    return bool(_ID_NAME.fullmatch(column) or _ID_NAME.fullmatch(column.lower()))


_ID_NAME = re.compile(r"(?:.*[_\W])?(?:id|uid|uuid|guid|node|key|index)|.*[a-z]I[dD]", re.DOTALL)
DAY_FIRST, MONTH_FIRST = "day/month/year", "month/day/year"
YEAR_FIRST, WORDS, CLOCK = "year/month/day", "month in words", "time of day"
SECONDS, MILLISECONDS = "seconds since 1970", "milliseconds since 1970"
ORDERS = {"dmy": DAY_FIRST, "mdy": MONTH_FIRST}  # values of date_order
CLOCKS = ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p")
FORMATS = {
    CLOCK: CLOCKS,
    DAY_FIRST: ("%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y"),
    MONTH_FIRST: ("%m/%d/%Y", "%m.%d.%Y", "%m-%d-%Y"),
    YEAR_FIRST: ("%Y/%m/%d", "%Y.%m.%d"),
    WORDS: ("%b %d, %Y", "%d %b %Y", "%b %d %Y", "%d-%b-%Y", "%d. %b %Y"),
}
TIMES = ("", *(f" {clock}" for clock in CLOCKS), *(f", {clock}" for clock in CLOCKS))

_CLOCK = r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?(?: ?[AaPp][Mm])?"
_TIME = r"(?:,? \d{1,2}:\d{2}(?::\d{2})?(?: ?[AaPp][Mm])?)?"
_MONTH = r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_NUMERIC = rf"\d{{1,2}}(?:/\d{{1,2}}/|\.\d{{1,2}}\.|-\d{{1,2}}-)\d{{4}}{_TIME}"
_PATTERNS = {
    YEAR_FIRST: rf"\d{{4}}(?:/\d{{1,2}}/|\.\d{{1,2}}\.)\d{{1,2}}{_TIME}",
    WORDS: rf"(?:{_MONTH} \d{{1,2}},? \d{{4}}|\d{{1,2}}\.?[ -]{_MONTH}[ -]\d{{4}}){_TIME}",
}
_ANY_FORM = "|".join((_NUMERIC, *_PATTERNS.values()))  # other than ISO 8601
_ABOVE_12 = r"(?:1[3-9]|[2-9]\d)"
_TIME_NAME = re.compile(
    r"(?:.*[_\W])?(?:time|timestamp|ts|date|epoch|created|updated|joined|at|on)(?:[_\W].*)?"
    r"|.*[a-z](?:At|On|Time|Date)"
)
_EARLIEST, _LATEST = 631_152_000, 4_102_444_800  # 1990 to 2100


def check_form(form: str) -> None:
    """Raise ValueError for a form that is none of ours; empty is that of ISO 8601."""
    if form not in ("", SECONDS, MILLISECONDS, *FORMATS):
        known = ", ".join(FORMATS)
        raise ValueError(f"the form of dates must be one of {known}, got {short(form)}")


def date_form(values: Any, table: str, order: str | None = None) -> str | None:
    """The form of the dates in a column; None if it holds no dates or dates as in ISO 8601."""
    if order is not None and order not in ORDERS:
        raise ValueError(f"date_order must be dmy or mdy, got {order!r}.")
    if values.dtype.kind in "bmM":
        return None
    head = text_without(values.iloc[:1000], EMPTY_NUMBERS)  # which tell of most columns
    clock = head is not None and len(head) > 0 and head.matches(_CLOCK).all()
    if head is None or (len(head) and not clock and not head.matches(_ANY_FORM).any()):
        return _epoch_form(values)
    text = text_without(values, EMPTY_NUMBERS)
    if text is None or not len(text):
        return None
    if clock:
        return CLOCK if text.matches(_CLOCK).all() else None
    dates, where = text.matches(_ANY_FORM), location(table, values.name)
    if dates.mean() < _MOSTLY:
        return None
    if not dates.all():
        wrong = f"{text.first(~dates)!r} ({int((~dates).sum())} of {len(dates)} cells)"
        wrong = f"{where} holds dates such as {text.first(dates)!r}, but also {wrong}; fix or empty"
        column = str(values.name)
        raise ArgumentError(
            f"{wrong} such cells, or drop the column.", argument="drop", value=column
        )
    forms = (form for form, pattern in _PATTERNS.items() if text.matches(pattern).all())
    return next(forms, None) or _numeric_form(text, where, order)


def seconds_of(values: Any, table: str, form: str) -> Floats:
    """A column of dates in a form as seconds since 1970, NaN where empty, (N,)."""
    if not form or values.dtype.kind == "M":
        return _iso_seconds(values, table)
    if form in (SECONDS, MILLISECONDS):
        return to_numbers(values, table) / (1000 if form == MILLISECONDS else 1)
    rows = np.flatnonzero(~is_empty(values, EMPTY_NUMBERS))
    text = text_without(values, EMPTY_NUMBERS)
    seconds = np.full(len(values), np.nan)
    formats = [date + time for date in FORMATS[form] for time in TIMES]
    while text is not None and len(rows):  # the format of the first cell suits most others
        first = text.take(np.arange(1))
        format = next((f for f in formats if not np.isnan(first.seconds(f)[0])), None)
        if format is None:
            break
        read = text.seconds(format)
        seconds[rows] = read
        rows, text = rows[np.isnan(read)], text.take(np.isnan(read))
    if len(rows):
        raise ValueError(
            f"{location(table, values.name, rows[0])} holds {values.iloc[rows[0]]!r}; expected a "
            f"date ({form}, as when the column was first read) or an empty cell."
        )
    return seconds


def _numeric_form(text: TextColumn, where: str, order: str | None) -> str:
    """Day or month first: whichever a number above 12 proves, or the user, or dots."""
    if not text.matches(_NUMERIC).all():
        raise ValueError(f"{where} holds dates in several forms; write them alike.")
    day_first = text.matches(rf"{_ABOVE_12}[/.-].*")
    month_first = text.matches(rf"\d{{1,2}}[/.-]{_ABOVE_12}[/.-].*")
    if day_first.any() and month_first.any():
        raise ValueError(
            f"{where} holds {text.first(day_first)!r}, day first, and {text.first(month_first)!r}, "
            "month first; write all dates alike."
        )
    if day_first.any() or month_first.any():
        return DAY_FIRST if day_first.any() else MONTH_FIRST
    if order is not None:
        return ORDERS[order]
    if text.matches(r"\d{1,2}\..*").all():
        return DAY_FIRST
    dates = f"{where} holds dates such as {text.first(~day_first)!r}, and no cell tells day from"
    raise ArgumentError(f"{dates} month; set date_order to dmy or mdy.", argument="date_order")


def _epoch_form(values: Any) -> str | None:
    """Whether a column called like a time holds seconds or milliseconds since 1970."""
    if _TIME_NAME.fullmatch(str(values.name)):
        with suppress(ValueError):
            numbers = to_numbers(values, "")
            known = numbers[~np.isnan(numbers)]
            for form, unit in ((SECONDS, 1), (MILLISECONDS, 1000)):
                if len(known) and known.min() / unit >= _EARLIEST and known.max() / unit <= _LATEST:
                    return form
    return None
