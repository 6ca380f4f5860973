"""What columns say about nodes: classes, split and time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from evengraph.core.errors import ArgumentError
from evengraph.tables.cells import (
    EMPTY_LABELS,
    Bools,
    Floats,
    Ints,
    canonical_name,
    canonical_names,
    column_kind,
    distinct_names,
    import_pandas,
    is_empty,
    is_unnamed,
    location,
    to_numbers,
    to_seconds,
    to_signs,
)
from evengraph.tables.date_forms import date_form, seconds_of
from evengraph.tables.label_checks import (
    MISSING_WORDS,
    ask_about_missing,
    check_classes,
    is_unlabelled,
    note_absent,
    note_rare_classes,
)
from evengraph.tables.notes import NoteKind, Notes

SPLIT_WORDS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}
"""Values of a split column, in any case."""

MAX_CLASSES = 20
MAX_SUGGESTIONS = 5


class NoLabelError(ArgumentError):
    """No label column was named or guessed; `candidates` may hold the classes."""

    def __init__(self, candidates: Sequence[str] = ()) -> None:
        message = "No label column: every node is unlabelled"
        if candidates:
            names = [repr(column) for column in candidates[:MAX_SUGGESTIONS]]
            choice = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
            message += f"; set label to the column with the classes, perhaps {choice}"
        super().__init__(f"{message}.", argument="label")
        self.candidates = tuple(candidates)


class FewClassesError(ValueError):
    """A label column without two classes: nothing to learn from, but to start labelling with.

    Args:
        message: What is wrong.
        column: The label column.
        labelled: Which nodes have a label, (N,).
        classes: The name of their class; empty without labels.
    """

    def __init__(
        self, message: str, *, column: str, labelled: Bools, classes: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.column, self.labelled, self.classes = column, labelled, classes


def encode_labels(
    values: Any, table: str, notes: Notes, unlabelled: Sequence[Any] = ()
) -> tuple[Ints, tuple[str, ...]]:
    """Class indices, -1 where the label is empty, (N,), and the names of the classes.

    Classes are sorted: numbers by value, text alphabetically, false before true.

    Args:
        values: The label column.
        table: Name of its table, for errors.
        notes: Gets a note about labels that are or may be missing, and about rare classes.
        unlabelled: Labels that mean unlabelled.
    """
    empty = is_empty(values, EMPTY_LABELS)
    words = empty & ~is_empty(values)
    if unlabelled:
        given = canonical_names(values)
        empty = empty | is_unlabelled(given, unlabelled)
        note_absent(given, unlabelled, notes)
    where = location(table, values.name)
    column, labelled = str(values.name), ~np.asarray(empty)
    if empty.all():
        message = f"{where}: every label is empty; label at least two nodes."
        raise FewClassesError(message, column=column, labelled=labelled)
    # "?" among numbers is asked about, not an error
    doubtful = empty | is_empty(values, MISSING_WORDS)
    known = values.where(~doubtful, None) if doubtful.any() else values
    kind = column_kind(known, table, required=True)
    if kind == "number":
        to_numbers(known, table)  # raises an error on infinity
    elif kind == "boolean":
        to_signs(known, table)
    names = canonical_names(values[~empty])
    try:
        classes = sorted(set(names), key=float)
    except ValueError:  # no numbers
        classes = sorted(set(names))
    if len(classes) < 2:
        message = f"{where} holds a single class, {classes[0]!r}; at least two are needed."
        raise FewClassesError(message, column=column, labelled=labelled, classes=tuple(classes))
    counts = Counter(names)
    check_classes(str(values.name), where, counts)
    labels = np.full(len(values), -1, dtype=np.int64)
    labels[~empty] = import_pandas().Index(classes, dtype=object).get_indexer(names)
    if words.any():
        word = canonical_name(values.iloc[int(words.argmax())])
        text = f"Labels {word!r} or similar, treated as unlabelled: {int(words.sum())}."
        notes.add(NoteKind.EMPTY_LABELS, text)
    ask_about_missing(counts, notes)
    note_rare_classes(counts, notes)
    return labels, tuple(classes)


def known_labels(values: Any, unlabelled: Sequence[Any] | None = None) -> Any:
    """The label column with None for every label that means unlabelled."""
    empty = is_empty(values, EMPTY_LABELS)
    if unlabelled:
        empty = empty | is_unlabelled(canonical_names(values), unlabelled)
    return values.astype(object).where(~empty, None)


def label_candidates(nodes: Any, excluded: Collection[str]) -> tuple[str, ...]:
    """Columns that may hold classes: few distinct values, each used twice or more on average.

    Columns with empty cells come first, since labels are often incomplete, then those with the
    fewest values.
    """
    candidates = []
    for column in nodes.columns:
        if column in excluded or is_unnamed(column):
            continue
        empty = is_empty(nodes[column], EMPTY_LABELS)
        try:
            codes, names = distinct_names(nodes.loc[~empty, column])
        except ValueError:  # lists
            continue
        distinct = len(names)
        if 2 <= distinct <= min(MAX_CLASSES, len(codes) / 2):
            candidates.append((not empty.any(), distinct, column))
    return tuple(column for _, _, column in sorted(candidates, key=lambda item: item[:2]))


def read_split(values: Any, table: str) -> dict[str, Bools]:
    """Masks of train, val and test from a split column; an empty cell is in none, (N,) each."""
    parts = np.array([SPLIT_WORDS.get(n.lower(), "") for n in canonical_names(values)], object)
    wrong = (parts == "") & ~is_empty(values)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"{location(table, values.name, row)} holds {canonical_name(values.iloc[row])!r}; a "
            "split column holds train, val (or validation), test or an empty cell."
        )
    return {part: parts == part for part in ("train", "val", "test")}


def is_split_column(values: Any) -> bool:
    """Whether a column holds nothing but train, val and test."""
    _, distinct = distinct_names(values[~is_empty(values)])
    names = {name.lower() for name in distinct}
    return bool(names) and names <= SPLIT_WORDS.keys()


def read_times(values: Any, table: str, date_order: str | None = None) -> Floats:
    """Times as numbers, dates in seconds since 1970, NaN where empty, (N,)."""
    form = date_form(values, table, date_order)
    if form is not None:
        return seconds_of(values, table, form)
    kind = column_kind(values, table, required=True)
    if kind not in ("number", "date"):
        raise ValueError(
            f"{location(table, values.name)} holds {kind} values; times must be numbers or dates "
            "such as 2024-05-31."
        )
    return to_numbers(values, table) if kind == "number" else to_seconds(values, table)
