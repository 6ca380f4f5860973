"""Answers: what the events of a label file amount to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from evengraph.desk.label_file import ANSWERS, CLASS, LABEL, NOTE, UNDO, Event


class Answers:
    """The last answer of every node that was not undone, notes, and classes.

    Events are given in order, all at once or a few at a time. One thread may add while others read.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.last = 0  # number of the last event
        self.classes: list[str] = []  # added or used, the first first; none is ever left out
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
            if event.kind in (CLASS, LABEL) and event.label not in self.classes:
                self.classes.append(event.label)
            if event.kind in (*ANSWERS, NOTE):
                self._events[event.number] = event
                self._by_node.setdefault(event.node, []).append(event)

    def of(self, node: str) -> Event | None:
        """The answer that counts for a node."""
        return next((e for e in reversed(self.history(node)) if e.kind in ANSWERS), None)

    def event(self, number: int) -> Event | None:
        """An answer or note that still counts, by its number."""
        return None if number in self._undone else self._events.get(number)

    def history(self, node: str) -> list[Event]:
        """Answers and notes of a node that were not undone, in order."""
        return [e for e in self._by_node.get(node, ()) if e.number not in self._undone]

    def all(self) -> list[Event]:
        """The answer of every node that has one, the oldest first."""
        answers = (self.of(node) for node in list(self._by_node))
        return sorted((e for e in answers if e is not None), key=lambda e: e.number)

    def labels(self) -> dict[str, str]:
        """The class of every labelled node, by id."""
        return {event.node: event.label for event in self.all() if event.kind == LABEL}

    def counts(self) -> Counter[str]:
        """Labelled nodes of each class."""
        return Counter(self.labels().values())

    def last_of(self, session: str) -> Event | None:
        """What an undo in a session undoes: its last answer or note that still counts."""
        mine = (e for e in reversed(list(self._events.values())) if e.session == session)
        return next((e for e in mine if e.number not in self._undone), None)
