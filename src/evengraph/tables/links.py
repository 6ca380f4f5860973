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
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from evengraph.ops.links import Link
from evengraph.tables.cells import (
    EMPTY_NUMBERS,
    LISTS,
    Floats,
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
ALL_ROWS = "rows"  # of a table that is a part of another, in its `attrs`: how many that one has
MAX_LINKS, MAX_NUMBERS = 8, 8  # links, and columns of numbers that are averaged
DAY = 86_400.0
WINDOWS = (1, 7, 30)  # days
FEWEST, SHARED, LEAST_LIFT = 10, 0.2, 1.1  # values, share of rows and lift of a suggested link
CERTAIN = 3.0  # standard errors of its lift
_ID_LIKE = re.compile(r"(?:.*[_\W])?(?:id|no|number|card|account|device)", re.IGNORECASE)
NUMBERS = ("number", "boolean")
SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")
MOST_PAIRED = 30  # values of a row that are paired with those of another link


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


def has_lists(values: Any) -> bool:
    """Whether the first cell with a value holds a list."""
    return values.dtype == object and isinstance(next(iter(values.dropna()), None), LISTS)


def group_codes(nodes: Any, link: str, notes: Notes | None = None) -> Link:
    """Rows and the values they have, several where cells are lists; none that nearly all have."""
    found = Link(np.arange(len(nodes)), np.zeros(len(nodes), np.int64), len(nodes))
    for column in parts_of(link, nodes):
        cells = nodes[column].reset_index(drop=True)
        cells = cells.explode() if has_lists(cells) else cells
        known = ~is_empty(cells, EMPTY_NUMBERS)
        part = Link(cells.index.to_numpy()[known], distinct_names(cells)[0][known], len(nodes))
        found = _both(found, part)
    counts = np.bincount(found.values, minlength=1)
    common = counts > max(NEARLY_ALL * max(len(nodes), nodes.attrs.get(ALL_ROWS, 0)), 2)
    left_out = common[found.values]
    if notes is not None:
        shared = counts[(counts > 1) & ~common]
        text = f"Link {link}: {plural(len(shared), 'value')} shared by {int(shared.sum()):,} rows"
        if common.any():
            text += f"; left out one that {int(left_out.sum()):,} of {len(nodes):,} rows share"
        notes.add(NoteKind.RELATIONS, f"{text}.")
    return Link(found.nodes[~left_out], found.values[~left_out], len(nodes))


def suggest_links(nodes: Any, label: str | None) -> list[str]:
    """Columns that may be links, the most telling first, each with what it connects.

    Values repeat, but not in all rows. Where the label is named, rows that share a value with one
    of the rarest class are of it more often than by chance. Every row of that class counts the
    same, so that a few values of many rows do not decide.
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
            link = group_codes(nodes, column)
            sizes = np.bincount(link.values, minlength=1)
            shared = int(sizes[sizes > 1].sum())
            texts = kind == "text" or (kind == "number" and bool(_ID_LIKE.fullmatch(column)))
            if column == label or not texts or len(sizes) < FEWEST or shared < SHARED * len(nodes):
                continue
            times, text = 1.0, f"{column} ({int((sizes > 1).sum()):,} values in {shared:,} rows"
            if labels is not None:
                known = labels[link.nodes]
                some = ~np.isnan(known)
                chance = float(known[some].mean()) if some.any() else 1.0
                sizes, rare = (np.bincount(link.values[some], w) for w in (None, known[some]))
                mine = link.values[known == 1]
                mine = mine[sizes[mine] > 1]
                also, others = rare[mine] - 1, sizes[mine] - 1  # of a row's value, without the row
                beyond = float((also / others - chance).sum())
                if beyond <= CERTAIN * np.sqrt(chance * (1 / others).sum()):
                    continue
                times = 1 + beyond / len(mine) / chance
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
        return cls(links=links, numbers=tuple(numbers[:MAX_NUMBERS]), times=times)

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
            names += [f"{link}: distinct {other}" for other in self.links if other != link]
        return (*names, *(f"{one} and {other}: rows" for one, other in combinations(self.links, 2)))

    @property
    def _windows(self) -> tuple[int, ...]:
        return WINDOWS if self.times == "dates" else ()

    def _averaged(self, link: str) -> list[int]:
        """The numbers that differ among rows that share a value: not those of the value."""
        return [i for i, name in enumerate(self.numbers) if not name.startswith(f"{link}.")]

    def compute(self, nodes: Any, links: Sequence[Link], times: Floats | None) -> dict[str, Floats]:
        """The new columns, (N,) each, by the value of every row in each link."""
        table, size = table_name(nodes, "nodes"), len(nodes)
        check_columns(nodes, self.numbers, "nodes")
        x = np.stack([np.ones(size), *(_numbers(nodes[c], table) for c in self.numbers)], axis=1)
        known = ~np.isnan(x)
        x, results = np.where(known, x, 0.0), list[Floats]()
        one = x[:, :1]
        if times is not None and self.times == "dates":  # 1970 began on a Thursday
            results += [times % DAY // 3600, (times // DAY + 3) % 7]
        for index, (name, mine) in enumerate(zip(self.links, links, strict=True)):
            link, some = mine.at(times), [0, *(i + 1 for i in self._averaged(name))]
            cells = np.where(known, x, np.nan)[:, some]
            sums, counts = link.sums(x[:, some]), link.sums(known[:, some].astype(np.float64))
            results.append(counts[:, 0])
            if times is not None:
                results.append(link.ages())
            results += [link.sums(one, days * DAY)[:, 0] for days in self._windows]
            sums, counts = sums[:, 1:], counts[:, 1:]
            means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
            results += [*means.T, *(cells[:, 1:] - means).T]
            for other in (*links[:index], *links[index + 1 :]):
                results.append(link.sums(_first(_both(mine, other), times))[:, 0])
        for pair in combinations(links, 2):
            results.append(_both(*pair).at(times).sums(one)[:, 0])
        return dict(zip(self.names, results, strict=True))


def _numbers(values: Any, table: str) -> Floats:
    kind = column_kind(values, table)
    if kind == "boolean":
        return np.where(is_empty(values), np.nan, to_signs(values, table))
    return to_numbers(values, table)


def _both(one: Link, other: Link) -> Link:
    """Rows and the pairs of values they have; of many values of a row in the other, the first."""
    order = np.argsort(other.nodes, kind="stable")
    start, end = (np.searchsorted(other.nodes, one.nodes, side, order) for side in SIDES)
    counts = np.minimum(end - start, MOST_PAIRED)
    mine = np.repeat(np.arange(len(one.nodes)), counts)
    place = np.arange(len(mine)) - np.repeat(np.cumsum(counts) - counts, counts)
    theirs = order[start[mine] + place]
    keys = one.values[mine] * (other.values.max(initial=0) + 1) + other.values[theirs]
    return Link(one.nodes[mine], np.unique(keys, return_inverse=True)[1], one.size)


def _first(link: Link, times: Floats | None) -> Floats:
    """How many values every row is the first to have, the earliest, (N, 1)."""
    order = np.arange(len(link.nodes))
    if times is not None:
        order = np.argsort(times[link.nodes], kind="stable")
    first = order[np.unique(link.values[order], return_index=True)[1]]
    return np.bincount(link.nodes[first], minlength=link.size).astype(float)[:, None]
