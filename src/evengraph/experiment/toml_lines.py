"""The line of a key in a TOML file, which tomllib does not tell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple


def line_of(lines: Sequence[str], path: tuple[Any, ...]) -> int:
    """The line number of a key; otherwise that of its table, or 1."""
    table, index, keys = "", 0, path
    if path and path[0] in ("setup", "method") and len(path) > 1:
        table, index, keys = path[0], path[1], path[2:]
    elif len(path) > 1:
        table, keys = path[0], path[1:]
    code = _code(lines)
    if not table and keys:  # a table is a key of the file, too
        opened = [line for line in code if line.table == keys[0] and not line.subtable]
        code = [line for line in code if not line.table] or opened
        code += opened
    code = [line for line in code if line.table != table or line.table_index == index]
    code = [line for line in code if not table or line.table == table]
    for names in (keys, keys[:1]):  # the key, or the subtable that holds it
        for line in code:
            if names and line.holds(*names):
                return line.number
    return code[0].number if code and table else 1


def _code(lines: Sequence[str]) -> list[_Line]:
    """Every line with the table that it belongs to, without comments and quoted values."""
    parsed, counts = [], dict[str, int]()
    table, subtable = "", ""
    for number, text in enumerate(lines, start=1):
        code = re.sub(r"(\"[^\"]*\"|'[^']*')(?!\s*[=.\]])", "_", text).partition("#")[0]
        code = code.replace('"', "").replace("'", "")
        if head := re.match(r"\s*(\[\[?)\s*([\w.-]+)\s*\]", code):
            table, _, subtable = head[2].partition(".")
            if head[1] == "[[" and not subtable:
                counts[table] = counts.get(table, -1) + 1
        parsed.append(_Line(number, table, counts.get(table, 0), subtable, code))
    return parsed


class _Line(NamedTuple):
    """A line of a file: its number, table, index of the table, subtable and code."""

    number: int
    table: str
    table_index: int
    subtable: str
    code: str

    def holds(self, name: str, inner: str = "") -> bool:
        """Whether it sets a key, or a key of a subtable."""
        if not inner:
            head = re.match(r"\s*\[", self.code) is not None
            opened = head and name in (self.subtable, self.table if not self.subtable else "")
            return opened or (not self.subtable and bool(self._gives(rf"^\s*{name}\s*[=.]")))
        dotted = rf"^\s*{name}\s*\.\s*{inner}\s*="
        inline = rf"^\s*{name}\s*=.*[{{,]\s*{inner}\s*="
        if self.subtable == name:
            return bool(self._gives(rf"^\s*{inner}\s*="))
        return not self.subtable and bool(self._gives(dotted) or self._gives(inline))

    def _gives(self, pattern: str) -> re.Match[str] | None:
        return re.search(pattern, self.code)
