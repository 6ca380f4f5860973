"""Fixtures of pages."""

from collections.abc import Callable
from typing import Any

import pytest
from samples import CORA, make_result

from page_tree import Node, parse_page


@pytest.fixture
def result() -> dict[str, Any]:
    """Cora in seven classes and three seeds."""
    return make_result(list(CORA))


@pytest.fixture
def parse() -> Callable[[str], Node]:
    """Parse a page into nodes."""
    return parse_page
