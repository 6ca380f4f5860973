import pytest
import torch

from evengraph.experiment.parsing import (
    parse_methods,
    parse_seconds,
    parse_seeds,
    pick_device,
    plan_run,
    settings_of_each,
)
from evengraph.methods import METHODS


def plan(**changes):
    words = {
        "method": "unignn",
        "method_settings": [],
        "imbalance": "step",
        "imbalance_fields": {},
        "seeds": [5],
        "preset": True,
    }
    return plan_run("cora", **{**words, **changes})


def test_seeds():
    assert parse_seeds("5,6,7") == [5, 6, 7]
    assert parse_seeds("5-8, 2") == [5, 6, 7, 8, 2]
    assert parse_seeds("5,5") == [5]
    for text in ("", "a", "7-5", "5,", "-1", "1.5"):
        with pytest.raises(ValueError, match="seeds"):
            parse_seeds(text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("1.5s", 1.5), ("10m", 600), (" 2 h ", 7200)]
)
def test_times(text, seconds):
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-5", "soon", "5d", "m", "1e3", "inf"])
def test_times_that_cannot_be_read(text):
    with pytest.raises(ValueError, match="90, 10m or 2h"):
        parse_seconds(text)


def test_a_preset_applies_by_itself_and_settings_go_over_it():
    run, picked = plan()
    assert picked
    assert run.method_fields == picked
    changed, _ = plan(method_settings=["alpha=3"])
    assert changed.method_fields == {**picked, "alpha": 3}
    plain, nothing = plan(preset=False)
    assert nothing is None
    assert plain.method_fields == {}


def test_devices():
    assert pick_device("cpu") == torch.device("cpu")
    assert pick_device("auto").type in ("cpu", "cuda")
    for name in ("gpu", "mps", "cuda:99"):
        with pytest.raises(ValueError, match="cuda"):
            pick_device(name)


def test_methods():
    assert parse_methods("gcn") == ["gcn"]
    assert parse_methods("lte4g, gcn,lte4g") == ["lte4g", "gcn"]
    assert parse_methods("all") == list(METHODS)
    with pytest.raises(ValueError, match="did you mean lte4g"):
        parse_methods("gcn,lte4")


def test_settings_go_to_the_methods_that_have_them():
    each = settings_of_each(["gcn", "reweight"], ["scale=2", "hidden=8"])
    assert each == {"gcn": ["hidden=8"], "reweight": ["scale=2", "hidden=8"]}
    with pytest.raises(ValueError, match="alpha"):
        settings_of_each(["gcn", "reweight"], ["alpha=2"])


def test_a_setting_may_be_for_one_method():
    each = settings_of_each(["gcn", "iceberg"], ["IceBerg.learning_rate=0.1", "hidden=8"])
    assert each == {"gcn": ["hidden=8"], "iceberg": ["hidden=8", "learning_rate=0.1"]}
    both = ["iceberg.hidden=4", "hidden=8"]  # what is said of one holds, in any order
    assert settings_of_each(["gcn", "iceberg"], both)["iceberg"][-1] == "hidden=4"
    assert settings_of_each(["gcn"], [" gcn.hidden = 8"]) == {"gcn": ["hidden = 8"]}
    for wrong in ("smote.hidden=8", "nonsense.hidden=8"):
        with pytest.raises(ValueError, match="method"):
            settings_of_each(["gcn", "iceberg"], [wrong])
