"""Schemas: what is read from JSON becomes dataclasses and named tuples, checked by pydantic."""

import json
import re
from collections.abc import Hashable, Sequence
from functools import cache
from typing import Annotated, Any, TypeVar, cast

from annotated_types import Interval

from evengraph.core.errors import short

LONGEST_TEXT = 10_000  # characters of a name or a sentence
LARGEST_INTEGER = 2**63
MOST_ENTRIES = 100_000  # of an object
DEEPEST = 50  # lists and objects in one another
SHOWN = 60  # characters of a key in a message
LONGEST_REASON = 200
TOLD = {
    "missing": "is missing",
    "unexpected_keyword_argument": "is unknown",
    "extra_forbidden": "is unknown",
}

_HALF = re.compile("[\ud800-\udfff]")  # what JSON can escape, and no file or terminal holds

Count = Annotated[int, Interval(ge=0, lt=2**53)]
Size = Annotated[float, Interval(ge=0)]
Share = Annotated[float, Interval(ge=0, le=1.001)]
Percent = Annotated[float, Interval(ge=0, le=100.1)]  # sums of single precision may pass a limit

T = TypeVar("T")
Path = tuple[str | int, ...]


class SchemaError(ValueError):
    """A value that does not fit its schema, and the path to it."""

    def __init__(self, reason: str, *path: str | int) -> None:
        where = "".join(
            f"[{key}]" if isinstance(key, int) else f".{key[:SHOWN]}" for key in path
        ).removeprefix(".")
        super().__init__(f"{where} {reason}" if where else reason)
        self.reason, self.path = reason, path


def read(kind: type[T], content: object, *path: str | int) -> T:
    """An object of a type of our own from JSON; SchemaError with the path of what does not fit.

    Types are strict: no text becomes a number, no number a truth value. Numbers are finite.
    """
    from pydantic import ValidationError

    try:
        check_size(content)
        result: T = _validator(cast(Hashable, kind)).validate_json(json.dumps([content]))[0]
        return result
    except SchemaError as error:
        raise SchemaError(error.reason, *path, *error.path) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    where: Path = (*path, *first["loc"][1:])
    raised = first.get("ctx", {}).get("error")  # of a check of our own
    if isinstance(raised, SchemaError):
        raise SchemaError(raised.reason, *where, *raised.path)
    if raised is not None:
        raise SchemaError(f"does not fit: {raised}" if where else str(raised), *where)
    if first["type"] in TOLD:
        raise SchemaError(TOLD[first["type"]], *where)
    reason = first["msg"][:LONGEST_REASON].removeprefix("Input should ")
    raise SchemaError(f"must {reason}, got {short(first['input'])}", *where)


@cache
def _validator(kind: Any) -> Any:
    from pydantic import ConfigDict, TypeAdapter
    from pydantic_core import SchemaValidator

    config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
    # a dataclass alone takes no configuration
    schema = _until_first(TypeAdapter(tuple[kind], config=config).core_schema)
    return SchemaValidator(
        schema, {"strict": True, "extra_fields_behavior": "forbid", "allow_inf_nan": False}
    )


def _until_first(schema: Any) -> Any:
    """The same that ends a list at its first mistake: a million of them would fill the memory."""
    if type(schema) in (list, tuple):  # a default may be a named tuple
        return type(schema)(map(_until_first, schema))
    if not isinstance(schema, dict):
        return schema
    first = {"fail_fast": True} if schema.get("type") in ("list", "tuple", "dict") else {}
    return {key: _until_first(part) for key, part in schema.items()} | first


def check_size(content: object, path: Sequence[str | int] = ()) -> None:
    """Raise SchemaError for text or numbers that are too long, and for deep nesting."""
    if len(path) > DEEPEST:
        raise SchemaError("is nested too deeply", *path[:3])
    if isinstance(content, str) and len(content) > LONGEST_TEXT:
        raise SchemaError(f"must have at most {LONGEST_TEXT:,} characters", *path)
    if isinstance(content, str) and _HALF.search(content):
        raise SchemaError("holds halves of surrogate pairs", *path)
    if type(content) is int and abs(content) >= LARGEST_INTEGER:
        raise SchemaError(f"must be below 2^63, got {short(content)}", *path)
    if isinstance(content, dict):
        if len(content) > MOST_ENTRIES:
            raise SchemaError(f"must have at most {MOST_ENTRIES:,} entries", *path)
        for key, value in content.items():
            check_size(key, path)
            check_size(value, (*path, key))
    elif isinstance(content, list | tuple):
        for index, value in enumerate(content):
            if type(value) is not float:
                check_size(value, (*path, index))
