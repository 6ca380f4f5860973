"""ArgumentError: the message, and the argument that fixes it."""

from evengraph.core.errors import ArgumentError


def test_an_argument_error_says_what_to_set():
    error = ArgumentError("minority is too large.", argument="imbalance", value="natural")
    assert isinstance(error, ValueError)
    assert (str(error), error.argument, error.value) == (
        "minority is too large.",
        "imbalance",
        "natural",
    )
