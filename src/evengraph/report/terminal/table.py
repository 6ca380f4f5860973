"""The look of tables in the terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rich.table import Table


def plain_table(
    names: Iterable[str], values: Iterable[str] = (), *, dim: Collection[str] = (), gap: int = 2
) -> Table:
    """Start a table without rules: columns of names wrap where room is short, values never do.

    `dim` are the values in a weaker colour, `gap` is the number of spaces between columns.
    """
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    for name in values:
        style = "dim" if name in dim else None
        table.add_column(name, justify="right", style=style, no_wrap=True)
    return table
