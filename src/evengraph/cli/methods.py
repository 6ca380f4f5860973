"""evengraph methods: list the methods, read from their docstrings."""

from __future__ import annotations

import re
from dataclasses import fields
from inspect import cleandoc
from typing import Annotated, NamedTuple

import typer
from rich.markup import escape

from evengraph.cli.console import out, print_sentence
from evengraph.cli.options import complete_method


def methods(
    name: Annotated[
        str | None, typer.Argument(help="Show this method in full.", autocompletion=complete_method)
    ] = None,
) -> None:
    """List the methods: idea, reference, cost, parameters."""
    from evengraph.methods import METHODS
    from evengraph.pipeline.parameters import known_method
    from evengraph.report.terminal import method_card, parameter_line, parameter_table

    shared = training_fields()
    if name:
        description = describe_method(known_method(name))
        out.print(f"[bold]{description.name}[/]  {description.title}\n")
        print_sentence(f"{escape(description.text)}\n")
        out.print(parameter_table(description.fields, description.meanings))
        out.print(f"\nCost: {escape(description.cost)}\nEdges: {description.edges}")
        out.print(f"Reference: {escape(description.reference)}")
    else:
        for key in METHODS:
            description = describe_method(key)
            special = {
                parameter: value
                for parameter, value in description.fields.items()
                if parameter not in shared or shared[parameter] != value
            }
            out.print(method_card(description._asdict() | {"fields": special}))
            out.print()
        out.print(f"Defaults of all methods, unless listed above: {parameter_line(shared)}")


SECTION = re.compile(r"^(Args|Shapes|Cost|Departs|Reference):$", flags=re.MULTILINE)


class Description(NamedTuple):
    """The content of a method's docstring; `meanings` describe its parameters, `fields`."""

    name: str
    title: str
    idea: str
    cost: str
    edges: str
    reference: str
    fields: dict[str, object]
    meanings: dict[str, str]
    text: str


def describe_method(name: str) -> Description:
    """Read the docstring of a method."""
    from evengraph.methods import METHODS, Method

    cls = METHODS[name]
    sections = _sections(cls)
    meanings: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if issubclass(base, Method):
            parts = _sections(base)  # parameters that a base only describes precede its Args
            meanings |= _meanings(parts[""]) | _meanings(parts.get("Args", ""))
    defaults = {item.name: item.default for item in fields(cls)}
    shared = {name: defaults[name] for name in training_fields()}
    own = {name: default for name, default in defaults.items() if name not in shared}
    departs = [f"Departs:{sections['Departs']}".rstrip()] if "Departs" in sections else []
    method, edges = cls(), "not used"
    if method.uses_graph:
        edges = "with their weights" if method.uses_edge_weights else "without weights"
        edges += ", each relation apart" if method.separate_relations else ""
    return Description(
        name=name,
        title=cls.title,
        idea=sections[""].partition("\n")[0],
        cost=_joined(sections.get("Cost", "")),
        edges=edges,
        reference=_joined(sections.get("Reference", "")),
        fields=own | shared,
        meanings={name: meanings[name] for name in own | shared if name in meanings},
        text="\n\n".join(map(_paragraphs, [sections[""].strip(), *departs])),
    )


def _sections(cls: type) -> dict[str, str]:
    """The sections of a docstring by title; the text before them has the key ''."""
    parts = SECTION.split(cleandoc(cls.__doc__ or ""))
    return {"": parts[0]} | dict(zip(parts[1::2], parts[2::2], strict=True))


def _meanings(text: str) -> dict[str, str]:
    """The description of each parameter in an Args section."""
    pairs = re.findall(r"^    (\w+): (.*(?:\n        .*)*)", text, flags=re.MULTILINE)
    return {name: _joined(meaning) for name, meaning in pairs}


def training_fields() -> dict[str, object]:
    """The parameters that all methods share, with their defaults."""
    from evengraph.methods import Method

    return {item.name: item.default for item in fields(Method)}


def _paragraphs(text: str) -> str:
    """Join the lines of each paragraph and of each item of a list."""
    ends = re.split(r"(\n\s*\n|\n(?=\s*(?:\d+\.|-) ))", text)
    return "".join(_joined(end) or "\n" * min(end.count("\n"), 2) for end in ends)


def _joined(text: str) -> str:
    return " ".join(text.split())
