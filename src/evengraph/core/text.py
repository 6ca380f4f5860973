"""Foreign text: names, ids and paths that a terminal or an XML document must not act upon."""

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

# control characters but tab and newline; characters that reorder a line, break it or take no room
# (not the two joiners, which are part of words and emoji); halves of surrogate pairs; code points
# that no XML may hold
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]"
)


def printable(text: str) -> str:
    r"""The text with every character that is not to be printed as an escape such as `\x1b`.

    All text on its way to a terminal, an HTML page or an SVG passes through here: an id in a file
    must not clear the screen, rename the window or reverse the line, and no page may become
    malformed. Newlines and tabs stay.
    """
    return _UNPRINTABLE.sub(_escaped, text) if _UNPRINTABLE.search(text) else text


def one_line(text: str) -> str:
    r"""As `printable`, on one line: newlines are escapes as well."""
    return printable(text).replace("\n", "\\n")


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def make_console(**options: Any) -> Any:
    """A console of Rich, which only printing needs, that prints foreign text as it is written."""
    return _console_type()(**options)


@cache
def _console_type() -> type[Any]:
    from rich.console import Console
    from rich.segment import Segment
    from rich.text import Text

    class PrintableConsole(Console):
        def render_str(self, text: str, **options: Any) -> Text:  # before columns are measured
            return super().render_str(printable(text), **options)

        def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                if segment.control:  # of Rich itself, such as moving the cursor of a bar
                    yield segment
                else:
                    yield Segment(printable(segment.text), segment.style)

    return PrintableConsole
