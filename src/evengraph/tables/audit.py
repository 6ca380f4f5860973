"""What a table with times holds of the future: edges later than their node, and aggregates.

A column such as the payments of a card, counted over all time, knows what came after a row. Its
ranks agree with the count over all time, and clearly less with the count of what came before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np

from evengraph.tables.cells import Floats, Ints, column_kind, table_name, to_numbers
from evengraph.tables.links import Groups, link_of
from evengraph.tables.notes import NoteKind, Notes

ROWS, FEWEST = 20_000, 30  # that are compared, in steps
COLUMNS, AVERAGED = 50, 8  # that may be aggregates, and numbers that may have been averaged
ALIKE, CLOSER = 0.9, 4.0  # correlation of ranks, and how many times the unexplained part shrinks

Aggregates = Iterator[tuple[str, str, Floats, Floats]]
"""What, of which column, over all time and up to the time of every row, (N,) each."""


def note_future(
    nodes: Any,
    columns: Sequence[str],
    times: Floats,
    links: Mapping[str, Ints | Groups],
    edges: tuple[Ints, Ints, Floats] | None,
    notes: Notes,
) -> None:
    """Note edges that a prediction at a node's time would not see, and columns that know more.

    Args:
        nodes: The nodes table.
        columns: Those that features are made of.
        times: The time of every row, NaN for unknown.
        links: The values that rows share.
        edges: Both ends and the time of every edge, if edges have times.
        notes: Receives the sentences.
    """
    numbers = dict[str, Floats]()
    for column in columns[:COLUMNS]:
        with suppress(ValueError):  # told when it is encoded
            if column_kind(nodes[column], table_name(nodes, "nodes")) == "number":
                numbers[column] = to_numbers(nodes[column], table_name(nodes, "nodes"))
    parts = [_of_links(numbers, times, links)]
    if edges is not None:
        later = np.mean([edges[2] > times[end] for end in edges[:2]])
        if later:
            text = f"{later:.0%} of the ends of edges are at a node whose time is earlier: a "
            notes.add(NoteKind.FUTURE, f"{text}prediction at that time would not see the edge.")
        parts.append(_of_edges(edges, times))
    every = slice(None, None, max(1, len(times) // ROWS))
    aggregates = [
        (what, source, _ranks(x[every]), _ranks(y[every])) for what, source, x, y in chain(*parts)
    ]
    for column, values in numbers.items():
        ranks = _ranks(values[every])
        for what, source, whole, before in aggregates:
            known = ~np.isnan(ranks + whole + before)
            if source == column or known.sum() < FEWEST:
                continue
            alike, earlier = (_correlation(ranks[known], x[known]) for x in (whole, before))
            if alike >= ALIKE and 1 - earlier**2 >= CLOSER * (1 - alike**2):
                text = f"Column {column!r} agrees with {what} over all time (correlation of ranks "
                text += f"{alike:.2f}) more than up to the time of a row ({earlier:.2f}): if it is "
                text += "an aggregate that includes the future, drop it."
                notes.add(NoteKind.FUTURE, text)
                break


def _of_links(
    numbers: Mapping[str, Floats], times: Floats, links: Mapping[str, Ints | Groups]
) -> Aggregates:
    names = list(numbers)[:AVERAGED]
    x = np.stack([np.ones(len(times)), *(np.nan_to_num(numbers[n]) for n in names)], axis=1)
    for link, codes in links.items():
        whole, before = link_of(codes).sums(x), link_of(codes, times).sums(x)
        yield f"the number of rows of each {link}", "", whole[:, 0], before[:, 0]
        # without an earlier row, a sum or a mean over all time may be the row itself
        before[before[:, 0] == 0] = np.nan
        for index, name in enumerate(names, start=1):
            sums = whole[:, index], before[:, index]
            yield f"the sum of {name} by {link}", name, *sums
            means = sums[0] / np.maximum(whole[:, 0], 1), sums[1] / before[:, 0]
            yield f"the mean of {name} by {link}", name, *means


def _of_edges(edges: tuple[Ints, Ints, Floats], times: Floats) -> Aggregates:
    ends, size = np.concatenate(edges[:2]), len(times)
    known = np.tile(edges[2], 2) <= times[ends]
    counts = (np.bincount(some, minlength=size).astype(float) for some in (ends, ends[known]))
    yield "the number of edges of each node", "", next(counts), next(counts)


def _ranks(values: Floats) -> Floats:
    from scipy.stats import rankdata

    ranks = np.full(len(values), np.nan)
    ranks[~np.isnan(values)] = rankdata(values[~np.isnan(values)])
    return ranks


def _correlation(one: Floats, other: Floats) -> float:
    """Of ranks; 0 if either is constant."""
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])
