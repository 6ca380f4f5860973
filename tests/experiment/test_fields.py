import pytest

from evengraph.experiment.fields import parse_fields, unknown
from evengraph.methods import UniGNN


def test_values_get_the_declared_types():
    words = ["alpha=3", "threshold = 0.7", "class_weights=no", "encoders=semantic"]
    assert parse_fields(UniGNN, words) == {
        "alpha": 3,
        "threshold": 0.7,
        "class_weights": False,
        "encoders": "semantic",
    }


@pytest.mark.parametrize(
    "word", ["alpha=2.5", "threshold=x", "class_weights=2", "encoders=", "x=1"]
)
def test_other_values_are_refused(word):
    with pytest.raises(ValueError, match=word.partition("=")[0]):
        parse_fields(UniGNN, [word])


def test_the_nearest_name_is_offered():
    assert "did you mean beta?" in unknown("letter", "bta", ["alpha", "beta"])
    assert "did you mean" not in unknown("letter", "qqq", ["alpha", "beta"])
