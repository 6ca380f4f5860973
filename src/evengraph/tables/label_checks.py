"""Whether a column can be a label: not continuous, not an id, and which classes may be missing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from evengraph.core.errors import short
from evengraph.tables.cells import Bools, canonical_name, plural
from evengraph.tables.ids import is_id_name
from evengraph.tables.notes import NoteKind, Notes

MAX_DISTINCT = 20
"""More distinct numbers than this are checked for being continuous."""
MIN_NODES_PER_CLASS = 5
"""Whole numbers with fewer nodes each, on average, are a quantity."""
SHOWN_CLASSES = 3

MISSING_WORDS = frozenset(
    {"?", "-", "--", "-1", "-99", "-999", "unknown", "unk", "unlabelled", "unlabeled", "missing"}
    | {"undefined", "not available", "not labelled", "not labeled", "no label", "tbd"}
)
"""Labels that may stand for unlabelled. They may also be classes, so the user decides."""


def check_classes(column: str, where: str, counts: Mapping[str, int]) -> None:
    """Raise an error if the values of a column, with their counts, are no classes."""
    counts = {name: count for name, count in counts.items() if name.lower() not in MISSING_WORDS}
    distinct, total = len(counts), sum(counts.values())
    if distinct <= MAX_DISTINCT:
        return
    numbers = _as_numbers(counts)
    numeric = numbers is not None
    whole = numbers is not None and all(number.is_integer() for number in numbers)
    if distinct == total and (not numeric or (whole and is_id_name(column))):
        kind = "an id" if is_id_name(column) else "an id or a name"
        raise ValueError(
            f"{where}: all {distinct} labels are different, like {kind}; a class needs several "
            "nodes. Is this the label column?"
        )
    if numeric and (not whole or total < MIN_NODES_PER_CLASS * distinct):
        raise ValueError(
            f"{where} is continuous ({distinct} distinct numbers in {total} rows); a label holds "
            "classes: bin it into a few, such as low, middle and high."
        )


def _as_numbers(names: Iterable[str]) -> list[float] | None:
    """The names as numbers, or None if one is text."""
    try:
        return [float(name) for name in names]
    except ValueError:
        return None


def doubtful_classes(names: Collection[str]) -> list[str]:
    """The classes that may stand for unlabelled; none unless two others remain."""
    words = [name for name in names if name.lower() in MISSING_WORDS]
    return words if len(names) - len(words) >= 2 else []


def ask_about_missing(counts: Mapping[str, int], notes: Notes) -> None:
    """Add a note if one of the classes may stand for unlabelled, and two others remain."""
    words = doubtful_classes(counts)
    if not words:
        return
    sizes = " and ".join(f"{name!r} ({plural(counts[name], 'node')})" for name in words)
    text = f"Is label {sizes} a class? If it means unlabelled, set unlabelled to {','.join(words)}."
    notes.add(NoteKind.MISSING_LABELS, text)


def note_rare_classes(counts: Mapping[str, int], notes: Notes) -> None:
    """Add one note about all classes that are too small for a stratified split."""
    rare = [name for name in sorted(counts) if counts[name] < 3]
    if not rare:
        return
    if len(rare) == 1:
        subject = f"Class {rare[0]!r} has {plural(counts[rare[0]], 'labelled node')}"
    else:
        shown = ", ".join(map(repr, rare[:SHOWN_CLASSES]))
        more = "" if len(rare) <= SHOWN_CLASSES else ", ..."
        subject = f"{len(rare)} classes have 1 or 2 labelled nodes ({shown}{more})"
    fix = "its label cells to leave the class" if len(rare) == 1 else "their cells to leave them"
    text = f"{subject}: a stratified split (Natural) needs 3 per class; label more, or empty {fix}"
    notes.add(NoteKind.RARE_CLASS, f"{text} out.")


def is_unlabelled(names: Iterable[str], unlabelled: Sequence[Any]) -> Bools:
    """Which labels the user declared to mean unlabelled, ignoring case, (N,)."""
    words = {word.lower() for word in _words(unlabelled)}
    return np.array([name.lower() in words for name in names], dtype=bool)


def note_absent(names: Iterable[str], unlabelled: Sequence[Any], notes: Notes) -> None:
    """Note labels declared to mean unlabelled that no node has: they may be misspelt."""
    present = {name.lower() for name in names}
    absent = [short(word) for word in _words(unlabelled) if word.lower() not in present]
    if absent:
        text = f"No label is {' or '.join(absent)}, which unlabelled names."
        notes.add(NoteKind.EMPTY_LABELS, text)


def _words(unlabelled: Sequence[Any]) -> list[str]:
    words = [unlabelled] if isinstance(unlabelled, str) else unlabelled
    return [canonical_name(word) for word in words]
