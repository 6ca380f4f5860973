"""Dates in other forms than 2024-05-31: which form a column has, and its seconds since 1970.

The form is decided once per column, since 03/04/2024 alone is a day in March or in April, and is
saved with the encoder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evengraph.core.errors import ArgumentError
from evengraph.tables.cells import (
    EMPTY_NUMBERS,
    Floats,
    import_pandas,
    is_empty,
    location,
    to_numbers,
    to_seconds,
)

DAY_FIRST, MONTH_FIRST = "day/month/year", "month/day/year"
YEAR_FIRST, WORDS = "year/month/day", "month in words"
SECONDS, MILLISECONDS = "seconds since 1970", "milliseconds since 1970"
ORDERS = {"dmy": DAY_FIRST, "mdy": MONTH_FIRST}
"""Values of `date_order`, which decides where the cells of a column do not."""

FORMATS = {
    DAY_FIRST: ("%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y"),
    MONTH_FIRST: ("%m/%d/%Y", "%m.%d.%Y", "%m-%d-%Y"),
    YEAR_FIRST: ("%Y/%m/%d", "%Y.%m.%d"),
    WORDS: tuple(
        form.replace("%b", month)
        for form in ("%b %d, %Y", "%d %b %Y", "%b %d %Y", "%d-%b-%Y", "%d. %b %Y")
        for month in ("%b", "%B")
    ),
}
CLOCKS = ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p")
TIMES = ("", *(f" {clock}" for clock in CLOCKS), *(f", {clock}" for clock in CLOCKS))

_TIME = r"(?:,? \d{1,2}:\d{2}(?::\d{2})?(?: ?[AaPp][Mm])?)?"
_MONTH = r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_NUMERIC = re.compile(rf"(\d{{1,2}})([/.-])(\d{{1,2}})\2\d{{4}}{_TIME}")
_PATTERNS = {
    YEAR_FIRST: re.compile(rf"\d{{4}}([/.])\d{{1,2}}\1\d{{1,2}}{_TIME}"),
    WORDS: re.compile(
        rf"(?:{_MONTH} \d{{1,2}},? \d{{4}}|\d{{1,2}}\.?[ -]{_MONTH}[ -]\d{{4}}){_TIME}"
    ),
}
_TIME_NAME = re.compile(
    r"(?:.*[_\W])?(?:time|timestamp|ts|date|epoch|created|updated|joined|at|on)(?:[_\W].*)?"
    r"|.*[a-z](?:At|On|Time|Date)"
)
_EARLIEST, _LATEST = 631_152_000, 4_102_444_800  # 1990 to 2100
_FIRST_CELLS = 20
_MOSTLY = 0.8


def date_form(values: Any, table: str, order: str | None = None) -> str | None:
    """The form of the dates in a column; None if it holds no dates or dates as in ISO 8601.

    Args:
        values: The column.
        table: Name of its table, for errors.
        order: "dmy" or "mdy", for dates that may be either.
    """
    if order is not None and order not in ORDERS:
        raise ValueError(f"date_order must be dmy or mdy, got {order!r}.")
    if values.dtype.kind in "iuf":
        return _epoch_form(values)
    if values.dtype.kind in "bmM":
        return None
    cells = [cell for cell in _distinct(values) if isinstance(cell, str)]
    if not any(map(_is_date, cells[:_FIRST_CELLS])):
        return _epoch_form(values)
    dates = [cell for cell in cells if _is_date(cell)]
    if len(dates) < _MOSTLY * len(cells):
        return None
    if len(dates) < len(cells):
        other = next(cell for cell in cells if not _is_date(cell))
        raise ArgumentError(
            f"{location(table, values.name)} holds dates such as {dates[0]!r}, but also {other!r} "
            f"({len(cells) - len(dates)} of {len(cells)} values); fix or empty such cells, or drop "
            "the column.",
            argument="drop",
            value=str(values.name),
        )
    forms = [form for form, pattern in _PATTERNS.items() if all(map(pattern.fullmatch, dates))]
    return forms[0] if forms else _numeric_form(dates, location(table, values.name), order)


def seconds_of(values: Any, table: str, form: str) -> Floats:
    """A column of dates in a form as seconds since 1970, NaN where empty, (N,)."""
    if not form or values.dtype.kind == "M":
        return to_seconds(values, table)
    if form in (SECONDS, MILLISECONDS):
        return to_numbers(values, table) / (1000 if form == MILLISECONDS else 1)
    empty = is_empty(values, EMPTY_NUMBERS)
    cells = values.astype(object).where(~empty, "").map(lambda cell: str(cell).strip())
    distinct = import_pandas().Series(cells.unique(), dtype=object)
    parsed = dict(zip(distinct, _parse(distinct, form), strict=True))
    seconds: Floats = cells.map(parsed).to_numpy(np.float64)
    wrong = np.isnan(seconds) & ~empty
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"{location(table, values.name, row)} holds {cells.iloc[row]!r}; expected a date "
            f"({form}, as when the column was first read) or an empty cell."
        )
    return seconds


def describe_dates(forms: Mapping[str, str]) -> list[str]:
    """One sentence about all columns of dates in other forms than ISO 8601."""
    listed = ", ".join(f"{column} ({form})" for column, form in forms.items() if form)
    return [f"Dates: {listed}."] if listed else []


def _is_date(cell: str) -> bool:
    patterns = (_NUMERIC, *_PATTERNS.values())
    return any(pattern.fullmatch(cell) for pattern in patterns)


def _numeric_form(dates: Sequence[str], where: str, order: str | None) -> str:
    """Day or month first: whichever a number above 12 proves, or dots, or the user."""
    parts = [match.groups() for match in map(_NUMERIC.fullmatch, dates) if match]
    if len(parts) < len(dates):
        raise ValueError(f"{where} holds dates in several forms; write them alike.")
    day_first = next((d for d, p in zip(dates, parts, strict=True) if int(p[0]) > 12), None)
    month_first = next((d for d, p in zip(dates, parts, strict=True) if int(p[2]) > 12), None)
    if day_first and month_first:
        raise ValueError(
            f"{where} holds {day_first!r}, day first, and {month_first!r}, month first; write all "
            "dates alike."
        )
    if day_first or month_first:
        return DAY_FIRST if day_first else MONTH_FIRST
    if order is not None:
        return ORDERS[order]
    if all(part[1] == "." for part in parts):
        return DAY_FIRST
    raise ArgumentError(
        f"{where} holds dates such as {dates[0]!r}, and no cell tells day from month; set "
        "date_order to dmy or mdy.",
        argument="date_order",
    )


def _epoch_form(values: Any) -> str | None:
    """Whether a column called like a time holds seconds or milliseconds since 1970."""
    if not _TIME_NAME.fullmatch(str(values.name)):
        return None
    try:
        numbers = to_numbers(values, "")
    except ValueError:
        return None
    known = numbers[~np.isnan(numbers)]
    for form, unit in ((SECONDS, 1), (MILLISECONDS, 1000)):
        if len(known) and known.min() / unit >= _EARLIEST and known.max() / unit <= _LATEST:
            return form
    return None


def _distinct(values: Any) -> list[Any]:
    """Distinct cells that are not empty, stripped; none if cells are lists."""
    cells = values[~is_empty(values, EMPTY_NUMBERS)]
    try:
        distinct = import_pandas().unique(cells.to_numpy(object))
    except TypeError:
        return []
    return [cell.strip() if isinstance(cell, str) else cell for cell in distinct]


def _parse(cells: Any, form: str) -> Floats:
    """Distinct cells as seconds since 1970, NaN where a cell has another form, (M,)."""
    pandas = import_pandas()
    formats = [date + time for date in FORMATS[form] for time in TIMES]
    dates = pandas.Series(pandas.NaT, index=cells.index, dtype="datetime64[ns, UTC]")
    left = cells[cells != ""]
    while len(left):  # the format of the first cell suits most others
        fitting = (f for f in formats if not _read(left.iloc[:1], f).isna().any())
        format = next(fitting, None)
        if format is None:
            break
        read = _read(left, format).dropna()
        dates[read.index] = read
        left = left.drop(read.index)
    return np.asarray((dates - pandas.Timestamp(0, tz="UTC")) / pandas.Timedelta(seconds=1))


def _read(cells: Any, format: str) -> Any:
    return import_pandas().to_datetime(cells, format=format, utc=True, errors="coerce")
