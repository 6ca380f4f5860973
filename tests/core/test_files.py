import json
import math
import statistics
from pathlib import Path

import pytest

import evengraph
from evengraph.core.files import csv_text, write_atomic, write_json
from evengraph.core.records import Record, mean_and_deviation


def record(seed: int, value: float) -> Record:
    return Record(
        seed=seed,
        metrics={"macro_f1": value},
        per_class={"recall": [value]},
        confusion_matrix=[[1]],
        history={"loss": [1.0], "score": [value]},
        validation=value,
        best_epoch=0,
        epochs=0,
        seconds=0.1,
    )


def test_mean_and_population_deviation():
    values = [60.0, 70.0, 74.0]
    mean, std = mean_and_deviation([record(seed, value) for seed, value in enumerate(values)])
    assert mean["macro_f1"] == pytest.approx(statistics.fmean(values))
    assert std["macro_f1"] == pytest.approx(statistics.pstdev(values))


def test_an_undefined_metric_stays_undefined():
    mean, std = mean_and_deviation([record(0, 50.0), record(1, math.nan)])
    assert math.isnan(mean["macro_f1"])
    assert math.isnan(std["macro_f1"])


def test_what_is_undefined_becomes_null(tmp_path):
    path = tmp_path / "deep" / "result.json"
    write_json({"a": math.nan, "b": [math.inf, 1.5], "c": (1,)}, path)
    assert json.loads(path.read_text()) == {"a": None, "b": [None, 1.5], "c": [1]}


def test_rows_as_csv_by_hand():
    rows = [{"a": 1.5, "b": 'say "x, y"'}, {"a": None, "b": "two\nlines"}]
    assert csv_text(rows) == 'a,b\n1.5,"say ""x, y"""\n,"two\nlines"\n'
    assert csv_text([{"a": 1}, {"b": 2}], ["a", "b"]) == "a,b\n1,\n,2\n"
    assert csv_text([]) == "\n"


def test_one_place_writes_csv():
    source = Path(evengraph.__file__).parent
    users = [path.name for path in source.rglob("*.py") if "DictWriter" in path.read_text("utf-8")]
    assert users == ["files.py"]


def test_a_failing_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "result.json"
    write_json({"a": 1}, path)

    def broken(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", broken)
    with pytest.raises(OSError, match="disk full"):
        write_json({"a": 2}, path)
    assert json.loads(path.read_text()) == {"a": 1}
    assert [item.name for item in tmp_path.iterdir()] == ["result.json"]


def test_lists_of_numbers_stay_on_one_line(tmp_path):
    path = tmp_path / "result.json"
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
