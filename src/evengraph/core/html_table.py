"""A small HTML table for notebooks; the pages of `report` have sections of their own."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from evengraph.core.text import printable

LONGEST = 30  # rows; the others are counted


def html_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table under a bold title, without a head if no column has a name; everything is escaped."""
    shown = [tuple(map(_text, row)) for row in rows[:LONGEST]]
    if more := len(rows) - len(shown):
        shown.append((f"… {more:,} more", *[""] * (len(heads) - 1)))
    head = "".join(f"<th>{_text(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in shown)
    top = f"<thead><tr>{head}</tr></thead>" if any(heads) else ""
    table = f"<table>{top}<tbody>{body}</tbody></table>"
    return f"<div><p><b>{_text(title)}</b></p>{table}</div>"


def _text(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return escape(printable(text), quote=True)
