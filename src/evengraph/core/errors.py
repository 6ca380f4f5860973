"""ArgumentError: an input error that another value of one argument fixes."""

from __future__ import annotations


class ArgumentError(ValueError):
    """An input error that another value of one argument fixes.

    Args:
        message: What is wrong.
        argument: The keyword argument to set. The command line names its option instead.
        value: A value that works, where there is only one.
    """

    def __init__(self, message: str, *, argument: str, value: str = "") -> None:
        super().__init__(message)
        self.argument = argument
        self.value = value
