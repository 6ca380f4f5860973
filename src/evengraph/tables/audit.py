"""What a table with times holds of the future: edges later than their node, and aggregates.

A column such as the payments of a card, counted over all time, knows what came after a row. Its
ranks agree with the count over all time, and clearly less with the count of what came before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from evengraph.ops.links import Link
from evengraph.tables.cells import Floats, Ints, column_kind, table_name, to_numbers
from evengraph.tables.notes import NoteKind, Notes

ROWS, FEWEST = 20_000, 30  # that are compared, in steps
COLUMNS, AVERAGED = 50, 8  # that may be aggregates, and numbers that may have been averaged
ALIKE, CLOSER = 0.9, 4.0  # correlation of ranks, and how many times the unexplained part shrinks


def note_future(
    nodes: Any,
    columns: Sequence[str],
    times: Floats,
    links: Mapping[str, Link],
    edges: tuple[Ints, Ints, Floats] | None,
    notes: Notes,
) -> None:
    """Note edges that a prediction at a node's time would not see, and columns that know more.

    Edges are both ends and the time of each; `columns` are those that features are made of.
    """
    numbers, table = dict[str, Floats](), table_name(nodes, "nodes")
    for column in columns[:COLUMNS]:
        with suppress(ValueError):  # told when it is encoded
            if column_kind(nodes[column], table) == "number":
                numbers[column] = to_numbers(nodes[column], table)
    later = 0.0 if edges is None else np.mean([edges[2] > times[end] for end in edges[:2]])
    if later:
        text = f"{later:.0%} of the ends of edges are at a node whose time is earlier: a prediction"
        notes.add(NoteKind.FUTURE, f"{text} at that time would not see the edge.")
    found, every = set[str](), slice(None, None, max(1, len(times) // ROWS))
    ranks = {column: _ranks(values[every]) for column, values in numbers.items()}
    for what, source, *both in _aggregates(numbers, times, links, edges):
        whole, before = (_ranks(values[every]) for values in both)
        for column in [name for name in ranks if name not in found | {source}]:
            known = ~np.isnan(ranks[column] + whole + before)
            alike, earlier = (_correlation(ranks[column][known], x[known]) for x in (whole, before))
            if alike >= ALIKE and 1 - earlier**2 >= CLOSER * (1 - alike**2):
                text = f"Column {column!r} agrees with {what} over all time (correlation of ranks "
                text += f"{alike:.2f}) more than up to the time of a row ({earlier:.2f}): if it is "
                notes.add(NoteKind.FUTURE, f"{text}an aggregate that includes the future, drop it.")
                found.add(column)


def _aggregates(
    numbers: Mapping[str, Floats], times: Floats, links: Mapping[str, Link], edges: Any
) -> Iterator[tuple[str, str, Floats, Floats]]:
    """What, of which column, over all time and up to the time of every row, (N,) each."""
    names, size = list(numbers)[:AVERAGED], len(times)
    x = np.stack([np.ones(size), *(np.nan_to_num(numbers[n]) for n in names)], axis=1)
    for name, link in links.items():
        whole, before = link.sums(x), link.at(times).sums(x)
        yield f"the number of rows of each {name}", "", whole[:, 0], before[:, 0]
        # without an earlier row, a sum or a mean over all time may be the row itself
        before[before[:, 0] == 0] = np.nan
        for index, column in enumerate(names, start=1):
            sums = whole[:, index], before[:, index]
            yield f"the sum of {column} by {name}", column, *sums
            means = sums[0] / np.maximum(whole[:, 0], 1), sums[1] / before[:, 0]
            yield f"the mean of {column} by {name}", column, *means
    if edges is not None:
        ends = np.concatenate(edges[:2])
        known = ends[np.tile(edges[2], 2) <= times[ends]]
        counts = [np.bincount(some, minlength=size).astype(float) for some in (ends, known)]
        yield "the number of edges of each node", "", counts[0], counts[1]


def _ranks(values: Floats) -> Floats:
    from scipy.stats import rankdata

    return np.asarray(rankdata(values, nan_policy="omit"))


def _correlation(one: Floats, other: Floats) -> float:
    if len(one) < FEWEST or np.ptp(one) == 0 or np.ptp(other) == 0:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])
