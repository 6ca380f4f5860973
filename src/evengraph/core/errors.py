"""Errors of input that another value fixes, and which value it could be."""

import difflib
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from evengraph.core.text import one_line

SHOWN = 80  # how many characters of a value of a user a message shows
LISTED = 1000  # how many characters of a list of names a message shows


class ArgumentError(ValueError):
    """An input error that another value of one argument fixes, where there is only one `value`.

    The command line names its option instead of the argument.
    """

    def __init__(self, message: str, *, argument: str, value: str = "") -> None:
        super().__init__(message)
        self.argument, self.value = argument, value


class UnknownNameError(KeyError):
    """A name that a table does not have; the message is not quoted as that of a KeyError is."""

    def __str__(self) -> str:
        return str(self.args[0])


def unknown(
    what: str, name: str, allowed: Iterable[str], other_names: Mapping[str, str] | None = None
) -> str:
    """Error message for a name that does not exist: the closest match, and all names.

    `other_names` are names that others use, and ours for the same.
    """
    allowed, other_names = list(allowed), other_names or {}
    start = name[:100]  # comparing takes long for a long text
    key = start.lower().translate({ord(sign): None for sign in "-_ "})
    close = difflib.get_close_matches(key, [*allowed, *other_names], n=1)
    close = close or difflib.get_close_matches(start, allowed, n=1)
    hint = f" Did you mean {other_names.get(close[0], close[0])}?" if close else ""
    return f"Unknown {what} {short(name)}.{hint} Allowed: {', '.join(allowed)}."


class MissingPackageError(ValueError):
    """An optional package is not installed; the message says what to install."""


@contextmanager
def one_line_errors() -> Iterator[None]:
    """A block or function whose errors are of one line, whatever names in their messages hold."""
    try:
        yield
    except (ValueError, LookupError, OSError) as error:
        error.args = tuple(one_line(arg) if isinstance(arg, str) else arg for arg in error.args)
        raise


def first_line(error: BaseException) -> str:
    """The first line of an error message, without its full stop; the type if there is none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:150].rstrip(".")


def listed(names: Iterable[object]) -> str:
    """Names in a message, after commas, cut where they are many; `none` if there are none."""
    text = ", ".join(map(str, names)) or "none"
    return text if len(text) <= LISTED else f"{text[: LISTED - 3]}..."


def short(value: object) -> str:
    """A value in a message: its repr, on one line, cut where it is long."""
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        text = f"a number of more than {sys.get_int_max_str_digits()} digits"
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
