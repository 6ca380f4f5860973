"""evengraph methods: list the methods, read from their docstrings."""

from __future__ import annotations

import re
from dataclasses import fields
from inspect import cleandoc
from typing import Annotated, Any

import typer
from rich.markup import escape

from evengraph.cli.console import out
from evengraph.cli.options import complete_method


def methods(
    name: Annotated[
        str | None, typer.Argument(help="Show this method in full.", autocompletion=complete_method)
    ] = None,
) -> None:
    """List the methods: idea, reference, cost, parameters."""
    from evengraph.methods import METHODS, Method
    from evengraph.pipeline.parameters import known_method
    from evengraph.report.terminal import method_card, parameter_line

    shared = {item.name: item.default for item in fields(Method)}
    if name:
        kind = METHODS[known_method(name)]
        about = describe_method(known_method(name))
        bases = [base for base in kind.__mro__[1:] if issubclass(base, Method)]
        inherited = (_sections(base).get("Args", "").strip("\n") for base in bases)
        parts = [cleandoc(kind.__doc__ or ""), "Args of all such methods:", *inherited]
        out.print(f"[bold]{about['name']}[/]  {about['title']}\n")
        out.print(escape("\n".join(filter(None, parts))), soft_wrap=True)
        out.print(f"\nEdges: {about['edges']}\nDefaults: {escape(parameter_line(about['fields']))}")
        return
    for key in METHODS:
        about = describe_method(key)
        own = {k: v for k, v in about["fields"].items() if k not in shared or shared[k] != v}
        out.print(method_card(about | {"fields": own}))
        out.print()
    out.print(f"Defaults of all methods, unless listed above: {parameter_line(shared)}")


SECTION = re.compile(r"^(Args|Shapes|Cost|Departs|Reference):$", flags=re.MULTILINE)


def describe_method(name: str) -> dict[str, Any]:
    """Title, idea, cost and reference of a method, its use of edges, and defaults by parameter."""
    from evengraph.methods import METHODS

    cls = METHODS[name]
    sections, method, edges = _sections(cls), cls(), "not used"
    if method.uses_graph:
        edges = "with their weights" if method.uses_edge_weights else "without weights"
        edges += ", each relation apart" if method.separate_relations else ""
    return {
        "name": name,
        "title": cls.title,
        "idea": sections[""].partition("\n")[0],
        "cost": " ".join(sections.get("Cost", "").split()),
        "edges": edges,
        "reference": " ".join(sections.get("Reference", "").split()),
        "fields": {item.name: item.default for item in fields(cls)},
    }


def _sections(cls: type) -> dict[str, str]:
    """The sections of a docstring by title; the text before them has the key ''."""
    parts = SECTION.split(cleandoc(cls.__doc__ or ""))
    return {"": parts[0]} | dict(zip(parts[1::2], parts[2::2], strict=True))
