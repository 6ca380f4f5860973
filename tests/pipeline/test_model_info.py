"""The record of a saved model, as stored and read."""

import pytest

from evengraph.metrics.calibration import Calibrator
from evengraph.pipeline.model_info import ModelInfo, Threshold, TrainedOn

STORED = {
    "calibrator": {"temperature": 2.0, "shift": [], "nodes": 40, "note": ""},
    "test": {"balanced_accuracy": 50.0, "auroc": None},
    "trained_on": {"data": "/shop", "columns": {"label": "kind", "drop": "a,b"}},
    "flag": {"class": 1, "from": 0.25},
    "columns": {
        "id": "account",
        "label": "kind",
        "split": None,
        "time": None,
        "source": "from",
        "target": "to",
        "weight": None,
        "features": ["amount"],
    },
    "encoder": {
        "version": 2,
        "columns": [],
        "structural": [],
        "plain": [["amount", 1.5]],
        "notes": [],
    },
}


def test_stored_keys_are_read_and_written_as_before():
    info = ModelInfo.from_dict(STORED)
    assert info.calibrator == Calibrator(temperature=2.0, nodes=40)
    assert info.threshold == Threshold(1, 0.25)
    assert info.trained_on == TrainedOn("/shop", {"label": "kind", "drop": "a,b"})
    assert info.columns.source == "from"
    assert info.encoder.input_columns == ("amount",)
    written = info.as_dict()
    for name, part in STORED.items():
        if name in ("columns", "encoder"):  # later versions add keys
            assert written[name].items() >= part.items()
        else:
            assert written[name] == part
    assert list(info.as_dict()) == list(STORED)


def test_a_model_without_a_record_has_an_empty_one():
    assert ModelInfo.from_dict({}) == ModelInfo()
    assert ModelInfo().as_dict() == {"test": {}}
    assert ModelInfo.from_dict({"columns": ["a", "b"]}) == ModelInfo()  # of somebody's own


@pytest.mark.parametrize(
    "changed", [{"flag": {"class": 1}}, {"trained_on": "/shop"}, {"columns": {"hue": "x"}}]
)
def test_what_is_not_ours_is_one_line(changed):
    with pytest.raises(ValueError, match="extra was not written by TableModel") as raised:
        ModelInfo.from_dict(STORED | changed)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("bad", [[[1]], [[1, 2], [3]], [1, 2], "text", [[1.5, 2], [3, 4]]])
def test_a_confusion_matrix_has_a_row_for_each_class(bad):
    good = [[3, 1], [0, 4]]
    extra = {"test": {}, "confusion": good, "counts": {"nodes": 9}, "calibration": {}}
    info = ModelInfo.from_dict(extra)
    info.check(3, 2)
    assert info.as_dict() == extra
    with pytest.raises(ValueError, match="confusion matrix"):
        ModelInfo.from_dict(extra | {"confusion": bad}).check(3, 2)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"flag": {"class": 1, "from": [0.5]}}, "the threshold must be a number"),
        ({"columns": STORED["columns"] | {"relations": [{"a": 1}]}}, "relations must hold names"),
        ({"flag": {"class": 1.5, "from": 0.5}}, "class 1.5 of the threshold does not exist"),
        ({"columns": STORED["columns"] | {"relations": ["a", "b"]}}, "relations need the column"),
        ({"columns": STORED["columns"] | {"relations": [1, 2]}}, "relations must be distinct"),
        ({"columns": STORED["columns"] | {"relations": ["a", "a"]}}, "must be distinct names"),
        ({"columns": STORED["columns"] | {"features": "amount"}}, "features must be a list"),
    ],
)
def test_parts_of_another_kind_are_refused(changed, told):
    with pytest.raises(ValueError, match=told):
        ModelInfo.from_dict(STORED | changed).check(1, 2)
