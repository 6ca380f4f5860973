"""Methods in words, read from their docstrings: what `evengraph methods` shows."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from inspect import cleandoc

from evengraph.methods import METHODS
from evengraph.methods.base import Method

SECTION = re.compile(r"^(Args|Shapes|Cost|Departs|Reference):$", flags=re.MULTILINE)


@dataclass(frozen=True)
class Description:
    """A method for people.

    Args:
        name: What to write after --method.
        title: The name in the literature.
        idea: One line.
        cost: Time in nodes, edges and width.
        reference: Where it comes from.
        fields: Its own settings with their defaults.
        text: The whole docstring.
    """

    name: str
    title: str
    idea: str
    cost: str
    reference: str
    fields: dict[str, object]
    text: str


def describe_method(name: str) -> Description:
    """Take a method's docstring apart."""
    cls = METHODS[name]
    text = cleandoc(cls.__doc__ or "")
    parts = SECTION.split(text)  # text before, then title and body of each section
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    shared = set(training_fields())
    return Description(
        name=name,
        title=cls.title,
        idea=text.partition("\n")[0],
        cost=_joined(sections["Cost"]),
        reference=_joined(sections["Reference"]),
        fields={item.name: item.default for item in fields(cls) if item.name not in shared},
        text=text,
    )


def training_fields() -> dict[str, object]:
    """The settings that all methods share, with their defaults."""
    return {item.name: item.default for item in fields(Method)}


def _joined(text: str) -> str:
    return " ".join(text.split())
