from threading import Thread

import pytest
import torch
from small_desk import make_desk, truth

from evengraph.desk import desk as module
from evengraph.desk import suggest
from evengraph.desk.desk import Desk
from evengraph.desk.label_file import CLASS, LABEL, UNKNOWN, Event
from evengraph.desk.training import train

ME = {"who": "ana", "session": "s1"}


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A desk that trains here and now."""
    made = make_desk(tmp_path, retrain_every=8)

    def start(job):
        train(job)
        made.trainer.on_done(job, "")

    monkeypatch.setattr(made.trainer, "start", start)
    yield made
    made.close()


def label(desk, row, **who):
    desk.answer(row, LABEL, truth(desk.nodes.ids[row]), **{**ME, **who})


def test_the_queue_holds_open_nodes_with_reasons(desk):
    assert len(desk.waiting()) == len({one.row for one in desk.queue}) == 30
    assert all(desk.is_open(one.row) and one.reason for one in desk.queue)
    assert desk.model == "quick model"
    assert sum(desk.thought(20).values()) == pytest.approx(1, abs=1e-4)


def test_an_answer_is_written_with_what_the_model_thought(desk):
    row = desk.next_row("s1")
    thought = desk.thought(row)
    desk.answer(row, LABEL, "fraud", note="odd", **ME)
    (event,) = desk.file.events()
    assert (event.node, event.label, event.note, event.who) == (
        desk.nodes.ids[row], "fraud", "odd", "ana",
    )  # fmt: skip
    assert event.thought == {name: pytest.approx(p, abs=1e-4) for name, p in thought.items() if p}
    assert event.model == "quick model"
    assert desk.labels()[row] == 0
    assert row not in [one.row for one in desk.waiting()]


def test_an_unknown_class_is_refused(desk):
    with pytest.raises(ValueError, match="There is no class 'x'"):
        desk.answer(10, LABEL, "x", **ME)
    assert desk.file.events() == []


def test_what_is_not_known_is_not_asked_again(desk):
    row = desk.next_row("s1")
    desk.answer(row, UNKNOWN, **ME)
    desk.rank()
    assert row not in [one.row for one in desk.queue]
    assert desk.labels()[row] == -1


def test_an_undo_brings_the_node_back(desk):
    row = desk.next_row("s1")
    label(desk, row)
    number = desk.answers.last_of("s1").number
    assert desk.undo(number, **ME) == row
    assert desk.is_open(row)
    assert desk.undo(number, **ME) is None  # there is nothing left to undo
    assert len(desk.file.events()) == 2


def test_two_people_get_different_nodes_and_see_each_others_labels(desk):
    first, second = desk.next_row("s1"), desk.next_row("s2")
    assert first != second
    desk.file.add(Event(node=desk.nodes.ids[first], label="honest", who="bea", session="s9"))
    assert desk.is_open(first)
    desk.refresh()
    assert not desk.is_open(first)


def test_after_enough_labels_a_model_is_trained_and_ranks(desk):
    label(desk, desk.next_row("s1"))  # the seventh label: the table has six
    assert desk.method is None
    assert desk.labels_to_go() == 1
    label(desk, desk.next_row("s1"))
    assert desk.model == "model 1"
    assert desk.file.fits()[0].labels == 8
    assert desk.labels_to_go() == 8
    right = sum(desk.guess(row)[0] == truth(id) for id, row in desk.nodes.rows.items())
    assert right > 40
    row = desk.next_row("s1")
    assert desk.explanation(row).node == row


def test_a_new_start_has_labels_and_model_at_once(desk, tmp_path):
    for row in range(10, 18):
        label(desk, row)
    again = make_desk(tmp_path, retrain_every=8)
    assert again.answers.labels() == desk.answers.labels()
    assert again.model == "model 1"
    assert torch.equal(again.ranking.probabilities, desk.ranking.probabilities)
    assert not again.trainer.running
    again.close()


def test_a_saved_model_of_other_columns_is_left_aside(desk, tmp_path):
    for row in range(10, 18):
        label(desk, row)
    desk.method.num_features_ = 99
    with pytest.raises(ValueError, match="other columns"):
        desk._take(desk.method)


def test_a_failed_training_is_told_and_does_not_stop_the_desk(desk):
    desk.trainer.on_done(None, "out of memory")
    assert desk.problem == "Training failed: out of memory."
    assert desk.next_row("s1") is not None


def test_a_class_can_be_added_and_is_kept(desk, tmp_path):
    desk.add_class("<b>new</b>", **ME)
    desk.add_class("<b>new</b>", **ME)
    assert desk.classes == ("fraud", "honest", "<b>new</b>")
    desk.answer(30, LABEL, "<b>new</b>", **ME)
    desk.rank()
    assert desk.counts()["<b>new</b>"] == 1
    assert desk.thought(31).keys() == set(desk.classes)
    again = make_desk(tmp_path, start=False)
    assert again.classes == desk.classes
    again.close()


def test_without_any_label_there_is_a_queue(tmp_path):
    cold = make_desk(tmp_path, labelled=0, classes=("fraud", "honest"))
    assert cold.waiting()
    assert cold.thought(3) == {}
    assert cold.model == ""
    assert cold.guess(3) is None
    cold.close()


def test_the_last_node_ends_the_queue(desk):
    desk.file.add(*(Event(node=id, label="honest") for id in desk.nodes.ids[6:]))
    desk.refresh()
    assert desk.next_row("s1") is None
    assert desk.waiting() == []


def test_classes_of_the_command_are_kept_in_their_order(tmp_path):
    first = make_desk(tmp_path, labelled=0, classes=("x", "y", "z"), start=False)
    first.answer(3, LABEL, "z", **ME)
    again = make_desk(tmp_path, labelled=0, classes=("x", "y"), start=False)
    other = make_desk(tmp_path, labelled=0, classes=("y", "x"), start=False)
    bare = Desk(again.nodes, again.file, again.options)
    assert first.classes == again.classes == bare.classes == ("x", "y", "z")
    assert other.classes == ("y", "x", "z")
    assert [event.label for event in first.file.events() if event.kind == CLASS] == [*"xyz"]
    for one in (first, again, other, bare):
        one.close()


def test_a_correction_leaves_the_order_of_classes(desk):
    corrected = ({"node": "a020", "label": name} for name in ("x", "y"))
    desk.file.add(*(Event(**event) for event in (*corrected, {"node": "a020", "label": "fraud"})))
    desk.refresh()
    assert desk.classes == ("fraud", "honest", "x", "y")


def test_a_slow_ranking_gives_way_to_a_newer_model(desk, monkeypatch):
    before, model = desk.ranking, object()

    def slow(*args, **options):
        desk.method = model  # trained meanwhile
        return suggest(*args, **options)

    monkeypatch.setattr(module, "suggest", slow)
    desk.rank()
    assert desk.ranking is before


def test_a_class_that_comes_while_labels_are_counted_is_no_error(desk, monkeypatch):
    late, labels = Event(node="a030", label="late"), desk.labels

    def interrupted():
        writer = Thread(target=lambda: (desk.file.add(late), desk.refresh()))
        writer.start()
        writer.join(0.1)  # it waits for the lock
        return labels()

    monkeypatch.setattr(desk, "labels", interrupted)
    assert set(desk.counts()) == {"fraud", "honest"}
