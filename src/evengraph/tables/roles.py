"""What a column says of nodes: their class, their part in a split, their time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evengraph.core.errors import ArgumentError
from evengraph.tables.cells import (
    EMPTY_LABELS,
    Floats,
    booleans,
    empty,
    kind_of,
    name_of,
    names_of,
    need_pandas,
    numbers,
    place,
    seconds,
    were,
)
from evengraph.tables.notes import Note, NoteKind

SPLIT_WORDS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}
"""What a split column may say, in any case."""

MOST_SINGLE = 20
FEW_CLASSES = 20
MOST_NAMED = 5


class NoLabelError(ArgumentError):
    """No label column was named or recognised; `candidates` may hold the classes."""

    def __init__(self, candidates: Sequence[str] = ()) -> None:
        message = "No label column: every node is unlabelled"
        if candidates:
            names = [repr(column) for column in candidates[:MOST_NAMED]]
            choice = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
            message += f"; set label to the column with the classes, perhaps {choice}"
        super().__init__(f"{message}.", argument="label")
        self.candidates = tuple(candidates)


def encode_labels(values: Any, table: str) -> tuple[NDArray[np.int64], tuple[str, ...], list[Note]]:
    """Classes as numbers, their names, and notes; -1 where the label is empty, (N,).

    Classes are in sorted order: numbers by size, text by letters, false before true.
    """
    column = str(values.name)
    gone = empty(values, EMPTY_LABELS)
    if gone.all():
        raise ValueError(f"{place(table, column)}: every label is empty; label at least two nodes.")
    kind = kind_of(values.where(~gone, None) if gone.any() else values, table, needed=True)
    if kind == "number":
        numbers(values, table)  # refuses infinity
    elif kind == "boolean":
        booleans(values, table)
    pandas = need_pandas()
    names = names_of(values[~gone])
    order = sorted(set(names), key=_in_order(set(names)))
    if len(order) < 2:
        raise ValueError(
            f"{place(table, column)} holds a single class, {order[0]!r}; at least two are needed."
        )
    if len(order) == len(names) > MOST_SINGLE:
        raise ValueError(
            f"{place(table, column)}: each of the {len(order)} labels is different; classes must "
            "have several nodes. Is this the label column?"
        )
    labels = np.full(len(values), -1, dtype=np.int64)
    labels[~gone] = pandas.Index(order, dtype=object).get_indexer(names)
    return labels, tuple(order), _notes(values, gone, names)


def label_candidates(nodes: Any, taken: Collection[str | None]) -> tuple[str, ...]:
    """Columns that may hold classes: few different values, on the whole twice or more.

    Those with empty cells come first, for some labels are mostly not known; then those with the
    fewest values.
    """
    found = []
    for column in nodes.columns:
        if column in taken or not column or column.startswith("Unnamed: "):
            continue
        gone = empty(nodes[column], EMPTY_LABELS)
        try:
            names = names_of(nodes.loc[~gone, column])
        except ValueError:  # lists and the like
            continue
        different = len(set(names))
        if 2 <= different <= min(FEW_CLASSES, len(names) / 2):
            found.append((not gone.any(), different, column))
    return tuple(column for _, _, column in sorted(found, key=lambda one: one[:2]))


def _in_order(names: set[str]) -> Callable[[str], Any] | None:
    """Numbers by size if all are numbers; else by letters."""
    try:
        for name in names:
            float(name)
    except ValueError:
        return None
    return float


def read_split(values: Any, table: str) -> dict[str, NDArray[np.bool_]]:
    """The nodes of train, val and test by the words of a column; empty means none, (N,) each."""
    gone = empty(values)
    parts = [SPLIT_WORDS.get(name.lower(), "") for name in names_of(values)]
    wrong = np.array([not part for part in parts], dtype=bool) & ~gone
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"{place(table, str(values.name), row)} holds {name_of(values.iloc[row])!r}; a split "
            "column says train, val (or validation) or test, or nothing."
        )
    found = np.array(parts, dtype=object)
    return {part: found == part for part in ("train", "val", "test")}


def is_split(values: Any) -> bool:
    """Whether a column says train, val and test throughout."""
    names = {name.lower() for name in names_of(values[~empty(values)])}
    return bool(names) and names <= SPLIT_WORDS.keys()


def read_times(values: Any, table: str) -> Floats:
    """Times as numbers, dates in seconds since 1970, NaN where there is none, (N,)."""
    kind = kind_of(values, table, needed=True)
    if kind not in ("number", "date"):
        raise ValueError(
            f"{place(table, str(values.name))} holds {kind} values; times must be numbers or dates "
            "such as 2024-05-31."
        )
    return numbers(values, table) if kind == "number" else seconds(values, table)


def _notes(values: Any, gone: NDArray[np.bool_], names: NDArray[Any]) -> list[Note]:
    notes = []
    words = gone & ~empty(values)
    if words.any():
        word = name_of(values.iloc[int(words.argmax())])
        text = f"{were(int(words.sum()), 'label')} {word!r} or alike: taken as unlabelled."
        notes.append(Note(NoteKind.EMPTY_LABELS, text))
    for name, many in sorted(Counter(names).items()):
        if many < 3:
            text = (
                f"Class {name!r} has {many} labelled node{'s' if many > 1 else ''}: a stratified "
                "split (Natural) needs 3 of every class and will refuse it; label more, or leave "
                "the class out: empty its label cells."
            )
            notes.append(Note(NoteKind.RARE_CLASS, text))
    return notes
