import math

import pytest

from evengraph.core.untrusted import average, items, lookup, number, part


@pytest.mark.parametrize("value", [None, math.nan, -math.inf, 1e101, 10**400, "1", True, [1], {}])
def test_no_number(value):
    assert number(value) is None


@pytest.mark.parametrize("content", [None, [], "text", {}, {"key": None}, {"key": "text"}])
def test_missing_parts_are_empty(content):
    assert part(content, "key") == {}
    assert items(content, "key") == ()


@pytest.mark.parametrize(
    "keys", [("none", 1), ("key", 0), ("key", "a", "b"), ("key", "list", 2), ("key", "list", -1)]
)
def test_absent_parts(keys):
    content = {"key": {"a": 1, "list": [1, 2]}}
    assert lookup(content, *keys) is None
    assert part(content, *keys) == {}
    assert items(content, *keys) == ()
    assert part(content, "key") == content["key"]
    assert items(content, "key", "list") == [1, 2]
    assert lookup(content, "key", "list", 1) == 2


def test_numbers_and_the_average_of_what_is_defined():
    assert (number(3), number(-0.5)) == (3.0, -0.5)
    assert average([1.0, None, 4.0]) == 2.5
    assert average([None]) is None
