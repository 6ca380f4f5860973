"""evengraph methods: list the methods."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from evengraph.cli.console import out


def methods(
    name: Annotated[str | None, typer.Argument(help="Show one method whole.")] = None,
) -> None:
    """List the methods: idea, reference, cost, fields."""
    from dataclasses import asdict

    from evengraph.experiment.method_docs import describe_method, training_fields
    from evengraph.experiment.parsing import known_method
    from evengraph.methods import METHODS
    from evengraph.report.terminal.run import field_table, fields_line, method_card

    shared = training_fields()

    if name:
        words = describe_method(known_method(name))
        out.print(f"[bold]{words.name}[/]  {words.title}\n\n{escape(words.text)}\n", soft_wrap=True)
        out.print(field_table(words.fields, words.meanings))
        out.print(f"\nCost: {escape(words.cost)}\nReference: {escape(words.reference)}")
    else:
        for key in METHODS:
            words = describe_method(key)
            own = {n: v for n, v in words.fields.items() if n not in shared or shared[n] != v}
            out.print(method_card(asdict(words) | {"fields": own}))
            out.print()
        out.print(f"Of all methods, if nothing else is said: {fields_line(shared)}")
