import multiprocessing
import threading
from time import sleep
from types import SimpleNamespace

import pytest
import torch
from small_desk import truth, write_shop

from evengraph.desk import training
from evengraph.desk.nodes import open_nodes
from evengraph.desk.training import Trainer, TrainingJob, is_enough, make_task, train
from evengraph.pipeline.model_info import load_model


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    shop = write_shop(tmp_path_factory.mktemp("tables") / "shop")
    return open_nodes(str(shop), {"label": "kind"})


def make_job(nodes, folder, labels, **options):
    classes = ("fraud", "nobody has labelled this", "honest")
    given = {"graph": nodes.graph, "labels": labels, "classes": classes, "method": "logistic"}
    return TrainingJob(**{**given, "time_limit": 5.0, "folder": folder, **options})


def labels_of(nodes, count):
    labels = torch.full((len(nodes.ids),), -1)
    for row, id in enumerate(nodes.ids[:count]):
        labels[row] = {"fraud": 0, "honest": 2}[truth(id)]
    return labels


def test_enough_are_two_classes_and_a_label_to_hold_out():
    assert not is_enough(torch.tensor([-1, -1]))
    assert not is_enough(torch.tensor([0, 0, 0, -1]))
    assert not is_enough(torch.tensor([0, 1, -1]))
    assert is_enough(torch.tensor([0, 2, 2]))


def test_classes_without_labels_are_left_out_and_a_single_label_is_learnt_from(nodes, tmp_path):
    labels = torch.full((60,), -1)
    labels[:12] = torch.tensor([0, *[2] * 11])
    task = make_task(make_job(nodes, tmp_path, labels))
    assert task.class_names == ("fraud", "honest")
    assert task.class_counts.tolist() == [1, 9]
    assert task.val_counts == (0, 2)
    assert not task.test.any()


def test_a_model_is_saved_with_its_score(nodes, tmp_path):
    train(make_job(nodes, tmp_path / "model", labels_of(nodes, 50)))
    model = load_model(tmp_path / "model")
    assert model.class_names_ == ("fraud", "honest")
    assert model.extra_["labels"] == 50
    predicted = model.predict(nodes.graph)
    right = sum(
        model.class_names_[label] == truth(id)
        for label, id in zip(predicted, nodes.ids, strict=True)
    )
    assert right > 50


def test_a_score_needs_held_out_labels_of_every_class(nodes, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "MEASURED", 1)
    train(make_job(nodes, tmp_path / "a", labels_of(nodes, 40)))
    assert load_model(tmp_path / "a").extra_["score"] > 50
    monkeypatch.setattr(training, "MEASURED", 40)
    train(make_job(nodes, tmp_path / "b", labels_of(nodes, 40)))
    assert load_model(tmp_path / "b").extra_["score"] is None


class Thread(threading.Thread):
    """A process that is none, since those take seconds to start."""

    exitcode = 0


@pytest.mark.parametrize("fails", [True, False])
def test_a_training_that_ends_tells_how(nodes, tmp_path, monkeypatch, fails):
    receiver, sender = multiprocessing.Pipe(duplex=False)
    end = SimpleNamespace(send=sender.send, close=lambda: None)  # a thread has no copy of its own
    context = SimpleNamespace(Pipe=lambda duplex: (receiver, end), Process=Thread)
    monkeypatch.setattr(training.multiprocessing, "get_context", lambda kind: context)
    monkeypatch.setattr(training, "end_with_parent", lambda: None)
    done, told = threading.Event(), []

    def on_done(job, problem):
        told.append(problem)
        done.set()

    trainer = Trainer(on_done)
    (tmp_path / "file").write_text("in the way")
    folder = tmp_path / ("file" if fails else "folder") / "model"
    trainer.start(make_job(nodes, folder, labels_of(nodes, 40)))
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
