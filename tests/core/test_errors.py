"""Errors of input: the message, the argument that fixes it, the name that was meant."""

import pytest

from evengraph.core.errors import (
    ArgumentError,
    UnknownNameError,
    first_line,
    listed,
    short,
    unknown,
)


def test_an_argument_error_says_what_to_set():
    error = ArgumentError("minority is too large.", argument="imbalance", value="natural")
    assert isinstance(error, ValueError)
    assert (str(error), error.argument, error.value) == (
        "minority is too large.",
        "imbalance",
        "natural",
    )


def test_the_nearest_name_is_offered():
    assert "Did you mean beta?" in unknown("letter", "bta", ["alpha", "beta"])
    assert "Did you mean" not in unknown("letter", "qqq", ["alpha", "beta"])


@pytest.mark.parametrize("name", ["trees", "Tree", "xg-boost", "XGBOOST", "boosting"])
def test_names_that_others_use_lead_to_ours(name):
    others = {"trees": "boosting", "xgboost": "boosting"}
    assert "Did you mean boosting?" in unknown("method", name, ["gcn", "boosting"], others)


def test_an_unknown_name_is_a_key_error_that_can_be_read():
    error = UnknownNameError("Unknown letter 'x'.")
    assert isinstance(error, KeyError)
    assert str(error) == "Unknown letter 'x'."


def test_values_in_messages_are_short_and_on_one_line():
    assert short("a\nb") == "'a\\nb'"
    assert short("x" * 500) == "'" + "x" * 76 + "..."
    assert short(10**5000) == "a number of more than 4300 digits"
    assert len(unknown("key", "x" * 10**6, ["title"])) < 200


def test_the_first_line_of_an_error():
    assert first_line(ValueError("one.\ntwo")) == "one"
    assert first_line(EOFError()) == "EOFError"


def test_many_names_are_cut():
    assert listed(["a", 2]) == "a, 2"
    assert listed([]) == "none"
    assert len(listed(range(100_000))) == 1000
