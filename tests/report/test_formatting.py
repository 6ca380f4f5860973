import math

import pytest

from evengraph.report.markup import (
    decimals,
    integer,
    metric_value,
    percentage,
    plural,
    plus_minus,
    signed,
)


@pytest.mark.parametrize("value", [None, math.nan, math.inf, "7", True, [], 10**400])
def test_undefined_values_show_as_a_dash(value):
    assert decimals(value) == integer(value) == percentage(value) == plus_minus(value, 1.0) == "–"


def test_numbers():
    assert decimals(-0.04) == "0.0"
    assert decimals(-2.345, 2) == "−2.35"
    assert signed(0.04) == "0.0"
    assert signed(1.26) == "+1.3"
    assert signed(-1.26) == "−1.3"
    assert integer(12345.6) == "12,346"
    assert percentage(0.125, 1) == "12.5%"
    assert plus_minus(70.0, 1.25) == "70.0 ± 1.2"
    assert plus_minus(70.0, None) == "70.0"


def test_plural():
    assert plural(1, "class", "classes") == "1 class"
    assert plural(1200, "class", "classes") == "1,200 classes"
    assert plural(0, "seed") == "0 seeds"


def test_a_threshold_is_a_probability():
    assert metric_value("tuned_threshold", 98.92) == "0.989"
    assert metric_value("tuned_threshold", 50.0, 1.25) == "0.500 ± 0.013"
    assert metric_value("macro_f1", 50.0, 1.25) == "50.0 ± 1.2"
    assert metric_value("tuned_threshold", None) == "–"
