import pytest

from evengraph.methods import UniGNN
from evengraph.pipeline.parameters import known_method, parse_fields, parse_seeds


def test_a_method_is_known_by_its_name_and_its_title():
    assert known_method("graphens") == known_method("GraphENS") == "graphens"
    assert known_method("Uni-GNN") == "unignn"
    with pytest.raises(ValueError, match="Did you mean lte4g"):
        known_method("lte4")


def test_seeds():
    assert parse_seeds("5,6,7") == [5, 6, 7]
    assert parse_seeds("5-8, 2") == [5, 6, 7, 8, 2]
    assert parse_seeds("5,5") == [5]
    for text in ("", "a", "7-5", "5,", "-1", "1.5"):
        with pytest.raises(ValueError, match="seeds"):
            parse_seeds(text)


def test_values_get_the_declared_types():
    words = ["alpha=3", "threshold = 0.7", "class_weights=no", "encoders=semantic"]
    assert parse_fields(UniGNN, words) == {
        "alpha": 3,
        "threshold": 0.7,
        "class_weights": False,
        "encoders": "semantic",
    }
    assert parse_fields(UniGNN, ["alpha=auto"]) == {"alpha": "auto"}
    with pytest.raises(ValueError, match="alpha must be a whole number or auto, got 'two'"):
        parse_fields(UniGNN, ["alpha=two"])


@pytest.mark.parametrize(
    "word", ["alpha=2.5", "threshold=x", "class_weights=2", "encoders=", "x=1"]
)
def test_other_values_are_refused(word):
    with pytest.raises(ValueError, match=word.partition("=")[0]):
        parse_fields(UniGNN, [word])
