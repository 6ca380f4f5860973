"""Readings by name."""

import pytest
from evengraph.methods.bases.readings import Readings, parse_readings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (False, False, "score")),
        ("mean-loss", (True, False, "score")),
        (" unit-rows ,mean-loss", (True, True, "score")),
        ("stop-on-loss", (False, False, "loss")),
        ("unit-rows, stop-on-accuracy", (False, True, "accuracy")),
    ],
)
def test_names(text, expected):
    assert parse_readings(text) == Readings(*expected)


@pytest.mark.parametrize("text", ["Mean-loss", "mean-loss,", "stop-on-loss, stop-on-accuracy"])
def test_what_is_no_reading(text):
    with pytest.raises(ValueError, match="at most one stop, got"):
        parse_readings(text)
