"""The look of tables in the terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rich.table import Table


def plain_table(
    names: Iterable[str], values: Iterable[str] = (), *, dim: Collection[str] = (), gap: int = 2
) -> Table:
    """Start a table without rules that fits the terminal.

    Args:
        names: Columns of text, which wrap where room is short.
        values: Columns of numbers, which never do.
        dim: Columns of numbers in a weaker colour.
        gap: Spaces between columns.
    """
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    for name in values:
        style = "dim" if name in dim else None
        table.add_column(name, justify="right", style=style, no_wrap=True)
    return table
