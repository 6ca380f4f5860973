"""What the checks of a release share with the tests."""

from conftest import real_graph  # noqa: F401
