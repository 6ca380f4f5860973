"""Dates in other forms than 2024-05-31: which form a column has, and its seconds since 1970.

The form is decided once per column, since 03/04/2024 alone is a day in March or in April, and is
saved with the encoder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from evengraph.core.errors import ArgumentError, short
from evengraph.tables.cells import (
    EMPTY_NUMBERS,
    Bools,
    Floats,
    is_empty,
    location,
    text_without,
    to_numbers,
    to_seconds,
)

if TYPE_CHECKING:
    from evengraph.tables.text_column import TextColumn

DAY_FIRST, MONTH_FIRST = "day/month/year", "month/day/year"
YEAR_FIRST, WORDS = "year/month/day", "month in words"
SECONDS, MILLISECONDS = "seconds since 1970", "milliseconds since 1970"
ORDERS = {"dmy": DAY_FIRST, "mdy": MONTH_FIRST}
"""Values of `date_order`, which decides where the cells of a column do not."""

FORMATS = {
    DAY_FIRST: ("%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y"),
    MONTH_FIRST: ("%m/%d/%Y", "%m.%d.%Y", "%m-%d-%Y"),
    YEAR_FIRST: ("%Y/%m/%d", "%Y.%m.%d"),
    WORDS: ("%b %d, %Y", "%d %b %Y", "%b %d %Y", "%d-%b-%Y", "%d. %b %Y"),
}
CLOCKS = ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p")
TIMES = ("", *(f" {clock}" for clock in CLOCKS), *(f", {clock}" for clock in CLOCKS))

_TIME = r"(?:,? \d{1,2}:\d{2}(?::\d{2})?(?: ?[AaPp][Mm])?)?"
_MONTH = r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_NUMERIC = rf"\d{{1,2}}(?:/\d{{1,2}}/|\.\d{{1,2}}\.|-\d{{1,2}}-)\d{{4}}{_TIME}"
_PATTERNS = {
    YEAR_FIRST: rf"\d{{4}}(?:/\d{{1,2}}/|\.\d{{1,2}}\.)\d{{1,2}}{_TIME}",
    WORDS: rf"(?:{_MONTH} \d{{1,2}},? \d{{4}}|\d{{1,2}}\.?[ -]{_MONTH}[ -]\d{{4}}){_TIME}",
}
_ABOVE_12 = r"(?:1[3-9]|[2-9]\d)"
_TIME_NAME = re.compile(
    r"(?:.*[_\W])?(?:time|timestamp|ts|date|epoch|created|updated|joined|at|on)(?:[_\W].*)?"
    r"|.*[a-z](?:At|On|Time|Date)"
)
_EARLIEST, _LATEST = 631_152_000, 4_102_444_800  # 1990 to 2100
_FIRST_ROWS = 1000
_MOSTLY = 0.8


def check_form(form: str) -> None:
    """Raise ValueError for a form that is none of ours; empty is that of ISO 8601."""
    if form not in ("", SECONDS, MILLISECONDS, *FORMATS):
        raise ValueError(
            f"the form of dates must be one of {', '.join(FORMATS)}, got {short(form)}"
        )


def date_form(values: Any, table: str, order: str | None = None) -> str | None:
    """The form of the dates in a column; None if it holds no dates or dates as in ISO 8601.

    Args:
        values: The column.
        table: Name of its table, for errors.
        order: "dmy" or "mdy", for dates that may be either.
    """
    if order is not None and order not in ORDERS:
        raise ValueError(f"date_order must be dmy or mdy, got {order!r}.")
    if values.dtype.kind in "bmM":
        return None
    head = (
        None
        if values.dtype.kind in "iuf"
        else text_without(values.iloc[:_FIRST_ROWS], EMPTY_NUMBERS)
    )
    if head is None or (len(head) and not _are_dates(head).any()):
        return _epoch_form(values)
    text = text_without(values, EMPTY_NUMBERS)
    dates = None if text is None else _are_dates(text)
    if text is None or dates is None or not len(dates) or dates.mean() < _MOSTLY:
        return None
    where = location(table, values.name)
    if not dates.all():
        raise ArgumentError(
            f"{where} holds dates such as {text.first(dates)!r}, but also {text.first(~dates)!r} "
            f"({int((~dates).sum())} of {len(dates)} cells); fix or empty such cells, or drop the "
            "column.",
            argument="drop",
            value=str(values.name),
        )
    for form, pattern in _PATTERNS.items():
        if text.matches(pattern).all():
            return form
    return _numeric_form(text, where, order)


def seconds_of(values: Any, table: str, form: str) -> Floats:
    """A column of dates in a form as seconds since 1970, NaN where empty, (N,)."""
    if not form or values.dtype.kind == "M":
        return to_seconds(values, table)
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


def describe_dates(forms: Mapping[str, str]) -> list[str]:
    """One sentence about all columns of dates in other forms than ISO 8601."""
    listed = ", ".join(f"{column} ({form})" for column, form in forms.items() if form)
    return [f"Dates: {listed}."] if listed else []


def _are_dates(text: TextColumn) -> Bools:
    """Which cells are dates in a form other than ISO 8601, (N,)."""
    return text.matches("|".join((_NUMERIC, *_PATTERNS.values())))


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
    raise ArgumentError(
        f"{where} holds dates such as {text.first(~day_first)!r}, and no cell tells day from "
        "month; set date_order to dmy or mdy.",
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
