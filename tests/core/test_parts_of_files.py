import math

import pytest

from evengraph.core.untrusted import average, items, lookup, number, part


@pytest.mark.parametrize("value", [None, math.nan, -math.inf, 1e101, 10**400, "1", True, [1], {}])
def test_no_number(value):
    assert number(value) is None


def test_numbers():
    assert number(3) == 3.0
    assert number(-0.5) == -0.5


@pytest.mark.parametrize("content", [None, [], "text", {}, {"key": None}, {"key": "text"}])
def test_missing_parts_are_empty(content):
    assert part(content, "key") == {}
    assert items(content, "key") == ()


def test_present_parts():
    content = {"key": {"a": 1, "list": [1, 2]}}
    assert part(content, "key") == content["key"]
    assert items(content, "key", "list") == [1, 2]
    assert lookup(content, "key", "list", 1) == 2


@pytest.mark.parametrize(
    "keys", [("none", 1), ("key", 0), ("key", "a", "b"), ("key", "list", 2), ("key", "list", -1)]
)
def test_absent_parts(keys):
    content = {"key": {"a": 1, "list": [1, 2]}}
    assert lookup(content, *keys) is None
    assert part(content, *keys) == {}
    assert items(content, *keys) == ()


def test_average_of_what_is_defined():
    assert average([1.0, None, 4.0]) == 2.5
    assert average([None]) is None
