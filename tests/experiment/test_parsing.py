import pytest

from evengraph.experiment.parsing import known_method, parse_seeds


def test_a_method_is_known_by_its_name_and_its_title():
    assert known_method("graphens") == known_method("GraphENS") == "graphens"
    assert known_method("Uni-GNN") == "unignn"
    with pytest.raises(ValueError, match="did you mean lte4g"):
        known_method("lte4")


def test_seeds():
    assert parse_seeds("5,6,7") == [5, 6, 7]
    assert parse_seeds("5-8, 2") == [5, 6, 7, 8, 2]
    assert parse_seeds("5,5") == [5]
    for text in ("", "a", "7-5", "5,", "-1", "1.5"):
        with pytest.raises(ValueError, match="seeds"):
            parse_seeds(text)
