"""Notes: remarks on how tables became a graph, with a kind that code can react to."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class NoteKind(StrEnum):
    """What a note is about."""

    GUESSED_COLUMN = "guessed column"
    MIXED_COLUMN = "mixed column"
    FEATURES = "features"
    ROW_NUMBER_IDS = "row number ids"
    DROPPED_EDGES = "dropped edges"
    MERGED_EDGES = "merged edges"
    UNDIRECTED = "undirected"
    WEIGHTS = "weights"
    RELATIONS = "relations"
    ISOLATED_NODES = "isolated nodes"
    NO_LABEL = "no label"
    EMPTY_LABELS = "empty labels"
    MISSING_LABELS = "missing labels"
    RARE_CLASS = "rare class"
    SPLIT = "split"
    NO_TIME = "no time"
    FUTURE = "future"


class Note(str):
    """A sentence for the user that is a string and has a kind."""

    kind: NoteKind

    def __new__(cls, kind: NoteKind, text: str) -> Self:
        """Attach the kind to the text."""
        note = super().__new__(cls, text)
        note.kind = kind
        return note

    def __getnewargs__(self) -> tuple[NoteKind, str]:  # type: ignore[override]
        return self.kind, str(self)


class Notes(list[Note]):
    """Collects the notes of one graph."""

    def add(self, kind: NoteKind, text: str) -> None:
        """Append a note."""
        self.append(Note(kind, text))
