"""evengraph methods: list the methods, or show one as its docstring describes it."""

from __future__ import annotations

import re
from dataclasses import fields
from inspect import cleandoc
from typing import Annotated

import typer
from rich.markup import escape

from evengraph.cli.console import out

SECTION = re.compile(r"^(Args|Shapes|Cost|Departs|Reference):$", flags=re.MULTILINE)


def methods(
    name: Annotated[str | None, typer.Argument(help="Show this method in full.")] = None,
) -> None:
    """List the methods, or show one: idea, parameters, cost, what departs from its paper."""
    from evengraph.methods import METHODS, Method
    from evengraph.pipeline.parameters import known_method

    if not name:
        for key, kind in METHODS.items():
            idea = escape(_sections(kind)[""].partition("\n")[0])
            cut = out.is_terminal
            line = f"{key:<17} {idea}"
            out.print(line, no_wrap=cut, overflow="ellipsis" if cut else None, soft_wrap=not cut)
        out.print("evengraph methods NAME shows one in full.")
        return
    kind = METHODS[known_method(name)]
    method, edges = kind(), "not used"
    if method.uses_graph:
        edges = "with their weights" if method.uses_edge_weights else "without weights"
        edges += ", each relation apart" if method.separate_relations else ""
    bases = [base for base in kind.__mro__[1:] if issubclass(base, Method)]
    inherited = (_sections(base).get("Args", "").strip("\n") for base in bases)
    parts = [cleandoc(kind.__doc__ or ""), "Args of all such methods:", *inherited]
    defaults = ", ".join(f"{item.name}={item.default}" for item in fields(kind))
    out.print(f"[bold]{known_method(name)}[/]  {kind.title}\n")
    out.print(escape("\n".join(filter(None, parts))), soft_wrap=True)
    out.print(f"\nEdges: {edges}\nDefaults: {escape(defaults)}")


def _sections(cls: type) -> dict[str, str]:
    """The sections of a docstring by title; the text before them has the key ''."""
    parts = SECTION.split(cleandoc(cls.__doc__ or ""))
    return {"": parts[0]} | dict(zip(parts[1::2], parts[2::2], strict=True))
