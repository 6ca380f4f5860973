import pytest
from compared import compared

from evengraph.report import compare_page as reader


def test_the_interval_belongs_to_the_strength():
    (pair,) = compared(80.0, 70.0, strength="here")["pairs"]
    assert reader.pair_interval(pair) == (pair["low"], pair["high"])
    pair["strength"] = "clear"
    assert reader.pair_interval(pair) == (pair["wide_low"], pair["wide_high"])
    pair["wide_low"] = None
    assert reader.pair_interval(pair) is None


@pytest.mark.parametrize(
    ("splits", "conclusive", "word"),
    [(2, False, "too few splits"), (4, True, "significant"), (4, False, "cannot tell")],
)
def test_the_verdict_of_a_pair(splits, conclusive, word):
    content = compared(80.0, 70.0, splits=splits, conclusive=conclusive)
    assert reader.pair_verdict(content, content["pairs"][0]) == word


@pytest.mark.parametrize(("splits", "word"), [(4, "too few splits"), (5, "not significant")])
def test_few_splits_that_find_nothing_do_not_say_that_there_is_nothing(splits, word):
    content = compared(80.0, 70.0, splits=splits, strength="noise")
    assert reader.pair_verdict(content, content["pairs"][0]) == word


def test_recall_and_training_nodes():
    content = compared(80.0)
    (method,) = content["methods"]
    values = reader.split_values(method, "balanced_accuracy")
    assert list(values) == [0, 1, 2, 3, 4]
    assert reader.recalls(method, 0) == pytest.approx(sum(values.values()) / 5 + 10)
    assert reader.recalls(method, 9) is None
    assert reader.training_counts(content) == [20, 20, 2]
    method["runs"][0]["train_counts"] = None
    assert reader.training_counts(content) == [50, 40, 5]


def test_the_best_has_no_pair():
    content = compared(80.0, 70.0, 60.0)
    assert reader.behind_best(content, "m0") is None
    assert reader.behind_best(content, "m2")["behind"] == "m2"
