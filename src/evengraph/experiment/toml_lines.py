"""Where in a TOML file a key stands: tomllib reads values and forgets their lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple


def line_of(lines: Sequence[str], where: tuple[Any, ...]) -> int:
    """The line of a key; of its table, or the first, where it has none of its own."""
    table, place, keys = "", 0, where
    if where and where[0] in ("setup", "method") and len(where) > 1:
        table, place, keys = where[0], where[1], where[2:]
    elif len(where) > 1:
        table, keys = where[0], where[1:]
    code = _code(lines)
    if not table and keys:  # a table of its own is a key of the file, too
        opened = [line for line in code if line.table == keys[0] and not line.within]
        code = [line for line in code if not line.table] or opened
        code += opened
    own = [line for line in code if line.table != table or line.place == place]
    own = [line for line in own if not table or line.table == table]
    for names in (keys, keys[:1]):  # the key, or the table within that it stands in
        for line in own:
            if names and line.holds(*names):
                return line.number
    return own[0].number if own and table else 1


def _code(lines: Sequence[str]) -> list[_Line]:
    """Every line with the table that it belongs to, without comments and values in quotes."""
    found, counts = [], dict[str, int]()
    table, within = "", ""
    for number, text in enumerate(lines, start=1):
        code = re.sub(r"(\"[^\"]*\"|'[^']*')(?!\s*[=.\]])", "_", text).partition("#")[0]
        code = code.replace('"', "").replace("'", "")
        if head := re.match(r"\s*(\[\[?)\s*([\w.-]+)\s*\]", code):
            table, _, within = head[2].partition(".")
            if head[1] == "[[" and not within:
                counts[table] = counts.get(table, -1) + 1
        found.append(_Line(number, table, counts.get(table, 0), within, code))
    return found


class _Line(NamedTuple):
    """A line of a file: its number, its table and which of them, the table within, its code."""

    number: int
    table: str
    place: int
    within: str
    code: str

    def holds(self, name: str, inner: str = "") -> bool:
        """Whether it gives a value to a key, or to a key of a table within."""
        if not inner:
            head = re.match(r"\s*\[", self.code) is not None
            opened = head and name in (self.within, self.table if not self.within else "")
            return opened or (not self.within and bool(self._gives(rf"^\s*{name}\s*[=.]")))
        dotted = rf"^\s*{name}\s*\.\s*{inner}\s*="
        inline = rf"^\s*{name}\s*=.*[{{,]\s*{inner}\s*="
        if self.within == name:
            return bool(self._gives(rf"^\s*{inner}\s*="))
        return not self.within and bool(self._gives(dotted) or self._gives(inline))

    def _gives(self, pattern: str) -> re.Match[str] | None:
        return re.search(pattern, self.code)
