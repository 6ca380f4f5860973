"""The desk, a triage, and training beside them."""

import multiprocessing
import threading
from time import sleep
from types import SimpleNamespace

import pytest
import torch
from small_desk import make_desk, truth, write_shop

import evengraph as eg
from evengraph.desk import desk as module
from evengraph.desk import suggest, training
from evengraph.desk.desk import Desk, Triage
from evengraph.desk.label_file import CLASS, LABEL, UNKNOWN, Event, LabelFile
from evengraph.desk.nodes import open_for_model, open_nodes
from evengraph.desk.training import DeskOptions, Trainer, TrainingJob, is_enough, make_task, train
from evengraph.pipeline.model_info import load_model

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


def test_an_answer_is_written_with_what_the_model_thought(desk):
    row = desk.next_row("s1")
    thought = {name: pytest.approx(p, abs=1e-4) for name, p in desk.thought(row).items() if p}
    with pytest.raises(ValueError, match="There is no class 'x'"):
        desk.answer(row, LABEL, "x", **ME)
    desk.answer(row, LABEL, "fraud", note="odd", **ME)
    (event,) = desk.file.events()
    written = (event.node, event.label, event.note, event.who, event.model)
    assert written == (desk.nodes.ids[row], "fraud", "odd", "ana", "quick model")
    assert event.thought == thought
    assert desk.labels()[row] == 0
    assert row not in desk.waiting()


def test_what_is_not_known_is_not_asked_again_and_an_undo_brings_a_node_back(desk):
    unknown, row = desk.next_row("s1"), desk.next_row("s2")
    desk.answer(unknown, UNKNOWN, **ME)
    label(desk, row)
    desk.rank()
    assert not {unknown, row} & set(desk.queue)
    assert desk.labels()[unknown] == -1
    number = desk.answers.last_of("s1").number
    assert desk.undo(number, **ME) == row
    assert desk.is_open(row)
    assert desk.undo(number, **ME) is None  # there is nothing left to undo
    assert len(desk.file.events()) == 3


def test_two_people_get_different_nodes_and_see_each_others_labels(desk):
    assert len(desk.waiting()) == len(desk.queue) == 30
    assert all(desk.is_open(row) and reason for row, reason in desk.queue.items())
    assert sum(desk.thought(20).values()) == pytest.approx(1, abs=1e-4)
    first, second = desk.next_row("s1"), desk.next_row("s2")
    assert first != second
    desk.file.add(Event(node=desk.nodes.ids[first], label="honest", who="bea", session="s9"))
    assert desk.is_open(first)
    desk.refresh()
    assert not desk.is_open(first)
    desk.trainer.on_done(None, "out of memory")  # which does not stop the desk
    assert desk.problem == "Training failed: out of memory."
    assert desk.next_row("s1") is not None


def test_after_enough_labels_a_model_is_trained_and_a_new_start_has_it(desk, tmp_path):
    label(desk, desk.next_row("s1"))  # the seventh label: the table has six
    assert desk.method is None
    assert desk.labels_to_go() == 1
    label(desk, desk.next_row("s1"))
    assert desk.model.endswith(", trained on 8 labels")
    assert desk.labels_to_go() == 8
    right = sum(desk.guess(row)[0] == truth(id) for id, row in desk.nodes.rows.items())
    assert right > 40
    row = desk.next_row("s1")
    assert desk.explanation(row).node == row
    again = make_desk(tmp_path, retrain_every=8)
    assert again.answers.labels() == desk.answers.labels()
    assert again.model == desk.model
    assert torch.equal(again.ranking.probabilities, desk.ranking.probabilities)
    assert not again.trainer.running
    again.close()
    desk.method.num_features_ = 99
    with pytest.raises(ValueError, match="other columns"):
        desk._take(desk.method)


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
    assert (cold.thought(3), cold.model, cold.guess(3)) == ({}, "", None)
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
        writer = threading.Thread(target=lambda: (desk.file.add(late), desk.refresh()))
        writer.start()
        writer.join(0.1)  # it waits for the lock
        return labels()

    monkeypatch.setattr(desk, "labels", interrupted)
    assert set(desk.counts()) == {"fraud", "honest"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    shop = write_shop(tmp_path_factory.mktemp("tables") / "shop", labelled=40)
    return eg.TableModel("logistic").fit(shop, label="kind"), shop


def test_a_triage_goes_by_probability_and_counts_what_was_decided(model, tmp_path):
    table_model, shop = model
    nodes, rows = open_for_model(table_model, str(shop), None, {})
    file, options = LabelFile(tmp_path / "l.sqlite", "kind"), DeskOptions(folder=tmp_path / "m")
    triage = Triage(nodes, file, options, table_model.method_, "fraud", rows)
    triage.start()
    assert set(triage.queue) == set(range(40, 60))  # those without a label
    values = [triage.thought(row)["fraud"] for row in triage.queue]
    assert values == sorted(values, reverse=True)
    assert truth(nodes.ids[next(iter(triage.queue))]) == "fraud"
    assert nodes.labels[:2].tolist() == [0, 1]
    file.add(Event(node="a059", label="fraud", model="another"))
    triage.refresh()
    assert triage.precision() == (0, 0, 0)
    rows = triage.waiting()[:4]
    expected = sum(triage.thought(row)["fraud"] for row in rows[:3])
    for row, kind in zip(rows, ("fraud", "fraud", "honest", ""), strict=True):
        triage.answer(row, LABEL if kind else UNKNOWN, kind, **ME)
    assert triage.precision() == (2, 3, pytest.approx(expected, abs=0.01))
    assert triage.next_row("s1", rows[3]) == triage.waiting()[0]
    assert not triage.trainer.running
    triage.close()
    other = write_shop(tmp_path / "other", labelled=0, column="unused")  # without the column
    nodes, rows = open_for_model(table_model, str(other), None, {})
    assert rows == list(range(60))
    assert nodes.labels.max() == -1


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    shop = write_shop(tmp_path_factory.mktemp("tables") / "shop")
    return open_nodes(str(shop), {"label": "kind"})


def make_job(nodes, folder, count):
    """A training on the first labels; nobody has labelled the second class."""
    labels = torch.full((len(nodes.ids),), -1)
    labels[:count] = torch.tensor([2 * (truth(id) == "honest") for id in nodes.ids[:count]])
    options = DeskOptions(method="logistic", time_limit=5.0, folder=folder)
    classes = ("fraud", "nobody", "honest")
    return TrainingJob(graph=nodes.graph, labels=labels, classes=classes, options=options)


@pytest.mark.parametrize(
    ("labels", "enough"),
    [([-1, -1], False), ([0, 0, 0, -1], False), ([0, 1, -1], False), ([0, 2, 2], True)],
)
def test_enough_are_two_classes_and_a_label_to_hold_out(labels, enough):
    assert is_enough(torch.tensor(labels)) == enough


def test_classes_without_labels_are_left_out_and_a_single_label_is_learnt_from(nodes, tmp_path):
    job = make_job(nodes, tmp_path, 12)
    job.labels[:12] = torch.tensor([0, *[2] * 11])
    task = make_task(job)
    assert task.class_names == ("fraud", "honest")
    assert task.class_counts.tolist() == [1, 9]
    assert task.val_counts == (0, 2)
    assert not task.test.any()


def test_a_model_is_saved_with_its_score(nodes, tmp_path, monkeypatch):
    train(make_job(nodes, tmp_path / "model", 50))
    model = load_model(tmp_path / "model")
    assert model.class_names_ == ("fraud", "honest")
    assert model.extra_["labels"] == 50
    names = [model.class_names_[label] for label in model.predict(nodes.graph)]
    assert sum(name == truth(id) for name, id in zip(names, nodes.ids, strict=True)) > 50
    for least, scored in ((1, True), (40, False)):  # held-out labels that every class needs
        monkeypatch.setattr(training, "MEASURED", least)
        train(make_job(nodes, tmp_path / "again", 40))
        assert (load_model(tmp_path / "again").extra_["score"] is not None) == scored


class Process(threading.Thread):
    """A process that is none, since those take seconds to start."""

    exitcode = 0


@pytest.mark.parametrize("fails", [True, False])
def test_a_training_that_ends_tells_how(nodes, tmp_path, monkeypatch, fails):
    receiver, sender = multiprocessing.Pipe(duplex=False)
    end = SimpleNamespace(send=sender.send, close=lambda: None)  # a thread has no copy of its own
    context = SimpleNamespace(Pipe=lambda duplex: (receiver, end), Process=Process)
    monkeypatch.setattr(training.multiprocessing, "get_context", lambda kind: context)
    monkeypatch.setattr(training, "end_with_parent", lambda: None)
    done, told = threading.Event(), []

    def on_done(job, problem):
        told.append(problem)
        done.set()

    trainer = Trainer(on_done)
    (tmp_path / "file").write_text("in the way")
    folder = tmp_path / ("file" if fails else "folder") / "model"
    trainer.start(make_job(nodes, folder, 40))
    assert done.wait(30)
    assert [bool(problem) for problem in told] == [fails]
    assert "\n" not in told[0]
    assert not trainer.running
    sender.close()


def test_two_starts_at_once_give_one_process(monkeypatch):
    started, done = [], threading.Event()

    class Process:
        exitcode = 0

        def __init__(self, **options):
            sleep(0.02)  # long enough for the other to check

        def start(self):
            started.append(self)

        def join(self):
            done.wait(5)

    context = SimpleNamespace(Pipe=multiprocessing.Pipe, Process=Process)
    monkeypatch.setattr(training.multiprocessing, "get_context", lambda kind: context)
    ended = threading.Event()
    trainer = Trainer(lambda job, problem: ended.set())
    starts = [threading.Thread(target=trainer.start, args=(None,)) for _ in range(2)]
    for one in starts:
        one.start()
    for one in starts:
        one.join()
    assert len(started) == 1
    done.set()
    assert ended.wait(5)
    assert not trainer.running
