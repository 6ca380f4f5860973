from itertools import count

from evengraph.desk.label_file import Answers, Event


def numbered(*events):
    numbers = count(1)
    return [Event(**{**event, "number": next(numbers)}) for event in events]


def test_the_last_answer_counts_until_it_is_undone():
    events = numbered(
        {"node": "a", "label": "fraud"},
        {"node": "a", "label": "honest"},
        {"kind": "undo", "undoes": 2},
        {"node": "b", "kind": "unknown"},
        {"node": "c", "label": "honest"},
        {"kind": "undo", "undoes": 5},
    )
    answers = Answers(events)
    assert answers.labels() == {"a": "fraud"}
    assert answers.of("b").kind == "unknown"
    assert answers.of("c") is None
    assert answers.counts() == {"fraud": 1}
    assert answers.last == 6
    assert [event.node for event in answers.all()] == ["a", "b"]


def test_events_may_come_a_few_at_a_time():
    events = numbered({"node": "a", "label": "x"}, {"kind": "undo", "undoes": 1})
    answers = Answers(events[:1])
    assert answers.labels() == {"a": "x"}
    answers.add(events[1:])
    assert answers.labels() == {}


def test_a_note_is_no_answer_but_can_be_undone():
    note = {"node": "a", "kind": "note", "note": "see the address"}
    answers = Answers(numbered({"node": "a", "label": "x"}, note))
    assert answers.of("a").label == "x"
    assert [event.note for event in answers.history("a")] == ["", "see the address"]
    assert answers.last_of("").note == "see the address"


def test_an_undo_reaches_only_what_the_same_session_did():
    answers = Answers(
        numbered(
            {"node": "a", "label": "x", "session": "one"},
            {"node": "b", "label": "x", "session": "two"},
            {"node": "c", "label": "y", "session": "one"},
            {"kind": "undo", "undoes": 3},
        )
    )
    assert answers.last_of("one").node == "a"
    assert answers.last_of("two").node == "b"
    assert answers.last_of("three") is None


def test_added_classes_are_listed_once():
    answers = Answers(numbered({"kind": "class", "label": "x"}, {"kind": "class", "label": "x"}))
    assert answers.classes == ["x"]


def test_one_thread_may_add_while_others_read(monkeypatch):
    answers = Answers(numbered({"node": "a", "label": "x"}, {"node": "b", "label": "y"}))
    new = iter(numbered(*({"node": f"n{place}", "label": "x"} for place in range(9)))[2:])
    history = answers.history

    def interrupted(node):
        answers.add([next(new)])
        return history(node)

    monkeypatch.setattr(answers, "history", interrupted)
    assert answers.labels().keys() == {"a", "b"}


def test_a_class_stays_where_it_is_when_its_labels_are_corrected():
    events = numbered(
        *({"node": "a", "label": name} for name in "xyx"), {"kind": "undo", "undoes": 1}
    )
    assert Answers(events).classes == ["x", "y"]
