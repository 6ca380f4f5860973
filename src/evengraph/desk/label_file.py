"""LabelFile: who labelled which node as what, when, and what the model thought; one SQLite file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import Any

from evengraph.core.errors import short
from evengraph.core.files import SqliteFile

FORMAT = 1
APPLICATION = 0x45474C42  # "EGLB": marks the file as ours, whatever its version
LABEL, UNKNOWN, DISMISSED = "label", "unknown", "dismissed"  # dismissed: not of class `label`
NOTE, CLASS, UNDO = "note", "class", "undo"  # class: one that was added
ANSWERS = (LABEL, UNKNOWN, DISMISSED)  # the last one of a node that was not undone counts
HELD_SECONDS = 300.0  # how long a node that somebody looks at is kept from others

# fits is of version 0.2, which reads what this one writes
TABLES = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS events (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    created TEXT NOT NULL,
    who TEXT NOT NULL,
    session TEXT NOT NULL,
    node TEXT NOT NULL,
    kind TEXT NOT NULL,
    label TEXT NOT NULL,
    note TEXT NOT NULL,
    undoes INTEGER,
    thought TEXT NOT NULL,
    model TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS fits (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    created TEXT NOT NULL,
    method TEXT NOT NULL,
    labels INTEGER NOT NULL,
    score REAL,
    seconds REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS looks (session TEXT PRIMARY KEY, node TEXT NOT NULL, seen REAL NOT NULL);
"""


@dataclass(frozen=True, kw_only=True)
class Event:
    """One entry of the file; entries are only ever added."""

    node: str = ""  # its id; empty for a class
    kind: str = LABEL
    label: str = ""  # the name of a class
    note: str = ""  # what somebody wrote about it
    who: str = ""
    session: str = ""  # in which browser
    undoes: int | None = None  # for an undo, the number of the event that no longer counts
    thought: Mapping[str, float] = field(default_factory=dict)  # probabilities before, by class
    model: str = ""  # which model predicted them
    number: int = 0  # counts events from 1, in order
    created: str = ""  # in UTC


class LabelFile:
    """Labels in one SQLite file. Several people and processes may write at the same time.

    Nothing is ever changed or deleted: an undo is one more event. An event is on disk before the
    call that adds it returns, so that killing the process loses nothing.
    """

    def __init__(self, path: Path, column: str | None = None) -> None:
        self.path = Path(path)
        self._file = SqliteFile(self.path, "evengraph label file", synchronous="FULL")
        quoted = (column or "").replace("'", "''")
        script = f"{TABLES} INSERT OR IGNORE INTO about VALUES ('column', '{quoted}');"
        self._file.prepare(script, FORMAT, main="events", application=APPLICATION)
        if column is not None and self.column != column:
            held = short(self.column)
            raise ValueError(f"{self.path} holds labels for {held}, not for {column!r}.")

    @property
    def column(self) -> str:
        with self._file.read() as base:
            row = base.execute("SELECT value FROM about WHERE name = 'column'").fetchone()
        return "" if row is None else str(row[0])

    def add(self, *events: Event) -> list[int]:
        """Write events in one transaction; returns their numbers."""
        names = [name for name in _EVENT if name != "number"]
        query = f"INSERT INTO events ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        numbers = []
        with self._file.write() as base:
            for event in events:
                rounded = {name: round(value, 4) for name, value in event.thought.items()}
                values = vars(event) | {
                    "created": datetime.now(UTC).isoformat(timespec="seconds"),
                    "thought": json.dumps(rounded),
                }
                cursor = base.execute(query, [values[name] for name in names])
                numbers.append(int(cursor.lastrowid or 0))
        return numbers

    def events(self, after: int = 0) -> list[Event]:
        """All events with a larger number, in order."""
        query = f"SELECT {', '.join(_EVENT)} FROM events WHERE number > ? ORDER BY number"
        with self._file.read() as base:
            return [_event(row) for row in base.execute(query, (after,))]

    def look(self, session: str, nodes: Iterable[str]) -> str | None:
        """Take the first node that nobody else has just looked at; the one before is free again."""
        now = time()
        query = "SELECT node FROM looks WHERE session <> ? AND seen BETWEEN ? AND ?"
        insert = "INSERT OR REPLACE INTO looks VALUES (?, ?, ?)"
        with self._file.write() as base:
            base.execute("BEGIN IMMEDIATE")
            held = session, now - HELD_SECONDS, now + HELD_SECONDS  # a clock may jump back
            taken = {row[0] for row in base.execute(query, held)}
            node = next((node for node in nodes if node not in taken), None)
            if node is not None:
                base.execute(insert, (session, node, now))
        return node


_EVENT = [item.name for item in fields(Event)]


def _event(row: Sequence[Any]) -> Event:
    values: dict[str, Any] = {
        name: value.decode(errors="replace") if isinstance(value, bytes) else value
        for name, value in zip(_EVENT, row, strict=True)
    }
    try:
        content = json.loads(values["thought"])
    except (TypeError, ValueError, RecursionError):
        content = None
    entries = content.items() if isinstance(content, dict) else ()
    thought = {name: value for name, value in entries if isinstance(value, int | float)}
    return Event(**values | {"thought": thought})


def read_answers(path: Path, column: str | None) -> dict[str, str]:
    """The classes by node that a label file holds."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist.")
    return Answers(LabelFile(path, column).events()).labels()


class Answers:
    """What counts of the events, given in order; one thread may add while others read."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.last = 0  # number of the last event
        self._classes: dict[str, None] = {}  # in order
        self._events: dict[int, Event] = {}
        self._by_node: dict[str, list[Event]] = {}
        self._undone: set[int] = set()
        self.add(events)

    def add(self, events: Iterable[Event]) -> None:
        """Take further events into account."""
        for event in events:
            self.last = max(self.last, event.number)
            if event.kind == UNDO and event.undoes is not None:
                self._undone.add(event.undoes)
            if event.kind in (CLASS, LABEL):
                self._classes[event.label] = None
            if event.kind in (*ANSWERS, NOTE):
                self._events[event.number] = event
                self._by_node.setdefault(event.node, []).append(event)

    @property
    def classes(self) -> list[str]:
        """Added or used, the first first; none is ever left out."""
        return list(self._classes)

    def of(self, node: str) -> Event | None:
        return next((e for e in reversed(self.history(node)) if e.kind in ANSWERS), None)

    def event(self, number: int) -> Event | None:
        """An answer or note that still counts, by its number."""
        return None if number in self._undone else self._events.get(number)

    def history(self, node: str) -> list[Event]:
        """Answers and notes of a node that were not undone, in order."""
        return [e for e in self._by_node.get(node, ()) if e.number not in self._undone]

    def all(self) -> list[Event]:
        answers = (self.of(node) for node in list(self._by_node))
        return sorted((e for e in answers if e is not None), key=lambda e: e.number)

    def labels(self) -> dict[str, str]:
        return {event.node: event.label for event in self.all() if event.kind == LABEL}

    def last_of(self, session: str) -> Event | None:
        """What an undo in a session undoes: its last answer or note that still counts."""
        mine = (e for e in reversed(list(self._events.values())) if e.session == session)
        return next((e for e in mine if e.number not in self._undone), None)
