"""Tests."""

import json
import math
import shutil
import statistics
from threading import Event, Thread

import pytest
from filelock import Timeout

from evengraph.core import files as locks
from evengraph.core.files import csv_text, locked, temporary_folder, write_atomic, write_json
from evengraph.core.task import Record, mean_and_deviation


def record(seed: int, value: float) -> Record:
    counts = {"best_epoch": 0, "epochs": 0, "seconds": 0.1, "confusion_matrix": [[1]]}
    lists = {"per_class": {"recall": [value]}, "history": {"loss": [1.0], "score": [value]}}
    return Record(seed=seed, metrics={"macro_f1": value}, validation=value, **counts, **lists)


def test_mean_and_sample_deviation():
    values = [60.0, 70.0, 74.0]
    mean, std = mean_and_deviation([record(seed, value) for seed, value in enumerate(values)])
    assert mean["macro_f1"] == pytest.approx(statistics.fmean(values))
    assert std["macro_f1"] == pytest.approx(statistics.stdev(values))
    undefined = mean_and_deviation([record(0, 50.0), record(1, math.nan)])
    assert all(math.isnan(figures["macro_f1"]) for figures in undefined)
    assert mean_and_deviation([record(0, 50.0)])[1]["macro_f1"] == 0


def test_rows_as_csv_by_hand():
    rows = [{"a": 1.5, "b": 'say "x, y"'}, {"a": None, "b": "two\nlines"}]
    assert csv_text(rows) == 'a,b\n1.5,"say ""x, y"""\n,"two\nlines"\n'
    assert csv_text([{"a": 1}, {"b": 2}], ["a", "b"]) == "a,b\n1,\n,2\n"
    assert csv_text([]) == "\n"


def test_lists_of_numbers_stay_on_one_line_and_what_is_undefined_becomes_null(tmp_path):
    path = tmp_path / "deep" / "result.json"
    write_json({"a": math.nan, "b": [math.inf, 1.5], "c": (1,)}, path)
    assert path.read_text() == '{\n "a": null,\n "b": [null, 1.5],\n "c": [1]\n}\n'
    content = {"history": [1.0, 2.5, None], "names": ["a  b", "[ x ]"], "matrix": [[1, 2], [3, 4]]}
    write_json(content, path)
    assert json.loads(path.read_text()) == content
    assert '"history": [1.0, 2.5, null],' in path.read_text()


def test_a_full_disk_names_the_file_and_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "result.json"
    path.write_text("old")

    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("evengraph.core.files.os.replace", full)
    with pytest.raises(OSError, match="No space left") as error:
        write_atomic(b"new", path)
    assert error.value.filename == str(path)
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("result.json", "old")]


def test_one_at_a_time_holds_a_lock(tmp_path):
    inside, lock = Event(), tmp_path / "lock"

    def other():
        with locked(lock):
            inside.set()

    thread = Thread(target=other)
    with locked(lock):
        thread.start()
        assert not inside.wait(0.05)
        with pytest.raises(Timeout), locked(lock, wait=False):
            pass
    thread.join(5)
    assert inside.is_set()
    assert not list(tmp_path.iterdir())


def test_a_temporary_folder_goes_and_what_others_left_goes_before(tmp_path):
    model = tmp_path / "model[1]"
    left = tmp_path / ".model[1].abc.tmp"
    left.mkdir()
    (left / "file").touch()
    names = (".model2.abc.tmp", ".model[1].notes", ".model1.a.tmp")
    others = [tmp_path / name for name in names]
    for other in others:
        other.mkdir()
    with temporary_folder(model) as folder:
        assert folder.is_dir()
        assert not left.exists()
        with temporary_folder(model) as second:  # of another writer, while the first is at work
            assert folder.is_dir()
            assert second != folder
    assert sorted(tmp_path.iterdir()) == sorted(others)


def test_a_folder_that_was_removed_before_it_was_held_is_made_again(tmp_path, monkeypatch):
    made = []
    make = locks.tempfile.mkdtemp

    def make_and_lose(**options):
        made.append(make(**options))
        if len(made) == 1:
            shutil.rmtree(made[0])
        return made[-1]

    monkeypatch.setattr(locks.tempfile, "mkdtemp", make_and_lose)
    with temporary_folder(tmp_path / "model") as folder:
        assert str(folder) == made[1]
