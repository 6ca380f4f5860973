"""The label file and what counts of its events."""

import os
import signal
import sqlite3
import subprocess
import sys
from time import time

import pytest

from evengraph.desk import label_file
from evengraph.desk.label_file import Answers, Event, LabelFile
from evengraph.lab.store import Store

WRITER = """
import sys
from pathlib import Path
from evengraph.desk.label_file import Event, LabelFile
file = LabelFile(Path(sys.argv[1]), "kind")
for place in range(10**9):
    file.add(Event(node=str(place), label="fraud", who="ana"), Event(node=str(place), kind="note"))
    print(place, flush=True)
"""


def test_what_was_added_is_read(tmp_path):
    file = LabelFile(tmp_path / "labels.sqlite", "kind")
    thought = {"fraud": 0.91239, "honest": 0.08761}
    given = Event(node="a-1", label="fraud", note="odd", who="ana", thought=thought, model="fit 2")
    assert file.add(given, Event(kind="undo", undoes=1)) == [1, 2]
    first, second = LabelFile(file.path, "kind").events()
    assert (first.node, first.label, first.note, first.who) == ("a-1", "fraud", "odd", "ana")
    assert (first.thought, first.model) == ({"fraud": 0.9124, "honest": 0.0876}, "fit 2")
    assert first.created.endswith("+00:00")
    assert (second.kind, second.undoes, second.number) == ("undo", 1, 2)
    assert file.events(after=1) == [second]


def test_files_of_another_column_or_format_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "labels.sqlite"
    LabelFile(path, "it's kind")
    assert LabelFile(path).column == "it's kind"
    with pytest.raises(ValueError, match="holds labels for \"it's kind\", not for 'type'"):
        LabelFile(path, "type")
    monkeypatch.setattr(label_file, "FORMAT", 2)
    with pytest.raises(ValueError, match=r"another version of evengraph \(format 1, this .* 2\)"):
        LabelFile(path)


def test_files_of_others_are_refused_and_left_alone(tmp_path):
    Store(tmp_path / "store.sqlite")
    with sqlite3.connect(tmp_path / "other.sqlite") as base:
        base.execute("CREATE TABLE events (a TEXT)")
    (tmp_path / "letter.sqlite").write_text("Dear reader, " * 100)
    for name in ("store", "other", "letter"):
        path = tmp_path / f"{name}.sqlite"
        before = path.read_bytes()
        with pytest.raises(ValueError, match=f"{name}.sqlite is not an evengraph label file"):
            LabelFile(path, "kind")
        assert path.read_bytes() == before
    LabelFile(tmp_path / "labels.sqlite", "kind")
    with pytest.raises(ValueError, match="is not an evengraph store"):
        Store(tmp_path / "labels.sqlite")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_killed_writer_loses_nothing_that_it_had_confirmed(tmp_path):
    path = tmp_path / "labels.sqlite"
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        confirmed = [int(child.stdout.readline()) for _ in range(20)][-1]
        child.send_signal(signal.SIGKILL)
        confirmed = max([confirmed, *(int(line) for line in child.stdout if line.endswith("\n"))])
    events = LabelFile(path, "kind").events()
    assert len(events) % 2 == 0  # both of a pair or none
    assert len(events) >= 2 * (confirmed + 1)


def test_two_sessions_look_at_different_nodes(tmp_path, monkeypatch):
    file = LabelFile(tmp_path / "labels.sqlite", "kind")
    assert file.look("one", ["a", "b"]) == "a"
    assert file.look("two", ["a", "b"]) == "b"
    assert file.look("three", ["a", "b"]) is None
    assert file.look("one", ["a", "c"]) == "a"
    assert file.look("one", ["c"]) == "c"
    assert file.look("three", ["a", "b"]) == "a"  # the first has moved on
    now = time()
    with monkeypatch.context() as patch:
        patch.setattr(label_file, "time", lambda: now - 86_400)  # the clock was wrong by a day
        assert file.look("five", ["a"]) == "a"
    monkeypatch.setattr(label_file, "HELD_SECONDS", -1)
    assert file.look("four", ["b"]) == "b"  # the second went home


@pytest.mark.parametrize(
    ("cell", "left"),
    [
        ('{"fraud": 0.5, "honest": null, "z": [1]}', {"fraud": 0.5}),
        ("{half", {}),
        ("[" * 5000, {}),
        ("[1]", {}),
        (b"\xff", {}),
    ],
)
def test_of_a_damaged_thought_the_probabilities_are_left(tmp_path, cell, left):
    file = LabelFile(tmp_path / "labels.sqlite", "kind")
    file.add(Event(node="a", label="fraud"))
    with sqlite3.connect(file.path) as base:
        base.execute("UPDATE events SET thought = ?, who = CAST(x'ff' AS TEXT)", (cell,))
    (event,) = file.events()
    assert (event.label, event.thought, event.who) == ("fraud", left, "\ufffd")


def counting(*events):
    return Answers(Event(**event, number=place) for place, event in enumerate(events, start=1))


def test_the_last_answer_counts_until_it_is_undone():
    answers = counting(
        {"node": "a", "label": "fraud", "session": "one"},
        {"node": "a", "label": "honest", "session": "two"},
        {"kind": "undo", "undoes": 2},
        {"node": "b", "kind": "unknown", "session": "two"},
        {"node": "c", "label": "honest", "session": "one"},
        {"kind": "undo", "undoes": 5},
        {"node": "a", "kind": "note", "note": "see the address"},
        {"kind": "class", "label": "fraud"},
    )
    assert answers.labels() == {"a": "fraud"}
    assert answers.of("b").kind == "unknown"
    assert answers.of("c") is None
    assert answers.last == 8
    assert [event.node for event in answers.all()] == ["a", "b"]
    assert [event.note for event in answers.history("a")] == ["", "see the address"]
    assert answers.classes == ["fraud", "honest"]  # once each, also those that were corrected
    # an undo reaches only what the same session did
    assert [answers.last_of(one).number for one in ("one", "two", "")] == [1, 4, 7]
    assert answers.last_of("three") is None
    answers.add([Event(kind="undo", undoes=1, number=9)])  # events may come a few at a time
    assert answers.labels() == {}
    assert answers.classes == ["fraud", "honest"]


def test_one_thread_may_add_while_others_read(monkeypatch):
    answers = counting({"node": "a", "label": "x"}, {"node": "b", "label": "y"})
    new = iter([Event(node=f"n{place}", label="x", number=place) for place in range(3, 10)])
    history = answers.history

    def interrupted(node):
        answers.add([next(new)])
        return history(node)

    monkeypatch.setattr(answers, "history", interrupted)
    assert answers.labels().keys() == {"a", "b"}
