"""evengraph methods: list the methods."""

from __future__ import annotations

from typing import Annotated

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
    from dataclasses import asdict

    from evengraph.methods import METHODS
    from evengraph.pipeline.method_docs import describe_method, training_fields
    from evengraph.pipeline.parsing import known_method
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
            out.print(method_card(asdict(description) | {"fields": special}))
            out.print()
        out.print(f"Defaults of all methods, unless listed above: {parameter_line(shared)}")
