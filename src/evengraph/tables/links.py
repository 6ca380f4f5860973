"""Links: columns whose equal values connect rows, and what they tell of a row.

A link is a column, or several as `product+month`. It becomes columns of aggregates over the rows
that share a value, which every method reads; edges, for methods that propagate (`ops.links`); and,
in `graph.link_index`, groups of rows whose known labels boosting counts. With a time column, a row
is described by earlier rows alone, and there are no edges and no groups: they would join it with
later rows, and the labels of rows just before it are not known when it has to be predicted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from evengraph.ops.links import Link
from evengraph.tables.cells import (
    EMPTY_NUMBERS,
    LISTS,
    Floats,
    Ints,
    check_columns,
    column_kind,
    date_form,
    distinct_names,
    is_empty,
    plural,
    table_name,
    to_numbers,
    to_signs,
)
from evengraph.tables.notes import NoteKind, Notes

if TYPE_CHECKING:
    from evengraph.tables.columns import TableColumns

NEARLY_ALL = 0.5  # share of the rows from which on a value connects nothing in particular
MAX_LINKS, MAX_NUMBERS = 8, 8  # links, and columns of numbers that are averaged
DAY = 86_400.0
WINDOWS = (1, 7, 30)  # days
FEWEST, SHARED, LEAST_LIFT = 10, 0.2, 1.1  # values, share of rows and lift of a suggested link
_ID_LIKE = re.compile(r"(?:.*[_\W])?(?:id|no|number|card|account|device)", re.IGNORECASE)
NUMBERS = ("number", "boolean")


def link_names(link: str | Sequence[str] | None) -> tuple[str, ...]:
    """The links named as `user,product+month` or as a list."""
    names = link.split(",") if isinstance(link, str) else link or ()
    return tuple(dict.fromkeys(name for name in map(str.strip, map(str, names)) if name))


def parts_of(link: str, table: Any) -> list[str]:
    """The columns of a link; one column may have a plus in its name."""
    return [link] if link in table.columns else [part.strip() for part in link.split("+")]


def check_links(links: Sequence[str], roles: dict[str, str], nodes: Any) -> None:
    """Raise an error for links to columns that do not exist or have another role."""
    if len(links) > MAX_LINKS:
        raise ValueError(f"link takes at most {MAX_LINKS} links, got {len(links)}.")
    for link in links:
        check_columns(nodes, parts_of(link, nodes), "nodes")
        for role, column in roles.items():
            if column in parts_of(link, nodes) and role != "time":
                raise ValueError(f"Column {column!r} cannot be both {role} and link.")


class Groups(NamedTuple):
    """Pairs of a row and a value, (P,) each, where a row may have several values."""

    rows: Ints
    values: Ints
    size: int


def has_lists(values: Any) -> bool:
    """Whether the first cell with a value holds a list."""
    return values.dtype == object and isinstance(next(iter(values.dropna()), None), LISTS)


def group_codes(nodes: Any, link: str, notes: Notes | None = None) -> Ints | Groups:
    """The value of every row as a number, -1 where there is none or nearly all have it, (N,)."""
    columns, rows = parts_of(link, nodes), None
    if len(columns) == 1 and has_lists(nodes[columns[0]]):
        cells = nodes[columns[0]].reset_index(drop=True).explode().dropna()
        rows, codes = cells.index.to_numpy(np.int64), distinct_names(cells)[0].copy()
    else:
        codes = np.zeros(len(nodes), np.int64)
        for column in columns:
            part, _ = distinct_names(nodes[column])
            codes = _both(codes, np.where(is_empty(nodes[column], EMPTY_NUMBERS), -1, part))
    counts = np.bincount(codes[codes >= 0], minlength=1)
    common = counts > max(NEARLY_ALL * len(nodes), 2)
    left_out = common[codes] & (codes >= 0)
    codes[left_out] = -1
    if notes is not None:
        shared = counts[(counts > 1) & ~common]
        text = f"Link {link}: {plural(len(shared), 'value')} shared by {int(shared.sum()):,} rows"
        if common.any():
            text += f"; left out one that {int(left_out.sum()):,} of {len(nodes):,} rows share"
        notes.add(NoteKind.RELATIONS, f"{text}.")
    if rows is None:
        return codes
    return Groups(rows[codes >= 0], codes[codes >= 0], len(nodes))


def suggest_links(nodes: Any, label: str | None) -> list[str]:
    """Columns that may be links, the most telling first, each with what it connects.

    Values repeat, but not in all rows. Where the label is named, rows that share a value are both
    of the rarest class more often than by chance.
    """
    labels = None
    if label in nodes.columns:
        known, names = distinct_names(nodes[label])
        rarest = int(np.bincount(known[known >= 0], minlength=1).argmin())
        labels = np.where(known < 0, np.nan, known == rarest)
    found = list[tuple[float, str]]()
    for column in nodes.columns:
        with suppress(ValueError):  # lists, mixed types
            kind = column_kind(nodes[column], table_name(nodes, "nodes"))
            codes = group_codes(nodes, column)
            if isinstance(codes, Groups):
                continue
            sizes = np.bincount(codes[codes >= 0], minlength=1)
            shared = int(sizes[sizes > 1].sum())
            texts = kind == "text" or (kind == "number" and bool(_ID_LIKE.fullmatch(column)))
            if column == label or not texts or len(sizes) < FEWEST or shared < SHARED * len(nodes):
                continue
            times, text = 1.0, f"{column} ({int((sizes > 1).sum()):,} values in {shared:,} rows"
            if labels is not None:
                some = (codes >= 0) & ~np.isnan(labels)
                counts = [np.bincount(codes[some], w) for w in (None, labels[some])]
                pairs, both = (float((count * (count - 1)).sum()) for count in counts)
                chance = float(np.nanmean(labels)) ** 2
                times = both / pairs / chance if pairs and chance else 0.0
                text += f"; both {names[rarest]} {times:.1f} times as often as by chance"
            if times >= LEAST_LIFT or labels is None:
                found.append((times, f"{text})"))
    return [text for _, text in sorted(found, key=lambda item: -item[0])]


@dataclass(frozen=True, kw_only=True)
class LinkFeatures:
    """Makes columns of a nodes table from the rows that share a value, also for new tables.

    Of every link: the number of rows, the mean of each column of numbers and how far the row is
    from it, the number of distinct values of the other links; of every two links the number of
    rows that share both. With times, of earlier rows, and also how long ago the last one was and,
    for dates, how many came within days.
    """

    links: tuple[str, ...]
    numbers: tuple[str, ...] = ()  # columns that are averaged
    times: Literal["none", "numbers", "dates"] = "none"
    several: tuple[str, ...] = ()  # links of which a row may have several values

    def __post_init__(self) -> None:
        if len(self.links) > MAX_LINKS or len(self.numbers) > MAX_NUMBERS:
            raise ValueError("the links are too many")

    @classmethod
    def fit(cls, nodes: Any, features: Sequence[str], columns: TableColumns) -> Self:
        """Choose the columns to average."""
        links, numbers, table = tuple(columns.link or ()), list[str](), table_name(nodes, "nodes")
        taken = {part for link in links for part in parts_of(link, nodes)}
        for column in features:
            with suppress(ValueError):  # told when it is encoded
                if column not in taken and column_kind(nodes[column], table) in NUMBERS:
                    numbers.append(column)
        times: Any = "none"
        if columns.time is not None:
            values = nodes[columns.time]
            is_date = date_form(values, table, columns.date_order) is not None
            is_date = is_date or column_kind(values, table) == "date"
            times = "dates" if is_date else "numbers"
        several = tuple(link for link in links if link in nodes and has_lists(nodes[link]))
        kept = tuple(numbers[:MAX_NUMBERS])
        return cls(links=links, numbers=kept, times=times, several=several)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the new columns."""
        names = ["hour", "weekday"] if self.times == "dates" else []
        for link in self.links:
            names.append(f"{link}: rows")
            names += [f"{link}: age of the last"] * (self.times != "none")
            names += [f"{link}: rows in {days} days" for days in self._windows]
            numbers = [self.numbers[index] for index in self._averaged(link)]
            names += [f"{link}: mean {number}" for number in numbers]
            names += [f"{link}: {number} less its mean" for number in numbers]
            if link in self._single:
                names += [f"{link}: distinct {other}" for other in self._single if other != link]
        pairs = combinations(self._single, 2)
        return (*names, *(f"{one} and {other}: rows" for one, other in pairs))

    @property
    def _single(self) -> list[str]:
        return [link for link in self.links if link not in self.several]

    def _averaged(self, link: str) -> list[int]:
        """The numbers that differ among rows that share a value: not those of the value."""
        return [i for i, name in enumerate(self.numbers) if not name.startswith(f"{link}.")]

    @property
    def _windows(self) -> tuple[int, ...]:
        return WINDOWS if self.times == "dates" else ()

    def compute(
        self, nodes: Any, codes: Sequence[Ints | Groups], times: Floats | None
    ) -> dict[str, Floats]:
        """The new columns, (N,) each, by the value of every row in each link."""
        table, size = table_name(nodes, "nodes"), len(nodes)
        check_columns(nodes, self.numbers, "nodes")
        x = np.stack([np.ones(size), *(_numbers(nodes[c], table) for c in self.numbers)], axis=1)
        known = ~np.isnan(x)
        x, results = np.where(known, x, 0.0), list[Floats]()
        one = x[:, :1]
        if times is not None and self.times == "dates":  # 1970 began on a Thursday
            results += [times % DAY // 3600, (times // DAY + 3) % 7]
        single = {
            name: _first_of(part)
            for name, part in zip(self.links, codes, strict=True)
            if name in self._single
        }
        for name, mine in zip(self.links, codes, strict=True):
            link, some = link_of(mine, times), [0, *(i + 1 for i in self._averaged(name))]
            cells = np.where(known, x, np.nan)[:, some]
            sums, counts = link.sums(x[:, some]), link.sums(known[:, some].astype(np.float64))
            results.append(counts[:, 0])
            if times is not None:
                results.append(link.ages())
            results += [link.sums(one, days * DAY)[:, 0] for days in self._windows]
            sums, counts = sums[:, 1:], counts[:, 1:]
            means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
            results += [*means.T, *(cells[:, 1:] - means).T]
            for theirs in [single[n] for n in single if name in single and n != name]:
                both = _both(single[name], theirs)
                results.append(link.sums(_first(both, times))[:, 0])
        for pair in combinations(single.values(), 2):
            results.append(link_of(_both(*pair), times).sums(one)[:, 0])
        return dict(zip(self.names, results, strict=True))


def link_of(codes: Ints | Groups, times: Floats | None = None) -> Link:
    """The link whose value every row has, -1 for none, (N,); or its pairs."""
    if isinstance(codes, Groups):
        return Link(codes.rows, codes.values, codes.size, times)
    rows = np.flatnonzero(codes >= 0)
    return Link(rows, codes[rows], len(codes), times)


def _numbers(values: Any, table: str) -> Floats:
    kind = column_kind(values, table)
    if kind == "boolean":
        return np.where(is_empty(values), np.nan, to_signs(values, table))
    return to_numbers(values, table)


def _first_of(codes: Ints | Groups) -> Ints:
    if not isinstance(codes, Groups):
        return codes
    first = np.full(codes.size, -1)
    first[codes.rows[::-1]] = codes.values[::-1]
    return first


def _both(one: Ints, other: Ints) -> Ints:
    """The pair of two values as one value, -1 where either is missing, (N,)."""
    pairs = np.unique(one * (other.max(initial=0) + 1) + other, return_inverse=True)[1]
    return np.where((one < 0) | (other < 0), -1, pairs)


def _first(codes: Ints, times: Floats | None) -> Floats:
    """One for the first row of every value, the earliest, 0 for others, (N, 1)."""
    order = np.arange(len(codes)) if times is None else np.argsort(times, kind="stable")
    first = np.zeros((len(codes), 1))
    first[order[np.unique(codes[order], return_index=True)[1]]] = 1
    first[codes < 0] = 0
    return first
